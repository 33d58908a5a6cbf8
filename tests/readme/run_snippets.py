#!/usr/bin/env python3
"""Runs what README.md promises: `tern` commands of its sh blocks, and programs of its cpp blocks.

usage: run_snippets.py MODEL.gguf [--readme README.md] [--build build/release]

A command is a line of a ```sh block that starts with `tern ` (lines ending in a backslash are joined). It runs in a scratch folder
where the model lies under its own name and as `model.gguf`, with the built program first on PATH; words in capitals (MODEL) stand
for the model. A ```cpp block with a main function is compiled and linked against the build. Python's standard library only.
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIMEOUT_S = 120


def blocks(text, language):
    """The fenced blocks of one language, as (line number, text)."""
    found = []
    for match in re.finditer(rf"(?ms)^```{language}\n(.*?)^```\s*$", text):
        found.append((text[:match.start()].count("\n") + 2, match[1]))
    return found


def commands(block):
    joined = re.sub(r"\\\n\s*", " ", block)
    for line in joined.splitlines():
        line = re.sub(r"^\$ ", "", line.strip())
        if re.match(r"tern\b", line):
            yield line


def run_command(command, folder, program):
    command = re.sub(r"\bMODEL\b", "model.gguf", command)
    environment = dict(os.environ, PATH=f"{program.parent}:{os.environ['PATH']}")
    process = subprocess.Popen(["sh", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, errors = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return False, f"not done after {TIMEOUT_S} s"
    tail = errors.decode(errors="replace").strip().splitlines()[-3:]
    return process.returncode == 0, f"exit code {process.returncode}: {' / '.join(tail)}" if process.returncode else f"{len(out)} bytes"


def run_program(source, folder, build, model):
    """Compiles a block through a project that uses the build's package of the library."""
    work = pathlib.Path(folder) / "snippet"
    work.mkdir(exist_ok=True)
    (work / "main.cpp").write_text(source)
    (work / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(snippet LANGUAGES C CXX)\nfind_package(tern REQUIRED)\n"
        "add_executable(snippet main.cpp)\ntarget_link_libraries(snippet PRIVATE tern::tern)\n")
    prefix = pathlib.Path(folder) / "prefix"
    steps = [["cmake", "--install", build, "--prefix", prefix],
             ["cmake", "-G", "Ninja", "-S", work, "-B", work / "build", f"-DCMAKE_PREFIX_PATH={prefix}"],
             ["cmake", "--build", work / "build"],
             [work / "build/snippet", model]]
    for step in steps:
        done = subprocess.run(list(map(str, step)), cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if done.returncode:
            return False, (done.stdout + done.stderr).strip()[-1500:]
    return True, "compiled and run"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--readme", type=pathlib.Path, default=ROOT / "README.md")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    args = parser.parse_args()

    text = args.readme.read_text(encoding="utf-8")
    program, model = (args.build / "bin/tern").resolve(), args.model.resolve()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in (model.name, "model.gguf"):
            os.symlink(model, pathlib.Path(folder) / name)
        results = [(line, c, lambda c=c: run_command(c, folder, program)) for line, block in blocks(text, "sh") for c in commands(block)]
        results += [(line, "cpp program", lambda b=block: run_program(b, folder, args.build.resolve(), model))
                    for line, block in blocks(text, "cpp") if "int main" in block]
        for line, what, run in results:
            ok, detail = run()
            passed, failed = passed + ok, failed + (not ok)
            print(f"{'ok    ' if ok else 'FAILED'}  {args.readme.name}:{line}: {what}: {detail}", flush=True)
    print(f"README: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
