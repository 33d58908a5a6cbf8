"""Kernels of a file, their parameters, and the thunks through which the executor calls them."""
import re

from msl_tokens import is_space

POSITIONS = {
    "thread_position_in_grid", "threadgroup_position_in_grid", "thread_position_in_threadgroup",
    "thread_index_in_threadgroup", "thread_index_in_simdgroup", "simdgroup_index_in_threadgroup",
    "threads_per_threadgroup", "dispatch_threads_per_threadgroup", "threadgroups_per_grid", "threads_per_grid",
    "threads_per_simdgroup", "thread_execution_width", "simdgroups_per_threadgroup",
    "dispatch_simdgroups_per_threadgroup", "quadgroup_index_in_threadgroup", "thread_index_in_quadgroup",
}


class Kernel:
    def __init__(self, name, parameters, is_template, max_threads, at):
        self.name = name
        self.parameters = parameters  # lists of ("attribute" or "token", text)
        self.is_template = is_template
        self.max_threads = max_threads
        self.at = at


class Kernels:
    """Found before attributes are stripped and before anything is renamed."""

    def __init__(self, tokens):
        self.t = tokens
        self.kernels = []
        self.instances = []  # (host name, expression, token)
        self._normalise()
        for k in [k for k in range(len(tokens)) if tokens[k] == "kernel"]:
            self._found(k)

    def _normalise(self):
        """[[kernel]] and [[kernel, x]] are the same as the keyword."""
        t = self.t
        for k in range(len(t)):
            if t[k] == "kernel" and t.before(k) in ("[[", ",") and t.after(k) in ("]]", ","):
                opens = k
                while t[opens] != "[[":
                    opens -= 1
                end = t.attribute_end(opens)
                rest = t.text(opens + 1, end).replace("kernel", " ", 1).strip(" ,\n")
                t.remove(opens, end + 1)
                t[opens] = (f"[[{rest}]] " if rest else "") + t[opens]
                t[end] = "kernel "
                t.t[opens:end + 1] = type(t)("".join(t.t[opens:end])).t + ["kernel", " "]
                return self._normalise()
        return None

    def _found(self, k):
        t = self.t
        before, attributes = t.prev(k), ""
        while before >= 0 and t[before] == "]]":
            start = before
            while t[start] != "[[":
                start -= 1
            attributes += t.text(start, before)
            before = t.prev(start)
        attributes = re.sub(r'"\s*"', "", attributes)  # adjacent literals are one
        host = re.search(r'host_name\s*\(\s*"([^"]+)"', attributes)
        if host and before >= 0 and t[before] == "template":
            self._instance(k, host.group(1))
            return
        opens = k
        while t[opens] not in ("(", ";"):
            opens += 1
        if t[opens] == ";":
            return
        closes = t.closing(opens)
        if t.after(closes) != "{":
            return  # a declaration
        limit = re.search(r"max_total_threads_per_threadgroup\s*\(\s*(\d+)", attributes)
        self.kernels.append(Kernel(t.before(opens), self._parameters(opens, closes), before >= 0 and t[before] == ">",
                                   int(limit.group(1)) if limit else 0, k))

    def _instance(self, k, host):
        """template [[host_name("x")]] kernel TYPE name<arguments>(...);"""
        t = self.t
        text = t.text(k + 1, t.statement_end(k)).strip()
        found = re.search(r"(\w+)\s*<", text)
        if not found:
            t.refuse(k, f"an instance of a kernel template names its arguments: {text}")
        depth, end = 0, found.end() - 1
        for end in range(found.end() - 1, len(text)):
            depth += (text[end] == "<") - (text[end] == ">")
            if depth == 0:
                break
        self.instances.append((host, text[found.start(1):end + 1], found.group(1), k))

    def _parameters(self, opens, closes):
        t, params, current, depth, i = self.t, [], [], 0, opens + 1
        while i < closes:
            if t[i] == "[[":
                end = t.attribute_end(i)
                current.append(("attribute", t.text(i + 1, end).strip()))
                i = end + 1
                continue
            depth += (t[i] in ("(", "[", "{", "<")) - (t[i] in (")", "]", "}", ">"))
            if t[i] == "," and depth == 0:
                params.append(current)
                current = []
            elif not is_space(t[i]):
                current.append(("token", t[i]))
            i += 1
        return params + [current] if current else params

    # ---- thunks ----

    def thunks(self, constants, functions):
        """(C++ text, rows of the kernel table)."""
        by_name = {kernel.name: kernel for kernel in self.kernels}
        work = [(kernel.name, kernel.name, kernel) for kernel in self.kernels if not kernel.is_template]
        for host, expression, name, at in self.instances:
            if name not in by_name:
                self.t.refuse(at, f"{name} is no kernel of this file")
            work.append((host, expression, by_name[name]))
        text, rows = [], []
        for n, (host, expression, kernel) in enumerate(work):
            arguments, buffers, memories = self._arguments(kernel, constants)
            text.append("void swm_thunk_%d(const swm_args* args, const swm_thread* self) {\n"
                        "  (void)args, (void)self;\n"
                        "  metal::bind::call(&::%s%s);\n}\n" % (n, expression, "".join(", " + a for a in arguments)))
            needed = constants.needed_by([kernel.name, *self._conditions(kernel)], functions)
            text.append("const unsigned swm_needs_%d[] = {%s};\n" % (n, ", ".join(map(str, needed)) or "0"))
            rows.append('{"%s", swm_thunk_%d, %dul, %dul, %du, swm_needs_%d, %du, &swm_self}' %
                        (host, n, buffers, memories, kernel.max_threads, n, len(needed)))
        return "".join(text), rows

    def _arguments(self, kernel, constants):
        arguments, masks = [], {"buffer": 0, "threadgroup": 0}
        taken = {"buffer": self._explicit(kernel, "buffer"), "threadgroup": self._explicit(kernel, "threadgroup")}
        for parameter in kernel.parameters:
            attribute = " ".join(value for kind, value in parameter if kind == "attribute")
            tokens = [value for kind, value in parameter if kind == "token"]
            where, index, condition = self._place(kernel, attribute, tokens, taken)
            if where == "position":
                arguments.append("metal::bind::Position{self, metal::bind::Builtin::%s}" % index)
                continue
            if index > 30:
                self.t.refuse(kernel.at, f"{kernel.name}: {where}({index}) is above 30")
            if condition:  # it may stay unbound where its constant is false
                getter = constants.getter(condition) or self.t.refuse(
                    kernel.at, f"{kernel.name}: {condition} is no function constant of this file")
                arguments.append("metal::bind::Buffer{args, %d, bool(%s)}" % (index, getter))
                continue
            masks[where] |= 1 << index
            binding = "Buffer" if where == "buffer" else "GroupMemory"
            arguments.append("metal::bind::%s{args, %d}" % (binding, index))
        return arguments, masks["buffer"], masks["threadgroup"]

    @staticmethod
    def _conditions(kernel):
        """Function constants on which parameters depend."""
        text = " ".join(value for parameter in kernel.parameters for kind, value in parameter if kind == "attribute")
        return re.findall(r"function_constant\s*\(\s*(\w+)\s*\)", text)

    @staticmethod
    def _explicit(kernel, where):
        return {int(m.group(1)) for parameter in kernel.parameters for kind, value in parameter if kind == "attribute"
                for m in [re.search(r"\b%s\s*\(\s*(\d+)\s*\)" % where, value)] if m}

    def _place(self, kernel, attribute, tokens, taken):
        """Where a parameter comes from: (buffer or threadgroup, index, condition) or (position, name, None)."""
        for where in ("buffer", "threadgroup"):
            found = re.search(r"(?<!_)\b%s\s*\(\s*(\d+)\s*\)" % where, attribute)
            if found:
                condition = re.search(r"function_constant\s*\(\s*(\w+)\s*\)", attribute)
                return where, int(found.group(1)), condition.group(1) if condition else None
        names = POSITIONS & set(re.findall(r"\w+", attribute))
        if names:
            return "position", names.pop(), None
        if not attribute and ("*" in tokens or "&" in tokens):  # the next free index, as in Metal
            where = "threadgroup" if "threadgroup" in tokens else "buffer"
            index = next(i for i in range(64) if i not in taken[where])
            taken[where].add(index)
            return where, index, None
        return self.t.refuse(kernel.at, "%s: a parameter without an attribute that is supported: %s [[%s]]" %
                             (kernel.name, " ".join(tokens), attribute))
