"""What the tests of the program share: running it, and what every refusal looks like."""
import os
import pathlib
import re
import signal
import subprocess
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
paths = types.SimpleNamespace(tern="", model="")  # of the program and of SmolLM2; set by cli_test.py
QUESTION = "What is the capital of France? Answer with one word."
ANSWER = "The capital of France is Paris."


def seconds_to_stop():
    """The rule is one second; a sanitizer's program may take two."""
    program = pathlib.Path(paths.tern).read_bytes()
    return 2 if b"__asan_init" in program or b"__tsan_init" in program else 1


def clean_environment(extra=None):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TERN_", "LLAMA_ARG_"))}
    return {**kept, **(extra or {})}


class Result:
    def __init__(self, code, out, err):
        self.code, self.out_bytes = code, out
        self.out, self.err = out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


def tern(*words, stdin=b"", env=None, timeout=600):
    done = subprocess.run([paths.tern, *map(str, words)], input=stdin, capture_output=True, env=clean_environment(env), timeout=timeout)
    return Result(done.returncode, done.stdout, done.stderr)


def run(*words, **kwargs):
    """A short greedy answer."""
    return tern("run", paths.model, "--temp", "0", "-n", "12", *words, **kwargs)


def prompt_tokens(result):
    return int(re.search(r"\[ prompt (\d+) tok", result.err)[1])


class Case(unittest.TestCase):
    def refused(self, result, code, *parts):
        """One line "error: ..." with these parts, nothing on stdout, no signal."""
        self.assertEqual(result.code, code, result.err)
        self.assertEqual(result.out, "")
        errors = [line for line in result.err.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, result.err)
        self.assertRegex(errors[0], r"^error: [^:]+: .")
        for part in parts:
            self.assertIn(part, errors[0])

    def done(self, result):
        self.assertEqual(result.code, 0, result.err)
        self.assertNotIn("error:", result.err)
        return result
