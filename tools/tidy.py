#!/usr/bin/env python3
"""clang-tidy 14 over src/ and include/: the files of a folder are looked at together, so that headers are read once.

usage: tidy.py BUILD_DIR [FOLDER ...]      BUILD_DIR holds compile_commands.json of a clang build; default: every folder of src/

A unit is a file of #include lines. Where two files of a folder cannot stand in one unit (equal names in their unnamed
namespaces), the unit is cut in two. Files for one instruction set (x86_*.cpp) keep their own flags and stand alone. Tests and
benches are left out. Ends with "tidy: N passed, M failed" (files).
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
FILTER = r"(/|^)(src|include/tern)/.*\.(h|cpp|mm)$"
LEFT_OUT = re.compile(r"(/|_)(test|bench)\.cpp$")


def commands(build):
    """File -> the options of its compiler that decide how it is read."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words, kept = entry["command"].split(), []
        for i, word in enumerate(words):
            if word == "-isystem":
                kept += words[i:i + 2]
            elif word.startswith(("-I", "-D", "-std", "-m")):
                kept.append(word)
        found[pathlib.Path(entry["file"])] = kept
    return found


def groups(known, folders):
    """Lists of files with equal options, by folder."""
    by_key = {}
    for path in sorted(known):
        if not path.is_relative_to(ROOT / "src") or LEFT_OUT.search(str(path)):
            continue
        if folders and not any(path.is_relative_to(folder) for folder in folders):
            continue
        alone = path.name if path.name.startswith("x86_") else ""
        by_key.setdefault((path.parent, alone, tuple(known[path])), []).append(path)
    return by_key


def units(files, options, scratch):
    """The files in as few units as compile."""
    text = "".join(f'#include "{path}"\n' for path in files)
    handle, name = tempfile.mkstemp(suffix=".cpp", dir=scratch)
    os.write(handle, text.encode())
    os.close(handle)
    done = subprocess.run(["clang++-19", "-fsyntax-only", "-w", *options, name], capture_output=True, text=True)
    if done.returncode == 0:
        return [(name, files)]
    if len(files) == 1:
        sys.exit(f"error: {files[0]} does not compile:\n{done.stderr[:2000]}")
    half = len(files) // 2
    return units(files[:half], options, scratch) + units(files[half:], options, scratch)


def look(unit, options):
    name, _ = unit
    done = subprocess.run(["clang-tidy-14", "--quiet", f"--header-filter={FILTER}", f"--config-file={ROOT}/.clang-tidy", name, "--",
                           *options, "-Wno-unknown-warning-option"], capture_output=True, text=True)
    return "\n".join(line for line in done.stdout.splitlines() if line.strip()), done.returncode, done.stderr


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folders = [pathlib.Path(word).resolve() for word in sys.argv[2:]]
    by_key = groups(commands(pathlib.Path(sys.argv[1])), folders)
    passed = failed = 0

    def all_of(key):
        made = units(by_key[key], key[2], scratch)
        return [(unit, look(unit, key[2])) for unit in made]

    seen = set()
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for results in pool.map(all_of, by_key):
            for (_, files), (text, code, errors) in results:
                if code == 0 and not text:
                    passed += len(files)
                    continue
                failed += len(files)
                # A header's finding comes once for every unit that includes it.
                for finding in re.split(r"\n(?=/\S+:\d+:\d+: )", text) if text else [errors[-1000:]]:
                    if finding not in seen:
                        seen.add(finding)
                        print(finding, flush=True)
    print(f"tidy: {passed} passed, {failed} failed")
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    main()
