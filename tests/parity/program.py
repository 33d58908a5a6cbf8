"""What the replays share: running the tern program, reading safetensors, errors and divergences, and counting.

Python's standard library only.
"""
import array
import json
import lzma
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLOAT = ["--activations", "f32", "-ctk", "f32", "-ctv", "f32"]  # the reference settings


class Failed(Exception):
    """The program did not do what was asked."""


class Program:
    """The tern program under test."""

    def __init__(self, path):
        self.path = pathlib.Path(path).resolve()
        if not self.path.is_file():
            sys.exit(f"error: {self.path} is not there; build it first")

    def run(self, arguments, text=None, timeout=600):
        """The bytes on stdout. Anything but exit code 0 raises Failed with the last lines of stderr."""
        command = [str(self.path), *map(str, arguments)]
        data = text.encode() if isinstance(text, str) else text
        stdin = {"stdin": subprocess.DEVNULL} if data is None else {"input": data}
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, check=False, **stdin)
        if done.returncode != 0:
            tail = done.stderr.decode(errors="replace").strip().splitlines()[-5:]
            raise Failed(f"exit code {done.returncode} of: {' '.join(command)}\n    " + "\n    ".join(tail))
        return done.stdout

    def json_lines(self, arguments, requests, allow_errors=False):
        """One JSON request a line in, one answer a line out."""
        body = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in requests).encode("utf-8", "surrogatepass")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "requests.jsonl"
            file.write_bytes(body)
            command = [str(self.path), *map(str, arguments), "--jsonl", str(file)]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, check=False)
        answers = [json.loads(line) for line in done.stdout.split(b"\n") if line]
        if len(answers) != len(requests):
            raise Failed(f"{len(answers)} answers to {len(requests)} requests (exit code {done.returncode}): {' '.join(command)}\n    "
                         + done.stderr.decode(errors="replace").strip()[-500:])
        if done.returncode != 0 and not (allow_errors and any("error" in a for a in answers)):
            raise Failed(f"exit code {done.returncode} of: {' '.join(command)}\n    " + done.stderr.decode(errors="replace").strip()[-500:])
        return answers

    def logits(self, model, ids, *flags):
        """The tensors that `tern logits` writes, as name -> Tensor."""
        with tempfile.TemporaryDirectory() as folder:
            ids_file, out = pathlib.Path(folder) / "ids.txt", pathlib.Path(folder) / "out.safetensors"
            ids_file.write_text(",".join(map(str, ids)))
            self.run(["logits", model, "--token-ids-file", ids_file, "-o", out, *flags])
            return read_safetensors(out)


class Tensor:
    """A row-major matrix or vector of numbers."""

    def __init__(self, shape, values):
        self.shape, self.values = shape, values

    def rows(self):
        width = self.shape[-1]
        return [self.values[i:i + width] for i in range(0, len(self.values), width)]

    def last_rows(self, count):
        width = self.shape[-1]
        return Tensor([count, width], self.values[len(self.values) - count * width:])


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        code = {"F32": "f", "I32": "i", "I16": "h", "F64": "d", "I64": "q", "U8": "B"}[entry["dtype"]]
        begin, end = entry["data_offsets"]
        values = array.array(code)
        values.frombytes(data[8 + length + begin:8 + length + end])
        if sys.byteorder == "big":
            values.byteswap()
        tensors[name] = Tensor(entry["shape"], values)
    return tensors


def relative_error(got, expected):
    """Largest absolute difference / largest absolute expected value; infinite where a value is not finite or a shape differs."""
    if list(got.shape) != list(expected.shape):
        raise Failed(f"shape {list(got.shape)} where {list(expected.shape)} is expected")
    largest = max(map(abs, expected.values))
    worst = max(abs(a - b) for a, b in zip(got.values, expected.values))
    return worst / largest if all(map(math.isfinite, got.values)) else math.inf


def log_softmax(row):
    top = max(row)
    total = math.log(math.fsum(math.exp(x - top) for x in row)) + top
    return [x - total for x in row]


def divergences(got, expected):
    """KL(expected || got) of each row of logits, in nats."""
    result = []
    for mine, theirs in zip(got.rows(), expected.rows()):
        p, q = log_softmax(theirs), log_softmax(mine)
        result.append(math.fsum(math.exp(a) * (a - b) for a, b in zip(p, q)))
    return result


def best(row):
    """The lowest id among the largest values."""
    return row.index(max(row))


def read_json_lines(path):
    data = pathlib.Path(path).read_bytes()
    if str(path).endswith(".xz"):
        data = lzma.decompress(data)
    return [json.loads(line) for line in data.decode().split("\n") if line]


def read_json(path):
    data = pathlib.Path(path).read_bytes()
    return json.loads(lzma.decompress(data) if str(path).endswith(".xz") else data)


class Report:
    """Counts what passed and failed, prints a line each, and ends with a plain summary."""

    def __init__(self, name, verbose=True):
        self.name, self.verbose, self.passed, self.failed, self.begin = name, verbose, 0, 0, time.monotonic()

    def check(self, what, ok, detail=""):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
        if self.verbose or not ok:
            print(f"{'ok    ' if ok else 'FAILED'}  {what}{': ' + str(detail) if detail != '' else ''}", flush=True)
        return ok

    def below(self, what, value, bar):
        return self.check(what, value <= bar, f"{value:.2e} (bar {bar:.0e})")

    def attempt(self, what, function):
        """Runs function; a Failed or missing key counts as one failure with its reason."""
        try:
            return function()
        except (Failed, KeyError, ValueError, OSError, subprocess.TimeoutExpired) as reason:
            self.check(what, False, f"{type(reason).__name__}: {reason}")
            return None

    def finish(self):
        print(f"{self.name}: {self.passed} passed, {self.failed} failed, {time.monotonic() - self.begin:.1f} s")
        return 1 if self.failed or not self.passed else 0
