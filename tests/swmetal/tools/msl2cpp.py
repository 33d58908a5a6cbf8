#!/usr/bin/env python3
"""Rewrites one .metal file into one C++ file that clang compiles for a CPU. Test only.

usage: msl2cpp.py IN.metal OUT.cpp [--depfile FILE] [--clang PROGRAM] [-DNAME=VALUE ...] [-IFOLDER ...]

A rewriter of tokens, not a parser. Newlines are kept, so every diagnostic names the .metal line. It
  - runs the real preprocessor first: macros and includes are the author's own;
  - refuses what clang accepts and Metal does not (double, lambdas, std::, new, throw, goto ...);
  - gives unsuffixed floating literals an f (MSL has no double) and drops '#pragma unroll';
  - turns function constants into values that the executor holds, and strips every other [[attribute]];
  - moves function-scope 'threadgroup' variables into storage that the executor owns;
  - appends one thunk per kernel and per [[host_name("x")]] instance, and the tables that the executor reads.
"""
import pathlib
import re
import subprocess
import sys

from msl_constants import Constants
from msl_kernels import Kernels
from msl_tokens import Refused, Tokens, blank

NOT_MSL = {
    "double", "new", "delete", "try", "throw", "catch", "goto", "virtual", "dynamic_cast", "typeid", "thread_local",
    "std", "asm", "__asm__", "noexcept",
}
FLOAT_LITERAL = re.compile(r"^(\d[\d']*\.[\d']*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?$")
UNROLL = re.compile(r"#\s*pragma\s+(clang\s+loop|unroll|GCC\s+unroll)")


def refuse_what_is_not_msl(t):
    for k in range(len(t)):
        if t[k] in NOT_MSL:
            t.refuse(k, f"'{t[k]}' is not MSL")
        if t[k] == "[" and t.after(k) in ("&", "=", "]"):
            before = t.before(k)
            if before in ("=", "(", ",", "return", "{", ";", "}") and t[k + 1] != "[":
                t.refuse(k, "lambda expressions are not MSL")


def literals_and_pragmas(t):
    for k in range(len(t)):
        if FLOAT_LITERAL.match(t[k]):
            t[k] += "f"
        elif UNROLL.match(t[k]):
            t[k] = blank(t[k])


def strip_attributes(t):
    for k in range(len(t)):
        if t[k] == "[[":
            t.remove(k, t.attribute_end(k) + 1)


def group_variables(t):
    """threadgroup T name[n], other; at function scope: references to storage of the executor."""
    count = 0
    for k in range(len(t)):
        if t[k] != "threadgroup" or t.before(k) not in ("{", "}", ";", ""):
            continue
        end = t.statement_end(k)
        declaration = t.text(k + 1, end)
        head = re.split(r"[\[=]", declaration)[0]
        if re.search(r"[*&(]", re.sub(r"<.*>", "", head)):
            continue  # a pointer or a reference into threadgroup memory
        found = re.match(
            r"\s*((?:[\w:]+(?:\s*<.*>)?\s+)+?)(\w+\s*(?:\[.*?\]\s*)*(?:,\s*\w+\s*(?:\[.*?\]\s*)*)*)$", declaration, re.S)
        if not found:
            t.refuse(k, f"this threadgroup variable is not understood (has it an initialiser?): {declaration.strip()}")
        replacement = ""
        for one in re.split(r",\s*(?![^\[]*\])", found.group(2)):
            name, dimensions = re.match(r"(\w+)\s*(.*)$", one.strip(), re.S).groups()
            dimensions = dimensions.replace("\n", " ")
            replacement += (f"threadgroup auto& {name} = ::metal::swm_group_variable<{found.group(1).strip()}"
                            f"{dimensions}, {count}>(); ")
            count += 1
        t.remove(k, end + 1, replacement)


def rewrite(text, source):
    t = Tokens(text)
    refuse_what_is_not_msl(t)
    literals_and_pragmas(t)
    kernels = Kernels(t)
    functions = t.functions()
    constants = Constants(t)
    constants.rewrite()
    thunks, rows = kernels.thunks(constants, functions)
    strip_attributes(t)
    group_variables(t)
    return "".join([
        '#include "msl.h"\n', "".join(t.t), '\n#line 1 "<thunks>"\n',
        "#undef kernel\n#undef device\n#undef thread\n#undef threadgroup\n#undef constant\nnamespace {\n",
        "extern const swm_module swm_self;\n", thunks,
        "const swm_kernel swm_kernels[] = {\n  %s};\n" % ",\n  ".join(rows or ["{}"]),
        "const swm_constant swm_constants[] = {\n  %s};\n" % ",\n  ".join(constants.table() or ["{}"]),
        'const swm_module swm_self = {"%s", swm_kernels, %du, swm_constants, %du};\n' %
        (source, len(rows), len(constants.rows)),
        "SWM_SECTION const swm_module* const swm_entry = &swm_self;\n}  // namespace\n",
    ])


def preprocess(clang, source, flags, depfile, target):
    stub = pathlib.Path(__file__).resolve().parent.parent / "msl" / "stub"
    command = [clang, "-E", "-x", "c++", "-std=c++14", "-nostdinc", "-D__METAL__=1", "-D__METAL_VERSION__=310",
               "-I", str(stub), *flags, source]
    if depfile:
        command += ["-MD", "-MF", depfile, "-MT", target]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def main(arguments):
    options, flags, names = {"--depfile": "", "--clang": "clang++-19", "--target": ""}, [], []
    arguments = list(arguments)
    while arguments:
        argument = arguments.pop(0)
        if argument in options:
            options[argument] = arguments.pop(0)
        else:
            (flags if argument.startswith("-") else names).append(argument)
    if len(names) != 2:
        sys.stderr.write(__doc__)
        return 2
    source, target = names
    done = preprocess(options["--clang"], source, flags, options["--depfile"], options["--target"] or target)
    sys.stderr.write(done.stderr)
    if done.returncode:
        return 1
    try:
        result = rewrite(done.stdout, pathlib.PurePath(source).name)
    except Refused as refusal:
        sys.stderr.write(f"{refusal} [software Metal]\n")
        return 1
    pathlib.Path(target).write_text(result, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
