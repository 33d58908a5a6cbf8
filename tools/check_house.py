#!/usr/bin/env python3
"""Rules of the house that no compiler holds: lengths, opening sentences, stray words, lone headers, the environment list.

usage: check_house.py [--quick] [--root DIR]
       check_house.py --self-test

--quick leaves out compiling each header of src/ alone (public headers are always compiled).
Prints FILE:LINE and the rule; exit code 1 if there is any. Python's standard library only.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

SOFT_LINES, HARD_LINES = 400, 800
CODE = {".h", ".hpp", ".cpp", ".c", ".cu", ".cuh", ".mm", ".metal"}
SCRIPTS = {".py", ".sh", ".cmake"}
SKIPPED = {".git", "build", "__pycache__"}
DATA = ("tests/golden/", "tests/fixtures/data/")     # copied data keeps its own shape

# Words that have no place in the tree: paths of one machine, notes to oneself, tools that wrote a line.
STRAY = [
    (re.compile(r"/work/|/home/\w|/root/\w|/tmp/bash"), "a path of one machine"),
    (re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"), "a note to oneself; do it or write down the condition that ends it"),
    (re.compile(r"\b(issue|pull request|PR) ?#?\d+\b", re.I), "a tracker's number"),
    (re.compile(r"\b(sub-?agent|co-?pilot|chatgpt|claude|language model wrote|as an ai)\b", re.I), "a word about who wrote it"),
    (re.compile(r"\b(earlier|previous|last|next) session\b", re.I), "a word about how it was written"),
]
STRAY_EXEMPT = {"tools/check_house.py"}


def files(root):
    """All files of the tree that people wrote, as (path, relative name)."""
    for folder, names, found in os.walk(root):
        names[:] = sorted(n for n in names if n not in SKIPPED and not n.startswith("build-"))
        for name in sorted(found):
            path = pathlib.Path(folder) / name
            if path.is_file() and not path.is_symlink():
                yield path, path.relative_to(root).as_posix()


def read(path):
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def opens_with_sentence(path, lines):
    """Code and scripts say in their first line what they are; a source file may leave that to the header of its name."""
    if path.suffix in CODE:
        own = re.match(r'#include "([^"]+)"', lines[0]) if lines else None
        stem = path.stem.removesuffix("_test").removesuffix("_bench")
        if path.suffix != ".h" and own and pathlib.PurePosixPath(own[1]).name == stem + ".h":
            return path.with_name(stem + ".h").is_file() or "tern/" in own[1]
        return bool(lines) and lines[0].startswith(("// ", "/* ")) and len(lines[0]) > 12
    start = 1 if lines and lines[0].startswith("#!") else 0
    if path.suffix == ".py":
        return len(lines) > start and lines[start].lstrip("ru").startswith(('"""', "# "))
    return len(lines) > start and lines[start].startswith("# ")


def check_text(root):
    problems, lengths, long = [], [], []
    for path, name in files(root):
        text = read(path)
        if text is None or name.startswith(DATA):
            continue
        lines = text.splitlines()
        # CMakeLists.txt of a folder are too short to need a sentence; the entry scripts have no suffix.
        is_script = path.suffix in SCRIPTS or (not path.suffix and text.startswith("#!"))
        if path.suffix in CODE or is_script:
            lengths.append(len(lines))
            if len(lines) > HARD_LINES:
                problems.append((name, len(lines), f"{len(lines)} lines: {HARD_LINES} is the limit, {SOFT_LINES} the aim"))
            elif len(lines) > SOFT_LINES:
                long.append((len(lines), name))
            if not opens_with_sentence(path, lines):
                problems.append((name, 1, "the first line says in one sentence what the file is"))
        if path.suffix in {".h", ".hpp", ".cuh"}:
            if "#pragma once" not in text:
                problems.append((name, 1, "no #pragma once"))
            for number, line in enumerate(lines, 1):
                if re.match(r"\s*using namespace\b", line) and not name.startswith("src/backend/metal/kernels/"):
                    problems.append((name, number, "no 'using namespace' in a header"))
        if name not in STRAY_EXEMPT:
            for number, line in enumerate(lines, 1):
                for pattern, why in STRAY:
                    match = pattern.search(line)
                    if match:
                        problems.append((name, number, f"'{match[0]}': {why}"))
    return problems, lengths, long


