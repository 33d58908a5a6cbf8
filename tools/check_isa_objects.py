#!/usr/bin/env python3
"""Fails on a weak symbol in an object that was compiled for one instruction set.

usage: check_isa_objects.py BUILD_DIR        needs nm

The linker keeps one copy of an inline function. If that copy came from x86_avx512_*.cpp, the whole program would use AVX-512 in it;
so these files define nothing that is shared: no weak (W, V) and no unique (u) symbol.
"""
import pathlib
import re
import subprocess
import sys

ISA_OBJECT = re.compile(r"(^|/)(x86|arm)_[^/]*\.cpp\.o$")


def main():
    build = pathlib.Path(sys.argv[1])
    objects = sorted(o for o in build.rglob("*.o") if ISA_OBJECT.search(o.as_posix()))
    bad = 0
    for path in objects:
        names = subprocess.run(["nm", "-C", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        for line in names.splitlines():
            match = re.match(r"^[0-9a-f]* ([WVwvu]) (.*)$", line)
            if match:
                bad += 1
                print(f"{path.relative_to(build)}: shared symbol {match[2]} ({match[1]})")
    if not objects:
        print(f"error: no object of one instruction set below {build}")
        return 1
    print(f"instruction sets: {len(objects) - (1 if bad else 0)} passed, {1 if bad else 0} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
