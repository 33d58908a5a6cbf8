#!/usr/bin/env python3
"""House rules for kernels that no compiler here holds (docs/software-metal.md, rules).

usage: lint_metal.py FILE.metal ...
       lint_metal.py --self-test

Prints FILE:LINE and the rule; exit code 1 if there is any.
"""
import pathlib
import re
import sys

VECTOR = r"(?:float|half|bfloat|int|uint|short|ushort|char|uchar|long|ulong|bool)[234]"
POINTER_SPACES = {"device", "constant", "threadgroup", "thread"}


def without_comments(text):
    """Comments and literals blanked, lines kept."""
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)


def balanced(text, start):
    """The text between the parenthesis at start and the one that closes it."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return text[start + 1:i]
    return text[start + 1:]


def split_parameters(text):
    parts, depth, current = [], 0, ""
    for c in text:
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += c
    return [p for p in [*parts, current] if p.strip()]


def kernel_parameters(text):
    for kernel in re.finditer(r"\bkernel\b[^;{(]*\b(\w+)\s*\(", text):
        inside = balanced(text, kernel.end() - 1)
        if text[kernel.end() + len(inside) + 1:].lstrip()[:1] != "{":
            continue  # an instance
        for parameter in split_parameters(inside):
            if "[[" not in parameter:
                yield kernel.start(), f"kernel {kernel[1]}: a parameter without an attribute: {' '.join(parameter.split())}"


def casts(text):
    for cast in re.finditer(r"(?<![\w>\])])\(\s*(" + VECTOR + r")\s*\)\s*[\w(.-]", text):
        yield cast.start(), f"a C-style cast to {cast[1]}; write {cast[1]}(x)"


def constants(text):
    for literal in re.finditer(r"(?<![\w.])(\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])", text):
        yield literal.start(), f"a floating literal without a suffix: {literal[0]}"
    for constant in re.finditer(r"\[\[\s*function_constant\s*\(\s*\w+\s*\)\s*\]\]\s*=", text):
        yield constant.start(), "a function constant with a default"


def pointers(text):
    for function in re.finditer(r"\b(?!if|for|while|switch|return)(\w+)\s*\(", text):
        inside = balanced(text, function.end() - 1)
        if not re.match(r"\s*\{", text[function.end() + len(inside) + 1:]):
            continue
        for parameter in split_parameters(inside):
            words = set(re.findall(r"\w+", parameter))
            if ("*" in parameter or "&" in parameter) and not words & POINTER_SPACES:
                yield function.start(), f"{function[1]}: a pointer without an address space: {' '.join(parameter.split())}"


def unsupported(text):
    for name in re.finditer(r"\b(texture[123]d\w*|sampler|imageblock\w*|quad_\w+|\w+\s*\[\[\s*stage_in)\b", text):
        yield name.start(), f"{name[0]} is not offered by software Metal"


RULES = (kernel_parameters, casts, constants, pointers, unsupported)


def lint(text):
    clean = without_comments(text)
    return sorted((clean.count("\n", 0, at) + 1, why) for rule in RULES for at, why in rule(clean))


SELF_TEST = [
    ("kernel void f(device float* a [[buffer(0)]]) { a[0] = 1.0f; }", None),
    ("kernel void f(device float* a) { }", "without an attribute"),
    ("void f() { float4 v = (float4)x; }", "C-style cast to float4"),
    ("void f() { float v = 1.0; }", "without a suffix"),
    ("void f() { float v = 1.0h + 2.5f + 1e3f; } // 1.0", None),
    ("static float f(float* p) { return p[0]; }", "without an address space"),
    ("static float f(device float* p, thread float& q) { return p[0]; }", None),
    ("constant bool k [[function_constant(0)]] = true;", "with a default"),
    ("void f() { quad_sum(1.0f); }", "quad_sum is not offered"),
]


def self_test():
    failed = 0
    for text, expected in SELF_TEST:
        found = [why for _, why in lint(text)]
        if not (not found if expected is None else any(expected in why for why in found)):
            failed += 1
            print(f"self-test: {text}: expected {expected!r}, got {found}")
    print(f"lint_metal self-test: {len(SELF_TEST) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    found = 0
    for name in arguments:
        for line, why in lint(pathlib.Path(name).read_text(encoding="utf-8")):
            print(f"{name}:{line}: {why}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