def environment_names(text, pattern):
    return set(re.findall(pattern, text))


# The one file beside src/base/env.cpp that may look at the environment: the program includes nothing below include/tern.
ENVIRONMENT_READERS = ("src/base/env.cpp", "apps/cli/environment.cpp",
                       "tests/swmetal/rt/options.cpp")  # SWM_*: a tool of the tests, no part of Tern
ENVIRONMENT_ROW = re.compile(r"(?m)^\| `([A-Z_]+)\*?` \|.*\|([^|\n]*)\|$")


def check_readers(root, page):
    """Every row of the table names the files that read its variable, and they do."""
    problems = []
    for name, column in ENVIRONMENT_ROW.findall(page.read_text()):
        readers = re.findall(r"`([^`]+)`", column)
        if not readers:
            problems.append(("docs/environment.md", 1, f"{name}: no file is named that reads it"))
        for reader in readers:
            text = read(root / reader) if (root / reader).is_file() else None
            # Whole names in scripts and literals: $NAME, ${NAME...}, "NAME...".
            if text is None or not re.search(r'(?:\$\{?|")' + name + r"(?![A-Z])", text):
                problems.append(("docs/environment.md", 1, f"{name}: {reader} does not read it"))
    return problems


def check_environment(root):
    """The list in base/env.h, the table of docs/environment.md and what programs and scripts read are the same names."""
    header, page = root / "src/base/env.h", root / "docs/environment.md"
    if not header.is_file() or not page.is_file():
        return [(page.relative_to(root).as_posix(), 1, f"{header.relative_to(root)} or {page.relative_to(root)} is not there")]
    problems = []
    known = environment_names(header.read_text(), r'EnvironmentVariable\{\s*"([A-Z_]+\*?)"')
    shown = environment_names(page.read_text(), r"(?m)^\| `([A-Z_]+\*?)`")
    problems += check_readers(root, page)
    for name in sorted(known - shown):
        problems.append(("docs/environment.md", 1, f"{name} of src/base/env.h is missing in the table"))
    for name in sorted(shown - known):
        problems.append(("docs/environment.md", 1, f"{name} stands in the table, but not in src/base/env.h"))
    for path, name in files(root):
        text = read(path) if path.suffix in CODE | {".sh", ".py"} or name in ("demo", "check") else None
        if text is None:
            continue
        if path.suffix in CODE and name not in ENVIRONMENT_READERS and re.search(r"\b(secure_)?getenv\s*\(|\benviron\b", text):
            problems.append((name, 1, f"only {' and '.join(ENVIRONMENT_READERS)} read environment variables"))
        if path.suffix == ".sh" or name in ("demo", "check"):
            for used in sorted(environment_names(text, r"\$\{?(TERN_[A-Z_]+)") - environment_names(text, r"(?m)^\s*(TERN_[A-Z_]+)=")):
                if used not in shown:
                    problems.append((name, 1, f"{used} is read here and missing in docs/environment.md"))
    return problems


def compile_alone(root, header, compiler):
    """The compiler's complaint about a file that includes nothing but this header, or None."""
    inside = "include" if header.startswith("include/") else "src"
    source = f'#include "{header[len(inside) + 1:]}"\n'
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c++", "-I", str(root / "include")]
    if inside == "src":
        command += ["-I", str(root / "src")]
    if pathlib.PurePosixPath(header).name.startswith("x86_"):
        command += ["-mavx2", "-mfma", "-mf16c"] + (["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vnni"] if "avx512" in header else [])
    done = subprocess.run([*command, "-"], input=source, text=True, capture_output=True, check=False)
    return None if done.returncode == 0 else done.stderr.strip().splitlines()[0] if done.stderr.strip() else "does not compile"


def first_includes(root):
    """The headers that some source file includes before anything else: the build itself shows that they compile alone."""
    found = set()
    for path, name in files(root):
        if path.suffix == ".cpp" and name.startswith("src/"):
            match = re.search(r'(?m)^#include (["<])([^">]+)[">]', read(path) or "")
            if match and match[1] == '"':
                found.add("src/" + match[2])
    return found


# Objective-C++ and Metal: their own compilers read these, in tests/parity/metal.
METAL_HEADERS = ("src/backend/metal/device/", "src/backend/metal/kernels/")


