#!/usr/bin/env python3
"""Runs the commands of a list and compares exit code and output with what each line expects.

usage: expect.py LIST.txt NAME=PATH ...

A line is: TITLE | ENVIRONMENT | COMMAND | pass or fail | PATTERN (a regular expression in the output, may be empty).
{NAME} in a command is the path given on the command line. Closes with 'N passed, M failed'.
"""
import os
import re
import subprocess
import sys


def environment(text):
    found = dict(os.environ)
    symbolizer = next((p for p in ("/usr/bin/llvm-symbolizer-19", "/usr/bin/llvm-symbolizer") if os.path.exists(p)), "")
    for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"):
        found[name] = f"external_symbolizer_path={symbolizer}"
    found["LSAN_OPTIONS"] = "print_suppressions=0"
    found.update(pair.split("=", 1) for pair in text.split())
    return found


def run(line, paths):
    title, settings, command, verdict, pattern = re.split(r"\s*\|\s*", line.strip(), maxsplit=4)
    words = [word.format(**paths) for word in command.split()]
    done = subprocess.run(words, env=environment(settings), capture_output=True, text=True, timeout=120, check=False)
    output = done.stdout + done.stderr
    if (done.returncode == 0) != (verdict == "pass"):
        return title, f"exit code {done.returncode}, expected to {verdict}", output
    if not re.search(pattern, output):
        return title, f"no '{pattern}' in the output", output
    return title, "", ""


def main(list_file, *pairs):
    paths = dict(pair.split("=", 1) for pair in pairs)
    with open(list_file, encoding="utf-8") as lines:
        rows = [line.rstrip("\n") + " " for line in lines if line.strip() and not line.startswith("#")]
    failed = 0
    for row in rows:
        title, wrong, output = run(row, paths)
        print(f"{'FAIL' if wrong else 'ok  '} {title}{': ' if wrong else ''}{wrong}")
        if wrong:
            failed += 1
            print(output[-3000:])
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
