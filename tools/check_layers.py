#!/usr/bin/env python3
"""Holds the layers of ARCHITECTURE.md: reads every #include line and names each one that points up or sideways.

usage: check_layers.py [ROOT]        prints FILE:LINE and the rule, exit code 1 if there is any
       check_layers.py --self-test   makes small trees with one bad line each and looks whether it is found
"""
import pathlib
import re
import sys
import tempfile

# The numbers of ARCHITECTURE.md. A file includes its own folder and folders with a lower number.
LAYERS = {
    "base": 0,
    "tensor": 1,
    "text": 1,
    "quant": 2,
    "io": 3,
    "program": 3,
    "reference": 3,
    "models": 4,
    "backend": 4,
    "runtime": 5,
}

# Inside backend/: part -> the parts it may include. "interface" are the headers that lie in backend/ itself (backend.h,
# vendor_gemm.h, ...); "registry" is backend/registry.*, the only place that knows which backends exist.
BACKEND_PARTS = {
    "cache": set(),
    "choice": {"cache"},
    "interface": {"cache", "choice"},
    "cpu": {"cache", "choice", "interface"},
    "gpu": {"cache", "choice", "interface"},
    "cuda": {"cache", "choice", "interface", "gpu"},
    "metal": {"cache", "choice", "interface", "gpu"},
    "registry": {"cache", "choice", "interface", "cpu", "cuda", "metal"},
}

# include/tern/: the standard library by its C++20 names, and C names for tern.h.
STANDARD = set("""
algorithm any array atomic barrier bit bitset charconv chrono compare complex concepts condition_variable coroutine deque exception
execution filesystem forward_list fstream functional future initializer_list iomanip ios iosfwd iostream istream iterator latch
limits list locale map memory memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex
scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view
strstream syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant
vector version cassert cctype cerrno cfenv cfloat cinttypes climits clocale cmath csetjmp csignal cstdarg cstddef cstdint cstdio
cstdlib cstring ctime cuchar cwchar cwctype stddef.h stdint.h stdbool.h
""".split())