def check_headers(root, quick, compiler):
    shown = first_includes(root)
    headers = [name for path, name in files(root) if path.suffix == ".h" and name not in shown and not name.startswith(METAL_HEADERS)
               and (name.startswith("include/tern/") or (not quick and name.startswith("src/")))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        complaints = list(pool.map(lambda h: compile_alone(root, h, compiler), headers))
    problems = [(h, 1, f"does not compile alone: {c}") for h, c in zip(headers, complaints) if c]
    c_header = root / "include/tern/tern.h"
    if c_header.is_file():
        done = subprocess.run(["cc", "-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-x", "c", str(c_header)],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            problems.append(("include/tern/tern.h", 1, f"does not compile as C: {done.stderr.strip().splitlines()[0]}"))
    return problems, len(headers)


# (file, content, part of the expected rule; None = nothing found)
SELF_TEST = [
    ("src/base/a.h", "// A header that says what it is.\n#pragma once\n#include <string>\nstd::string f();\n", None),
    ("src/base/a.h", "// A header that says what it is.\n#pragma once\nstd::string f();\n", "does not compile alone"),
    ("src/base/a.h", "#pragma once\n", "first line says"),
    ("src/base/env.cpp", '#include "base/env.h"\n', None),
    ("src/base/a.cpp", '#include "base/env.h"\n', "first line says"),
    ("src/base/a.h", "// A header that says what it is.\n", "no #pragma once"),
    ("src/base/a.h", "// A header that says what it is.\n#pragma once\n#include <string>\nusing namespace std;\n", "using namespace"),
    ("src/base/a.cpp", "// A file that is much too long.\n" + "int x;\n" * 800, "800 is the limit"),
    ("src/base/a.cpp", "// A file.  TODO later\n// A file.\n", "note to oneself"),
    ("docs/a.md", "See /work/main/a.\n", "path of one machine"),
    ("src/io/a.cpp", "// A file that reads the environment.\nconst char* a = getenv(\"HOME\");\n", "only src/base/env.cpp"),
    ("apps/cli/a.cpp", "// A file that reads the environment.\nextern char** environ;\nchar* a = environ[0];\n", "only src/base/env.cpp"),
    ("apps/cli/environment.cpp", "// The file that may.\nextern char** environ;\nchar* a = environ[0];\n", None),
    ("docs/environment.md", "| `HOME` | the home | `tools/home.sh` |\n", None),
    ("docs/environment.md", "| `HOME` | the home | `tools/reader.sh` |\n", "tools/reader.sh does not read it"),
    ("docs/environment.md", "| `HOME` | the home | soon |\n", "no file is named"),
    ("tools/a.sh", "#!/bin/sh\n# A script that reads a variable.\necho \"$TERN_SECRET\"\n", "TERN_SECRET is read here"),
]


def self_test(compiler):
    failed = 0
    for name, content, expected in SELF_TEST:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for file, text in (("src/base/env.h", '// Names.\n#pragma once\n// EnvironmentVariable{"HOME", ...}\n'),
                               ("docs/environment.md", "| `HOME` | the home | `tools/home.sh` |\n"),
                               ("tools/home.sh", "#!/bin/sh\n# Reads the home.\necho \"${HOME:-}\"\n"), (name, content)):
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_text(text)
            found = [p for p in check_text(root)[0] + check_environment(root) + check_headers(root, False, compiler)[0] if p[0] == name]
            if not (not found if expected is None else any(expected in p[2] for p in found)):
                failed += 1
                print(f"self-test: {name}: expected {expected!r}, got {found}")
    print(f"house self-test: {len(SELF_TEST) - failed} passed, {failed} failed")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return 1 if self_test(args.compiler) else 0

    problems, lengths, long = check_text(args.root)
    problems += check_environment(args.root)
    found, headers = check_headers(args.root, args.quick, args.compiler)
    problems += found
    for file, line, rule in problems:
        print(f"{file}:{line}: {rule}")
    for lines, name in sorted(long, reverse=True):
        print(f"note: {name} has {lines} lines (aim {SOFT_LINES})")
    print(f"house: {len(lengths)} source files, median {statistics.median(lengths):.0f} lines, longest {max(lengths)}; "
          f"{headers} headers compiled alone; {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
