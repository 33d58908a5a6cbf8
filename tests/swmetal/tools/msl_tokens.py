"""Tokens of a preprocessed .metal file: finding one's way, places for messages, removal that keeps line numbers."""
import re

TOKEN = re.compile(
    r"""\s+|\#[^\n]*|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[A-Za-z_]\w*"""
    r"""|\.?\d(?:[eEpP][+-]|[\w.'])*|\[\[|\]\]|::|->|<<=|>>=|&&|\|\||.""",
    re.S,
)
IDENTIFIER = re.compile(r"^[A-Za-z_]\w*$")
LINE_MARK = re.compile(r'#\s*(?:line\s+)?(\d+)\s+"([^"]*)"')


class Refused(Exception):
    """What Metal would not accept, or what this rewriter does not understand; with its place."""


def is_space(token):
    return token.isspace() or token.startswith(("#", "//", "/*"))


def is_identifier(token):
    return bool(IDENTIFIER.match(token))


def blank(token):
    """What is left of a removed token: its newlines."""
    return "\n" * token.count("\n") or " "


class Tokens:
    def __init__(self, text):
        self.t = TOKEN.findall(text)

    def __len__(self):
        return len(self.t)

    def __getitem__(self, i):
        return self.t[i]

    def __setitem__(self, i, token):
        self.t[i] = token

    def next(self, i):
        """Index of the next token that is not space, or the length."""
        i += 1
        while i < len(self.t) and is_space(self.t[i]):
            i += 1
        return i

    def prev(self, i):
        """Index of the previous token that is not space, or -1."""
        i -= 1
        while i >= 0 and is_space(self.t[i]):
            i -= 1
        return i

    def before(self, i):
        """The previous token that is not space, or the empty string."""
        i = self.prev(i)
        return self.t[i] if i >= 0 else ""

    def after(self, i):
        i = self.next(i)
        return self.t[i] if i < len(self.t) else ""

    def text(self, first, last):
        return "".join(self.t[first:last])

    def place(self, i):
        """FILE:LINE of a token. Counts from the start: for messages only."""
        line, name = 1, "<source>"
        for token in self.t[:i]:
            mark = LINE_MARK.match(token)
            if mark:
                line, name = int(mark.group(1)) - 1, mark.group(2)
            line += token.count("\n")
        return f"{name}:{line}"

    def refuse(self, i, why):
        raise Refused(f"{self.place(i)}: {why}")

    def closing(self, i, opens="(", closes=")"):
        """Index of the bracket that closes the one at i. '[[' and ']]' count twice among square ones."""
        depth = 0
        for k in range(i, len(self.t)):
            token = self.t[k]
            depth += token.count(opens) if token.strip(opens) == "" else 0
            depth -= token.count(closes) if token.strip(closes) == "" else 0
            if depth == 0:
                return k
        return self.refuse(i, f"no {closes} closes this {opens}")

    def opening(self, i, opens="(", closes=")"):
        """Index of the bracket that opens what the one at i closes."""
        depth = 0
        for k in range(i, -1, -1):
            depth += (self.t[k] == closes) - (self.t[k] == opens)
            if depth == 0:
                return k
        return self.refuse(i, f"no {opens} opens this {closes}")

    def attribute_end(self, i):
        return self.closing(i, "[", "]")

    def statement_end(self, i):
        """Index of the semicolon that ends the statement at i."""
        depth = 0
        for k in range(i, len(self.t)):
            if self.t[k] == ";" and depth == 0:
                return k
            depth += (self.t[k] in "([{") - (self.t[k] in ")]}")
        return self.refuse(i, "no ; ends this statement")

    def remove(self, first, last, replacement=""):
        """Replaces the tokens [first, last) and keeps their newlines."""
        newlines = "".join("\n" * token.count("\n") for token in self.t[first:last])
        for k in range(first, last):
            self.t[k] = ""
        self.t[first] = replacement + newlines if replacement or newlines else " "

    def functions(self):
        """Name -> identifiers of the bodies of all functions of that name."""
        found = {}
        for k, token in enumerate(self.t):
            if token != "{" or self.before(k) not in (")", "const"):
                continue
            close = self.prev(k)
            if self.t[close] == "const":
                close = self.prev(close)
            if self.t[close] != ")":
                continue
            name = self.before(self.opening(close))
            if is_identifier(name) and name not in ("if", "for", "while", "switch", "catch"):
                body = range(k, self.closing(k, "{", "}"))
                found.setdefault(name, set()).update(
                    self.t[i] for i in body if is_identifier(self.t[i]) and self.before(i) not in (".", "->"))
        return found
