#!/usr/bin/env python3
"""Measures Tern against llama.cpp (xllamacpp) and ik_llama.cpp, interleaved, on random-weight 1.7B models and on SmolLM2.

usage: against_llama_cpp.py --peer-python VENV/bin/python [--smollm2 MODEL.gguf] [--rounds 3] [--threads 2,1]
                           [--write docs/measurements.md [--provisional]]

The peers' packages (python3 -m venv VENV; VENV/bin/pip install xllamacpp==2026.10.11549 ik-llama-cpp-python==0.1.5) live in an
environment of their own. For each model and number of threads each peer runs in its own process; peer and Tern are asked in turns.
A peer is stopped (SIGSTOP) while anything else is timed: its OpenMP threads spin. Nothing else may run on the machine.
Figures are medians over the rounds; KV caches are f16 on all sides. With a load average above 0.7 before the start, --write is refused
unless --provisional marks the heading. Python's standard library only.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import signal
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
QUIET_LOAD = 0.7     # the load average up to which figures may go into a page unmarked
PEERS = {"xllamacpp": "xllamacpp", "ik": "ik-llama-cpp-python"}

# (model, test, peer) -> the least ratio Tern : peer that must hold with two threads.
GATES = {
    ("Q1_0", "tg", "xllamacpp"): 2.0, ("Q1_0", "pp", "xllamacpp"): 3.0,
    ("Q1_0", "tg", "ik"): 1.3, ("Q1_0", "pp", "ik"): 1.5,
    ("Q2_0", "tg", "xllamacpp"): 10.0, ("Q2_0", "pp", "xllamacpp"): 10.0,
    ("Q4_1", "tg", "xllamacpp"): 0.7,
}
# What a peer cannot do: ik has no Q2_0 and its Q4_1 is wrong in batches of 32 and more.
UNABLE = {("Q2_0", "ik"): "pp tg", ("Q4_1", "ik"): "pp"}


class Peer:
    """One engine with one model, stopped whenever it is not asked."""

    def __init__(self, python, kind, model, threads):
        script = pathlib.Path(__file__).resolve().parent / "llama_cpp_peer.py"
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([python, script, kind, model, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True)
        self.read()
        self.pause()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            tail = self.log.read().decode(errors="replace")[-800:]
            raise RuntimeError(f"the peer ended with code {self.process.wait()}:\n{tail}")
        return json.loads(line)

    def pause(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def ask(self, prompt, generate):
        os.kill(self.process.pid, signal.SIGCONT)
        self.process.stdin.write(json.dumps({"prompt": prompt, "generate": generate}) + "\n")
        self.process.stdin.flush()
        answer = self.read()
        self.pause()
        return answer

    def close(self):
        os.kill(self.process.pid, signal.SIGCONT)
        try:
            self.process.stdin.write("quit\n")
            self.process.stdin.close()
            self.process.wait(timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


def ask_tern(tern, model, threads, prompt, generate):
    """Rates of one fresh process; `tern bench` warms up by itself and leaves that run out."""
    command = [tern, "bench", model, "-p", prompt, "-n", generate, "-r", 1, "-t", threads, "-o", "json"]
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr[-800:]}")
    answer = {}
    for row in json.loads(done.stdout):
        if row["n_gen"] == 0:
            answer["prompt_tps"] = row["avg_ts"]
        else:
            answer["generate_tps"], answer["share"] = row["avg_ts"], row.get("ceiling_share")
    return answer


def measure(args, quant, model, threads):
    """Samples by engine: {"tern": {"prompt_tps": [...], ...}, ...}."""
    peers, samples = {}, {"tern": {}}
    kinds = [k for k in args.peers if "tg" not in UNABLE.get((quant, k), "")]
    try:
        for kind in kinds:
            peers[kind] = Peer(args.peer_python, kind, model, threads)
            peers[kind].ask(8, 4)
            samples[kind] = {}
        for turn in range(args.rounds):
            for engine in ("tern", *kinds):
                prompt = 0 if "pp" in UNABLE.get((quant, engine), "") else args.prompt
                answer = ask_tern(args.tern, model, threads, args.prompt, args.generate) if engine == "tern" else peers[engine].ask(prompt, args.generate)
                print(f"  {quant} {threads} threads, round {turn + 1}: {engine:10} "
                      + "  ".join(f"{k} {v:.2f}" for k, v in answer.items() if v is not None), file=sys.stderr, flush=True)
                for name, value in answer.items():
                    if value is not None:
                        samples[engine].setdefault(name, []).append(value)
    finally:
        for peer in peers.values():
            peer.close()
    return samples


def spread(values):
    """Half the range, in percent of the median."""
    return 50 * (max(values) - min(values)) / statistics.median(values)


def last_level_cache():
    """Bytes of the last-level cache that the first processor sees; 0 where the system does not say."""
    best = (0, 0)
    for index in pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            level, size = int((index / "level").read_text()), (index / "size").read_text().strip()
        except (OSError, ValueError):
            continue
        unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(size[-1:], 1)
        best = max(best, (level, int(size.rstrip("KMG")) * unit))
    return best[1]


def share_text(args, test, model_bytes, shares):
    """The share of read bandwidth that generating reached; it says nothing where the weights come from the cache."""
    if test != "tg" or not shares:
        return "-"
    if model_bytes <= args.cache:
        return "in cache"
    return f"{statistics.median(shares):.0%}"


def table_rows(args, quant, label, model_bytes, threads, samples):
    rows, missed = [], []
    for test, key, count in (("pp", "prompt_tps", args.prompt), ("tg", "generate_tps", args.generate)):
        mine = samples["tern"].get(key)
        for kind in args.peers:
            theirs = samples.get(kind, {}).get(key)
            if not mine or not theirs:
                continue
            ratio = statistics.median(mine) / statistics.median(theirs)
            gate = GATES.get((quant, test, kind)) if threads == 2 else None
            if gate is not None and ratio < gate:
                missed.append(f"{label} {test}{count} against {kind}: {ratio:.2f}, gate {gate}")
            share = share_text(args, test, model_bytes, samples["tern"].get("share"))
            rows.append(f"| {label} | {test}{count} | {threads} | {statistics.median(mine):.2f} (±{spread(mine):.0f} %) | {kind} | "
                        f"{statistics.median(theirs):.2f} (±{spread(theirs):.0f} %) | **{ratio:.2f}** | {gate if gate is not None else '-'} | {share} |")
    return rows, missed


def machine_lines(args):
    """Where and with what: processor, features, versions, date."""
    name = platform.processor() or platform.machine()
    features = ""
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            name = line.split(":", 1)[1].strip()
        if line.startswith("flags"):
            flags = set(line.split(":", 1)[1].split())
            features = " ".join(f for f in ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8") if f in flags)
    code = "import importlib.metadata as m; print(', '.join(p + ' ' + m.version(p) for p in %r))" % [PEERS[k] for k in args.peers]
    versions = subprocess.run([args.peer_python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    tern = subprocess.run([args.tern, "version"], capture_output=True, text=True, check=False).stdout.splitlines()
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return [f"{now}; {name}, {os.cpu_count()} logical processors ({features}), last-level cache {args.cache / (1 << 20):.0f} MiB; {platform.system()} {platform.release().split('-')[0]}.",
            f"{tern[0] if tern else 'tern'}; {versions} (prebuilt for AVX2; a native AVX-512 build of llama.cpp is 1.1 to 1.2 times faster on Q1_0).",
            f"Medians of {args.rounds} rounds, engines in turns, the others stopped; KV f16; ± is half the range. "
            f"Load average before the start: {args.load:.1f}."]


def random_model(args, quant):
    """The 1.7B-shaped model of this format, made once."""
    target = args.scratch / f"qwen3-1.7b-random-{quant.lower()}.gguf"
    if not target.is_file():
        print(f"  making {target}", file=sys.stderr, flush=True)
        args.scratch.mkdir(parents=True, exist_ok=True)
        subprocess.run([args.tern.parent / "make_random_model", "--shape", "qwen3-1.7b", "--type", quant, "-o", target], check=True)
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--tern", type=pathlib.Path, default=ROOT / "build/release/bin/tern")
    parser.add_argument("--smollm2", type=pathlib.Path, help="also measure this Q4_1 file (tools/fetch_smollm2.sh prints its path)")
    parser.add_argument("--scratch", type=pathlib.Path, default=ROOT / "build/bench")
    parser.add_argument("--formats", default="Q1_0,Q2_0", help="random-weight formats to measure")
    parser.add_argument("--peers", default="xllamacpp,ik", type=lambda s: s.split(","))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", default="2,1")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--write", type=pathlib.Path, help="append the table to this page")
    parser.add_argument("--provisional", action="store_true", help="write although the machine is busy, and say so in the heading")
    args = parser.parse_args()
    args.tern = args.tern.resolve()
    args.load = os.getloadavg()[0]
    args.cache = last_level_cache()
    if args.load > QUIET_LOAD:
        if args.write and not args.provisional:
            parser.error(f"the load average is {args.load:.1f}, above {QUIET_LOAD}: figures of a busy machine do not go into {args.write}; "
                         "wait, or mark them with --provisional")
        print(f"warning: the load average is {args.load:.1f}; with anything else running the ratios mean nothing", file=sys.stderr)

    models = [(q, f"1.7B random {q}", random_model(args, q)) for q in args.formats.split(",") if q]
    if args.smollm2:
        models.append(("Q4_1", "SmolLM2-135M Q4_1", args.smollm2))
    rows, missed = [], []
    for quant, label, model in models:
        for threads in map(int, args.threads.split(",")):
            samples = measure(args, quant, str(model), threads)
            more, failed = table_rows(args, quant, label, os.path.getsize(model), threads, samples)
            rows, missed = rows + more, missed + failed
    lines = ["| model | test | threads | tern t/s | peer | peer t/s | tern : peer | gate | share of read bandwidth |",
             "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |", *rows, "", *machine_lines(args)]
    text = "\n".join(lines) + "\n"
    print(text)
    if args.write:
        with open(args.write, "a", encoding="utf-8") as page:
            mark = " (provisional)" if args.provisional else ""
            page.write(f"\n### Against llama.cpp, {datetime.date.today().isoformat()}{mark}\n\n{text}")
    for line in missed:
        print(f"gate missed: {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
