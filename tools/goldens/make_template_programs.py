#!/usr/bin/env python3
"""Writes tests/golden/templates/generated.json: random template programs with what the reference renderer makes of them.

usage: make_template_programs.py [--count 2000] [--seed 1] [--out FILE]

Needs jinja2 3.1.6 and transformers 5.24.0, whose environment for chat templates is the reference. Each entry is
{id, template, vars, expected} or {id, template, vars, error_kind}; src/text/chat_template/golden_test.cpp replays them.
"""
import argparse
import copy
import json
import os
import random
import warnings

import jinja2
import transformers.utils.chat_template_utils as hf

warnings.simplefilter("ignore")

VARIABLES = {
    "messages": [
        {"role": "system", "content": "Be <b>brief</b> & kind."},
        {"role": "user", "content": "  Grüße, 世界! 😀\n\tZeile 2  "},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nJa.", "tool_calls": [
            {"type": "function", "function": {"name": "get", "arguments": {"q": "a\"b\\c", "n": 1.5, "deep": {"z": [1, None, True]}}}}]},
        {"role": "tool", "content": [{"type": "text", "text": "42"}, {"type": "image"}]},
        {"role": "user", "content": "", "items": [1, 2]},
    ],
    "tools": [{"type": "function", "function": {"name": "get", "description": "it's\nfine", "parameters": {"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "number"}}, "required": ["q"]}}}],
    "s": "Hello, World", "u": "ÄÖ ß ﬁ Σας \u00a0x", "e": "", "n": 7, "z": 0, "f": 2.5, "g": -0.125, "t": True, "no": None,
    "l": [3, 1, 2], "w": ["b", "A", "c", "a"], "d": {"b": 2, "A": 1, "c": None, "items": "x"}, "nested": [[1, [2, 3]], [4]], "m": [1, "a", None, 2.0, True],
}
STRINGS = ["'a'", "'b c'", "''", "'<|x|>'", "'\\n'", "'é世'", "'</think>'", "\"it's\"", "'0'", "'12'", "' 3.5 '", "'A-b'", "','", "'name'", "'role'"]
NAMES = ["s", "u", "e", "n", "z", "f", "g", "t", "no", "l", "w", "d", "nested", "m", "messages", "tools", "undef", "loopvar", "acc"]
FILTERS = ["upper", "lower", "trim", "length", "string", "list", "first", "last", "title", "capitalize", "tojson", "tojson(indent=2)", "int", "float",
           "sort", "reverse", "reverse|list", "join(',')", "join", "unique|list", "default('d')", "default('d', true)", "safe", "e", "abs", "round", "round(1)",
           "items|list", "dictsort", "replace('a', 'bb')", "indent(2)", "indent(2, true)", "map('string')|join('|')", "map('upper')|list", "select|list",
           "reject('none')|list", "selectattr('role')|list", "selectattr('role', 'equalto', 'user')|map(attribute='content')|list",
           "map(attribute='role')|list", "max", "min", "sum", "wordcount", "truncate(9)", "center(9)", "batch(2)|list", "slice(2)|list",
           "groupby('role')", "tojson(ensure_ascii=true)", "format(1, 2)", "count", "tojson(sort_keys=true)", "urlencode", "attr('x')", "sort(reverse=true)",
           "tojson(separators=(',', ':'))", "rejectattr('content', 'string')|list|length", "int(5)", "trim('a ')"]
TESTS = ["defined", "undefined", "none", "string", "number", "mapping", "sequence", "iterable", "boolean", "integer", "float", "odd", "even", "true", "false",
         "lower", "upper", "in [1, 2, 'a']", "equalto 1", "divisibleby 2", "callable", "sameas none", "escaped", "gt 1", "eq('a')", "ne 1"]
METHODS = ["upper()", "lower()", "strip()", "strip('a<')", "lstrip()", "rstrip('>')", "split()", "split('a')", "split(' ', 1)", "rsplit(' ', 1)", "startswith('H')",
           "endswith(('d', 'x'))", "replace('l', 'L')", "replace('', '-', 2)", "title()", "capitalize()", "find('l')", "rfind('l')", "count('l')", "index('l')",
           "splitlines()", "partition('o')", "rpartition('o')", "join(w)", "zfill(4)", "center(20, '*')", "ljust(14, '.')", "rjust(14)", "isdigit()", "isalpha()",
           "isupper()", "islower()", "isspace()", "isalnum()", "istitle()", "swapcase()", "removeprefix('He')", "removesuffix('d')", "format(1, x=2)",
           "get('b')", "get('x', 1)", "keys()|list", "values()|list", "items()|list", "copy()", "count(1)", "index(1)", "append(1)", "pop()", "update({})", "expandtabs()"]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "and", "or", "in", "not in", "~", "+", "=="]


class Generator:
    def __init__(self, rng):
        self.rng = rng
        self.macros = 0

    def pick(self, options):
        return self.rng.choice(options)

    def literal(self):
        return self.pick([self.pick(STRINGS), self.pick(STRINGS), str(self.rng.randint(-5, 12)), self.pick(["1.5", "0.1", "2e3", "1.0", "100.25"]),
                          self.pick(["true", "false", "none", "True", "None"]), "[1, 'a', none]", "{'k': 1, 'j': [2]}", "(1, 'b')", "[]", "{}"])

    def access(self):
        name = self.pick(NAMES)
        for _ in range(self.rng.randint(0, 2)):
            name += self.pick([".role", ".content", "[0]", "[-1]", "['role']", "[1:]", "[::-1]", "[:2]", "[n]", "[s]", ".b", "['b']", ".items", "[1].content", "[5]",
                               "[1:3]", "[::2]", "[-2:]", ".function.name", "['content'][0]"])
        return name

    def expression(self, depth):
        kind = self.rng.randint(0, 12)
        if depth <= 0 or kind == 0:
            return self.pick([self.literal(), self.access(), self.access()])
        if kind <= 2:
            return self.access()
        if kind <= 5:
            return f"{self.atom(depth)}|{self.pick(FILTERS)}"
        if kind == 6:
            return f"{self.atom(depth)}.{self.pick(METHODS)}"
        if kind <= 8:
            return f"{self.expression(depth - 1)} {self.pick(BINARY)} {self.expression(depth - 1)}"
        if kind == 9:
            return f"{self.atom(depth)} is {self.pick(['', 'not '])}{self.pick(TESTS)}"
        if kind == 10:
            return f"{self.expression(depth - 1)} if {self.expression(depth - 1)}" + self.pick(["", f" else {self.expression(depth - 1)}"])
        if kind == 11:
            return self.pick(["not ", "-", "+"]) + self.atom(depth)
        return self.pick(["[{0}, {1}]", "{{'k': {0}, {1}: 2}}", "range({0})|list", "dict(a={0}, b={1})", "'%s|%s' % ({0}, {1})", "'{{}} {{}}'.format({0}, {1})", "({0}, {1})"]).format(
            self.expression(depth - 1), self.expression(depth - 1))

    def atom(self, depth):
        return self.access() if self.rng.random() < 0.5 else f"({self.expression(depth - 1)})"

    def tag(self, inside):
        return "{%" + self.pick(["", "", "-", "-", "+"]) + " " + inside + " " + self.pick(["", "", "-", "-", "+"]) + "%}"

    def text(self):
        return self.pick(["", "", "x", " ", "\n", "\n  ", "a\n\n", "  b ", "{", "%}", "é", "\t", "# "])

    def output(self, depth):
        return "{{" + self.pick(["", "-"]) + " " + self.expression(depth) + " " + self.pick(["", "-"]) + "}}"

    def block(self, depth, loop=False):
        return "".join(self.text() + self.statement(depth, loop) for _ in range(self.rng.randint(1, 3))) + self.text()

    def statement(self, depth, loop):
        kind = self.rng.randint(0, 13)
        if depth <= 0 or kind <= 4:
            return self.output(2)
        if kind <= 6:
            branches = self.tag("if " + self.expression(1).replace(" if ", " or ")) + self.block(depth - 1, loop)
            if self.rng.random() < 0.3:
                branches += self.tag("elif " + self.expression(1).replace(" if ", " or ")) + self.block(depth - 1, loop)
            if self.rng.random() < 0.5:
                branches += self.tag("else") + self.block(depth - 1, loop)
            return branches + self.tag("endif")
        if kind <= 8:
            return self.loop(depth)
        if kind == 9:
            return self.tag(f"set {self.pick(['acc', 's', 'x', 'a, b'])} = {self.expression(2)}")
        if kind == 10:
            filters = self.pick(["", "", " | upper", " | trim | title"])
            return self.tag(f"set acc{filters}") + self.block(depth - 1, loop) + self.tag("endset") + "{{ acc }}"
        if kind == 11:
            self.macros += 1
            name = f"m{self.macros}"
            call = self.pick([f"{name}({self.expression(1)})", f"{name}()", f"{name}(1, b={self.expression(1)})", f"{name}(b=1, c=2)"])
            return (self.tag(f"macro {name}(a, b={self.literal()})") + self.block(depth - 1) + "{{ a }}{{ b }}{{ acc }}" + self.tag("endmacro") + "{{ " + call + " }}")
        if kind == 12:
            return self.pick([self.tag("generation") + self.block(depth - 1) + self.tag("endgeneration"),
                              self.tag("filter upper") + self.block(depth - 1) + self.tag("endfilter"), "{#" + self.pick(["", "-"]) + " c " + self.pick(["", "-"]) + "#}",
                              "{% set ns = namespace(c=0) %}{% for q in l %}{% set ns.c = ns.c + q %}{% endfor %}{{ ns.c }}"])
        return self.tag(self.pick(["break", "continue"])) if loop else self.output(1)

    def loop(self, depth):
        target, over = self.pick([("x", self.atom(1)), ("x", "l"), ("x", "messages"), ("k, v", "d.items()"), ("k, v", "d|items"), ("x", "range(3)"), ("x", "u"), ("x, y", self.atom(1)), ("x", "w|map('upper')")])
        condition = self.pick(["", "", "", " if x", " if loopvar is undefined"])
        body = self.block(depth - 1, True) + self.pick(["", "{{ loop.index }}", "{{ loop.last }}", "{{ loop.previtem }}", "{{ loop.nextitem|default('-') }}", "{{ loop.length }}", "{{ loop.cycle('o', 'e') }}", "{{ x }}",
                                                        "{% set acc = x %}", "{{ loop.revindex0 }}{{ loop.first }}", "{{ loop.changed(x) }}"])
        rest = self.tag("else") + self.block(depth - 1) if self.rng.random() < 0.2 else ""
        return self.tag(f"for {target} in {over}{condition}") + body + rest + self.tag("endfor")


def kind_of(error):
    for cls, kind in [(jinja2.TemplateSyntaxError, "syntax"), (SyntaxError, "syntax"), (jinja2.exceptions.SecurityError, "security"),
                      (jinja2.UndefinedError, "undefined"), (jinja2.exceptions.FilterArgumentError, "filter_argument"),
                      (jinja2.TemplateRuntimeError, "runtime"), (ZeroDivisionError, "zero_division"), (OverflowError, "overflow"),
                      (RecursionError, "recursion"), (IndexError, "index"), (TypeError, "type"), (ValueError, "value")]:
        if isinstance(error, cls):
            return kind
    return "other"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default=os.path.join(os.path.dirname(__file__), "../../tests/golden/templates/generated.json"))
    args = parser.parse_args()
    rng = random.Random(args.seed)
    entries, errors = [], 0
    while len(entries) < args.count:
        template = Generator(rng).block(rng.randint(1, 3))
        names = sorted(name for name in VARIABLES if name in template)
        entry = {"id": f"{args.seed}.{len(entries)}", "template": template, "vars": names}
        try:
            entry["expected"] = hf._compile_jinja_template(template).render(**{name: copy.deepcopy(VARIABLES[name]) for name in names})  # indent changes lists in place
            if " at 0x" in entry["expected"].lower() or len(entry["expected"]) > 4000:
                continue  # addresses of the reference's own objects
        except Exception as error:  # whatever the reference fails with is the expectation
            entry["error_kind"] = kind_of(error)
            if errors > len(entries) * 0.3:
                continue  # mostly programs that run
            errors += 1
        entries.append(entry)
    with open(args.out, "w", encoding="utf-8") as out:
        lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
        out.write('{"variables": ' + json.dumps(VARIABLES, ensure_ascii=False) + ',\n"programs": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
