#!/usr/bin/env python3
"""Shows the program every damaged file of the robustness rules (RG and RK): one sentence, exit code 1, in time, in little memory.

usage: damaged_files.py --build BUILD_DIR [--seconds 1]

BUILD_DIR/bin/write_damaged makes the files. --seconds: the longest that a refusal may take (sanitizers: 5). Ends with
"damaged: N passed, M failed".
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

MEMORY_MARGIN = 64 << 20  # above the file's size and what the program takes to say its version


def measured(words, folder):
    """Exit code, stdout, stderr, seconds, peak resident bytes of one run in `folder`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TERN_", "LLAMA_ARG_"))}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.monotonic()
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder, env=kept)
        deadline = start + 60
        while True:
            done, status, usage = os.wait4(child.pid, os.WNOHANG)
            if done:
                break
            if time.monotonic() > deadline:
                child.kill()
            time.sleep(0.002)
        seconds = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        return child.returncode, out.read(), err.read().decode("utf-8", "replace"), seconds, usage.ru_maxrss * 1024


def faults(path, verdict, parts, run, limits):
    """What is wrong with one answer, as sentences."""
    code, out, err, seconds, memory = run
    found = []
    if verdict == "loads":
        if code != 0:
            found.append(f"exit code {code}: {err[-300:]}")
        return found + [f"'{part}' is not in: {err}" for part in parts if part not in err]
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    if code != 1:
        found.append(f"exit code {code}")
    if out:
        found.append(f"{len(out)} bytes on stdout")
    if len(lines) != 1 or err.count("\n") > 8:
        found.append(f"not one sentence: {err[-400:]!r}")
    found += [f"'{part}' is not in: {lines}" for part in [path.name, *parts] if not any(part in line for line in lines)]
    if seconds > limits["seconds"]:
        found.append(f"took {seconds:.2f} s")
    if memory > limits["memory"] + path.stat().st_size + MEMORY_MARGIN:
        found.append(f"took {memory >> 20} MiB, {limits['memory'] >> 20} without a file")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    binaries = options.build.resolve() / "bin"
    passed = failed = 0
    slowest = largest = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([binaries / "write_damaged", folder], check=True)
        before = {p.name: (p.stat().st_size, p.stat().st_mtime_ns) for p in folder.iterdir()}
        base = measured([binaries / "tern", "version"], folder)[4]
        for line in (folder / "list.tsv").read_text().splitlines():
            stem, verdict, *parts = line.split("\t")
            path = folder / f"{stem}.gguf"
            run = measured([binaries / "tern", "run", path, "-p", "hi", "-n", "1", "--temp", "0", "-c", "64"], folder)
            wrong = faults(path, verdict, parts, run, {"seconds": options.seconds, "memory": base})
            if verdict == "refused":
                slowest, largest = max(slowest, run[3]), max(largest, run[4])
            for fault in wrong:
                print(f"FAILED {stem}: {fault}")
            passed, failed = passed + (not wrong), failed + bool(wrong)
        after = {p.name: (p.stat().st_size, p.stat().st_mtime_ns) for p in folder.iterdir()}
        if after != before:
            print(f"FAILED: files were made or changed: {sorted(set(after.items()) ^ set(before.items()))}")
            failed += 1
    print(f"slowest refusal {slowest:.2f} s, largest {largest >> 20} MiB ({base >> 20} MiB without a file)")
    print(f"damaged: {passed} passed, {failed} failed")
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    main()
