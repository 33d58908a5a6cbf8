"""Function constants: globals with [[function_constant(n)]] become values that the executor holds per dispatch."""
import re

from msl_tokens import is_identifier

DEFINED = "is_function_constant_defined"


class Constants:
    """The function constants of a file, and the globals that are computed from them."""

    def __init__(self, tokens):
        self.t = tokens
        self.rows = []       # (name, type, index expression), in the order of the module's table
        self.derived = {}    # name -> identifiers of its initialiser
        self.optional = set()

    def rewrite(self):
        """constant T name [[function_constant(n)]]; and constant T other = f(name); become functions."""
        t = self.t
        for k in range(len(t)):
            if t[k] == "[[":
                self._declaration(k)
        names = {name for name, _, _ in self.rows}
        if not names:
            return
        for k in range(len(t)):
            if t[k] == "constant" and t.before(k)[-1:] in ("", ";", "}", "{"):
                self._derived(k, names | set(self.derived))
        self._uses(names)

    def _declaration(self, k):
        t = self.t
        end = t.attribute_end(k)
        found = re.fullmatch(r"\[\[\s*function_constant\s*\((.*)\)\s*\]\]", t.text(k, end + 1), re.S)
        if not found or t.after(end) != ";":
            return
        name_at = t.prev(k)
        start = name_at
        while t[start] != "constant":
            start = t.prev(start)
            if start < 0 or t[start] in ";{}":
                t.refuse(k, "a function constant is declared as: constant TYPE NAME [[function_constant(N)]];")
        kind, name = t.text(start + 1, name_at).strip(), t[name_at]
        row = len(self.rows)
        self.rows.append((name, kind, found.group(1).strip()))
        t.remove(start, t.next(end) + 1, self._function(kind, name, f"::metal::swm_constant_value<{kind}>({row}u)"))

    @staticmethod
    def _function(kind, name, expression):
        # A constant of the dispatch: the compiler may take a value out of loops.
        return (f"__attribute__((const, unused)) static inline {kind} swm_get_{name}() "
                f"{{ return {expression}; }}")

    def _derived(self, k, names):
        t = self.t
        end = t.statement_end(k)
        words = [i for i in range(k, end) if is_identifier(t[i])]
        equals = next((i for i in range(k, end) if t[i] == "="), None)
        if equals is None or not any(t[i] in names for i in words if i > equals):
            return
        name_at = t.prev(equals)
        kind, name = t.text(k + 1, name_at).strip(), t[name_at]
        if not is_identifier(name) or "*" in kind:
            t.refuse(k, f"a table that depends on a function constant is not understood: {t.text(k, end)}")
        self.derived[name] = {t[i] for i in words if i > equals}
        # The body keeps its tokens, so that uses inside of it are rewritten too.
        t[k] = f"__attribute__((const, unused)) static inline {kind} swm_get_{name}() {{ return {kind}("
        for i in range(k + 1, equals + 1):
            t[i] = "\n" * t[i].count("\n")
        t[end] = "); }"
        if DEFINED in self.derived[name]:
            self.derived[name] -= {t[t.next(t.next(i))] for i in words if t[i] == DEFINED}

    def _uses(self, names):
        t = self.t
        rows = {name: row for row, (name, _, _) in enumerate(self.rows)}
        for k in range(len(t)):
            if t[k] == DEFINED:
                name_at = t.next(t.next(k))
                if t[name_at] not in rows:
                    t.refuse(k, f"{t[name_at]} is no function constant of this file")
                self.optional.add(t[name_at])
                close = t.next(name_at)
                t.remove(k, close + 1, f"(swm_g->is_constant_set({rows[t[name_at]]}u) != 0)")
            elif (t[k] in names or t[k] in self.derived) and t.before(k) not in (".", "->"):
                t[k] = f"swm_get_{t[k]}()"

    def getter(self, name):
        if name in self.derived or any(name == row[0] for row in self.rows):
            return f"swm_get_{name}()"
        return None

    def needed_by(self, names, functions):
        """Rows that functions or expressions of these names may read without asking whether they are set."""
        seen, todo = set(), list(names)
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            todo += (functions.get(name, set()) | self.derived.get(name, set())) - seen
        return [row for row, (name, _, _) in enumerate(self.rows) if name in seen and name not in self.optional]

    def table(self):
        return ["{\"%s\", unsigned(%s), metal::bind::type_code<%s>(), sizeof(%s)}" % (name, index, kind, kind)
                for name, kind, index in self.rows]