# Files of one instruction set: compiled with its flags, so they may bring no shared inline function into the program.
# They may share headers of the same kind (x86_avx2_math.h), which are held to the same rule.
ISA_FILE = re.compile(r"^(x86|arm)_.*\.(cpp|h)$")
ISA_HEADER = re.compile(r"^(x86|arm)_.*\.h$")
ISA_ALLOWED = re.compile(r"^(\w*intrin\.h|arm_\w+\.h|cstdint|cstddef)$")
TEST_FILE = re.compile(r"(^|_)(test|bench)\.cpp$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SOURCES = {".h", ".hpp", ".cpp", ".c", ".cu", ".cuh", ".mm", ".metal"}


def backend_part(path):
    """The part of backend/ that a path (relative to src/) belongs to."""
    parts = pathlib.PurePosixPath(path).parts
    if len(parts) > 2:
        return parts[1]
    return "registry" if parts[1].split(".")[0].split("_")[0] == "registry" else "interface"


def check_source(path, target, is_system, is_test, root):
    """The broken rule for one include of src/`path`, or None."""
    layer = path.parts[0]
    if is_system:
        if ISA_FILE.match(path.name) and not is_test and not ISA_ALLOWED.match(target):
            return "a file of one instruction set includes intrinsics, <cstdint>, <cstddef> and its kernel's header only"
        return None
    if target.startswith("tern/"):
        return None
    if is_test and target.startswith("tests/"):
        return None
    top = target.split("/")[0]
    if top not in LAYERS:
        if (root / "src" / path.parent / target).exists():
            return f'write the path relative to src/: "{(path.parent / target).as_posix()}"'
        return f"'{top}' is no layer of src/"
    shared = pathlib.PurePosixPath(target)
    if ISA_FILE.match(path.name) and not is_test and shared.parent.as_posix() != path.parent.as_posix() and not ISA_HEADER.match(shared.name):
        return "a file of one instruction set includes intrinsics, <cstdint>, <cstddef> and its kernel's header only"
    if top == layer:
        if layer == "backend":
            mine, theirs = backend_part(path.as_posix()), backend_part(target)
            if mine not in BACKEND_PARTS or theirs not in BACKEND_PARTS:
                return f"backend/{mine if mine not in BACKEND_PARTS else theirs} is no known part of backend/"
            if mine != theirs and theirs not in BACKEND_PARTS[mine]:
                return f"backend/{mine} does not include backend/{theirs}"
        return None
    if LAYERS[top] >= LAYERS[layer]:
        way = "up" if LAYERS[top] > LAYERS[layer] else "sideways"
        return f"{layer} (layer {LAYERS[layer]}) does not include {top} (layer {LAYERS[top]}): that points {way}"
    return None


def check_public(target, is_system):
    if is_system:
        return None if target in STANDARD else f"include/tern uses the standard library only, not <{target}>"
    return None if target.startswith("tern/") else 'include/tern includes "tern/..." only'


def check_app(path, target, is_system, root):
    """apps/NAME/... and python/: the public headers, libraries, and files of their own folder."""
    if is_system:
        return None
    if target.startswith("tern/") or target.startswith("tests/") and TEST_FILE.search(path.name):
        return None
    own = root / pathlib.Path(*path.parts[:2] if path.parts[0] == "apps" else path.parts[:1])
    for base in (root / path.parent, own, root / path.parts[0], root):
        found = (base / target).resolve()
        if found.is_file():
            if own.resolve() in found.parents:
                return None
            break
    return f'{own.relative_to(root).as_posix()} uses include/tern and its own folder only, not "{target}"'


def check_tree(root):
    """All broken rules below root, as (file, line, rule), and the number of include lines read."""
    problems, lines = [], 0
    for folder in ("src", "include", "apps", "python"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in SOURCES or not file.is_file():
                continue
            relative = file.relative_to(root)
            is_test = bool(TEST_FILE.search(file.name))
            for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                lines += 1
                is_system, target = match[1] == "<", match[2]
                rule = None
                if ".." in target.split("/"):
                    rule = "no '..' in an include: paths are relative to src/ or include/"
                elif folder == "include":
                    rule = check_public(target, is_system)
                elif folder == "src":
                    path = file.relative_to(root / "src")
                    rule = None if len(path.parts) == 1 else f"src/{path.parts[0]} is no known layer" if path.parts[0] not in LAYERS \
                        else check_source(path, target, is_system, is_test, root)
                else:
                    rule = check_app(relative, target, is_system, root)
                if rule:
                    problems.append((relative.as_posix(), number, rule))
    return problems, lines


# (file, include line, part of the expected rule; None = allowed)
SELF_TEST = [
    ("src/base/a.h", '#include "tensor/shape.h"', "points up"),
    ("src/tensor/a.h", '#include "text/bpe.h"', "points sideways"),
    ("src/io/a.cpp", '#include "program/program.h"', "points sideways"),
    ("src/program/a_test.cpp", '#include "models/registry.h"', "points up"),
    ("src/models/qwen3/a.cpp", '#include "backend/backend.h"', "points sideways"),
    ("src/models/qwen3/a.cpp", '#include "program/builder.h"', None),
    ("src/backend/cpu/a.cpp", '#include "models/registry.h"', "points sideways"),
    ("src/backend/cpu/a.cpp", '#include "backend/backend.h"', None),
    ("src/backend/cpu/a.cpp", '#include "backend/choice/choice.h"', None),
    ("src/backend/cpu/a.cpp", '#include "backend/registry.h"', "does not include backend/registry"),
    ("src/backend/cpu/a.cpp", '#include "reference/norm.h"', None),
    ("src/backend/cuda/a.cpp", '#include "backend/metal/device.h"', "does not include backend/metal"),
    ("src/backend/cpu/a.cpp", '#include "backend/gpu/math/rope.h"', "does not include backend/gpu"),
    ("src/backend/cuda/a.cpp", '#include "backend/gpu/params/gemv.h"', None),
    ("src/backend/cache/a.cpp", '#include "backend/choice/table.h"', "does not include backend/choice"),
    ("src/backend/a.cpp", '#include "backend/cpu/cpu_backend.h"', "does not include backend/cpu"),
    ("src/backend/registry.cpp", '#include "backend/cpu/cpu_backend.h"', None),
    ("src/backend/cpu/kernels/k/x86_avx2_lut.cpp", "#include <vector>", "one instruction set"),
    ("src/backend/cpu/kernels/k/x86_avx2_lut.cpp", "#include <immintrin.h>", None),
    ("src/backend/cpu/kernels/k/x86_avx2_lut.cpp", '#include "base/half.h"', "one instruction set"),
    ("src/backend/cpu/kernels/k/x86_avx2_math.h", "#include <string>", "one instruction set"),
    ("src/backend/cpu/kernels/k/x86_avx2_lut.cpp", '#include "backend/cpu/kernels/k/k.h"', None),
    ("src/backend/cpu/kernels/k/x86_avx2_lut.cpp", '#include "backend/cpu/kernels/math/x86_avx2_math.h"', None),
    ("src/runtime/a.cpp", '#include "../io/gguf.h"', "no '..'"),
    ("src/runtime/a.cpp", '#include "cli/run.h"', "is no layer"),
    ("src/io/a_test.cpp", '#include "tests/fixtures/bad_gguf.h"', None),
    ("src/io/a.cpp", '#include "tests/fixtures/bad_gguf.h"', "is no layer"),
    ("src/oddity/a.cpp", '#include "base/error.h"', "no known layer"),
    ("include/tern/a.h", "#include <fmt/format.h>", "standard library only"),
    ("include/tern/a.h", '#include "base/error.h"', '"tern/..." only'),
    ("include/tern/a.h", "#include <string>", None),
    ("apps/cli/main.cpp", '#include "runtime/session.h"', "its own folder only"),
    ("apps/cli/main.cpp", '#include "tern/engine.h"', None),
]


def self_test():
    failed = 0
    for number, (name, line, expected) in enumerate(SELF_TEST):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            file = root / name
            file.parent.mkdir(parents=True)
            file.write_text(f"// A file.\n{line}\n", encoding="utf-8")
            problems, _ = check_tree(root)
            right = not problems if expected is None else (
                len(problems) == 1 and problems[0][:2] == (name, 2) and expected in problems[0][2])
            if not right:
                failed += 1
                print(f"self-test {number}: {name}: {line}: expected {expected!r}, got {problems}")
    # A file of the own folder is allowed for an app, and a kernel header written without its path is named.
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "apps/cli").mkdir(parents=True)
        (root / "apps/cli/options.h").write_text("// Options.\n")
        (root / "apps/cli/main.cpp").write_text('// Main.\n#include "options.h"\n')
        (root / "src/quant").mkdir(parents=True)
        (root / "src/quant/format.h").write_text("// Format.\n")
        (root / "src/quant/codec.cpp").write_text('// Codec.\n#include "format.h"\n')
        problems, _ = check_tree(root)
        if [p[0] for p in problems] != ["src/quant/codec.cpp"] or "quant/format.h" not in problems[0][2]:
            failed += 1
            print(f"self-test: own folders: {problems}")
    print(f"layers self-test: {len(SELF_TEST) + 1 - failed} passed, {failed} failed")
    return failed


def main():
    if "--self-test" in sys.argv[1:]:
        return 1 if self_test() else 0
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1])
    problems, lines = check_tree(root)
    for file, number, rule in problems:
        print(f"{file}:{number}: {rule}")
    if lines == 0:
        print(f"error: no #include line found below {root}")
        return 1
    print(f"layers: {lines} include lines, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
