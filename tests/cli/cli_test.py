#!/usr/bin/env python3
"""The program as its users meet it: text, streams, signals and exit codes.

usage: cli_test.py MODEL --tern PROGRAM [-k PART_OF_A_NAME]

MODEL is SmolLM2-135M-Instruct (tools/fetch_smollm2.sh prints where it lies). Ends with "cli: N passed, M failed".
"""
import argparse
import json
import math
import os
import pathlib
import pty
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TERN = MODEL = ""
QUESTION = "What is the capital of France? Answer with one word."
ANSWER = "The capital of France is Paris."


def seconds_to_stop():
    """The rule is one second; a sanitizer's program may take two."""
    program = pathlib.Path(TERN).read_bytes()
    return 2 if b"__asan_init" in program or b"__tsan_init" in program else 1


def clean_environment(extra=None):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TERN_", "LLAMA_ARG_"))}
    return {**kept, **(extra or {})}


class Result:
    def __init__(self, code, out, err):
        self.code, self.out_bytes = code, out
        self.out, self.err = out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


def tern(*words, stdin=b"", env=None, timeout=600):
    done = subprocess.run([TERN, *map(str, words)], input=stdin, capture_output=True, env=clean_environment(env), timeout=timeout)
    return Result(done.returncode, done.stdout, done.stderr)


def run(*words, **kwargs):
    """A short greedy answer."""
    return tern("run", MODEL, "--temp", "0", "-n", "12", *words, **kwargs)


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


class Usage(Case):
    def test_nothing_at_all_shows_the_commands(self):
        result = tern()
        self.assertEqual((result.code, result.out), (2, ""))
        self.assertIn("usage: tern COMMAND", result.err)

    def test_unknown_command_suggests_a_near_one(self):
        self.refused(tern("rnu", MODEL), 2, "rnu", "run")
        self.refused(tern("tokenise", MODEL), 2, "tokenize")

    def test_commands_of_later_builds_are_refused_by_name(self):
        for name in "chat image serve convert quantize calibrate kernels devices".split():
            self.refused(tern(name, MODEL), 2, name, "this build does not have this command")

    def test_help_goes_to_stdout(self):
        for words in (["help"], ["--help"], ["-h"]):
            self.assertIn("perplexity", self.done(tern(*words)).out)
        for name in "run bench info explain tokenize template logits perplexity".split():
            text = self.done(tern("help", name)).out
            self.assertEqual(text, self.done(tern(name, "--help")).out)
            self.assertIn(f"usage: tern {name}", text)
        self.assertIn("--ctx-size", tern("help", "run").out)
        self.refused(tern("help", "chat"), 2, "chat")

    def test_flags_of_later_builds_are_refused_by_name(self):
        for flag in ("--config", "-ngl", "--mlock", "--grammar", "--mirostat", "--lora", "--mmproj", "--numa", "--keep",
                     "--samplers", "--dry-multiplier", "--override-kv", "--check-numerics", "--list-devices", "-lv"):
            self.refused(tern("run", MODEL, flag, "1", "-p", "x"), 2, flag, "this build does not have this flag")
        self.refused(tern("explain", MODEL, "--profile", "h200"), 2, "--profile")

    def test_unknown_flags_suggest_a_near_one(self):
        self.refused(tern("run", MODEL, "--tmep", "0"), 2, "--tmep", "--temp")
        self.refused(tern("info", MODEL, "--temp", "0"), 2, "--temp", "does not take")

    def test_values_are_checked(self):
        self.refused(run("--top-p", "2", "-p", "x"), 2, "--top-p", "0 .. 1")
        self.refused(run("--seed", "soon", "-p", "x"), 2, "--seed", "soon")
        self.refused(run("-ctk", "q8_0", "-p", "x"), 2, "-ctk", "q8_0", "f16, f32")
        self.refused(run("-p"), 2, "-p", "value is missing")
        self.refused(run("-t", "2", "-tb", "1", "-p", "x"), 2, "-tb")
        self.refused(run("-ub", "256", "-b", "128", "-p", "x"), 2, "-b", "256")
        self.refused(run("-ub", "8193", "-p", "x"), 2, "-ub", "1 .. 8192")
        self.refused(run("-l", "abc", "-p", "x"), 2, "-l", "abc")
        self.refused(run("-r", "", "-p", "x"), 2, "-r")
        self.refused(run("-fa", "off", "-p", "x"), 2, "-fa")
        self.refused(run("--chat-template", "chatml", "-p", "x"), 2, "chatml")
        self.refused(run("--chat-template-kwargs", "[1]", "-p", "x"), 2, "--chat-template-kwargs")
        self.refused(run("--raw", "-sys", "x", "-p", "x"), 2, "-sys", "--raw")

    def test_a_device_that_is_not_there_is_code_4(self):
        self.refused(run("-dev", "cuda", "-p", "x"), 4, "cuda", "this build has the devices: cpu")

    def test_twins_of_unknown_flags_are_refused(self):
        self.refused(run("-p", "x", env={"TERN_ARG_TMEP": "1"}), 2, "TERN_ARG_TMEP", "TERN_ARG_TEMP")
        self.refused(run("-p", "x", env={"TERN_ARG_MLOCK": "1"}), 2, "TERN_ARG_MLOCK")

    def test_a_model_is_needed_and_must_be_there(self):
        self.refused(tern("run", "-p", "x"), 2, "MODEL")
        self.refused(tern("info"), 2, "MODEL")
        self.refused(tern("run", "/nowhere/m.gguf", "-p", "x"), 1, "/nowhere/m.gguf")
        self.refused(tern("info", "/nowhere/m.gguf"), 1, "/nowhere/m.gguf")

    def test_version_and_limits(self):
        version = self.done(tern("version")).out
        wanted = re.search(r'"([\d.]+)"', (ROOT / "include/tern/version.h").read_text())[1]
        self.assertTrue(version.startswith(f"tern {wanted}\n"), version)
        self.assertRegex(version, r"(?m)^device +cpu: ")
        self.assertEqual(self.done(tern("--version")).out, version)

    def test_limits_are_those_of_the_library(self):
        source = (ROOT / "src/base/limits.h").read_text()
        values = {}
        for name, text in re.findall(r"constexpr \S+ (k\w+) = ([^;{]+);", source):
            text = text.replace("'", "").replace("std::numeric_limits<std::int64_t>::max()", str(2**63 - 1))
            values[name] = eval(text, {}, values)
        wanted = [f"{what:<32} {values[name]:,}" for what, name in re.findall(r'Row\{"([^"]+)", (k\w+)\}', source)]
        self.assertGreater(len(wanted), 20)
        self.assertEqual(self.done(tern("version", "--limits")).out.splitlines(), wanted)

    def test_completion_scripts_parse(self):
        script = self.done(tern("completion", "bash")).out
        subprocess.run(["bash", "-n"], input=script.encode(), check=True)
        self.assertIn("--ctx-size", script)
        self.assertIn("complete -c tern", self.done(tern("completion", "fish")).out)
        self.refused(tern("completion", "csh"), 2, "bash, zsh or fish")


class Prompts(Case):
    def test_an_empty_stdin_is_no_prompt(self):
        self.refused(run(stdin=b""), 2, "stdin")

    def test_a_terminal_is_never_waited_for(self):
        master, slave = pty.openpty()
        try:
            start = time.monotonic()
            done = subprocess.run([TERN, "run", MODEL], stdin=slave, capture_output=True, env=clean_environment(), timeout=120)
            self.assertLess(time.monotonic() - start, 10)
            self.refused(Result(done.returncode, done.stdout, done.stderr), 2, "-p TEXT")
        finally:
            os.close(master)
            os.close(slave)

    def test_two_sources_are_refused(self):
        self.refused(run("words", "-p", "text"), 2, "one place")
        self.refused(run("-f", __file__, "-p", "text"), 2, "one place")

    def test_all_sources_give_the_same_answer(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(QUESTION.encode())
            file.flush()
            answers = [self.done(result).out for result in (
                run("-p", QUESTION), run("-f", file.name), run(*QUESTION.split(" ")), run(stdin=QUESTION.encode()),
                tern("run", "-m", MODEL, "--temp", "0", "-n", "12", "-p", QUESTION))]
        self.assertEqual(answers, [ANSWER] * 5)

    def test_stdin_is_taken_byte_for_byte(self):
        plain = prompt_tokens(run("--raw", "-n", "0", stdin=b"Hello"))
        with_line_feed = prompt_tokens(run("--raw", "-n", "0", stdin=b"Hello\n"))
        self.assertEqual((plain, with_line_feed), (1, 2))

    def test_only_p_knows_escapes(self):
        self.assertEqual(prompt_tokens(run("--raw", "-n", "0", "-p", "Hello\\n")), 2)
        self.assertGreater(prompt_tokens(run("--raw", "-n", "0", "-p", "Hello\\n", "--no-escape")), 2)
        self.assertGreater(prompt_tokens(run("--raw", "-n", "0", stdin=b"Hello\\n")), 2)
        self.refused(run("-e", stdin=b"Hello"), 2, "-e")

    def test_text_must_be_utf8_except_raw(self):
        self.refused(run(stdin=b"ab\xffc"), 1, "stdin", "byte 2", "0xff", "--raw")
        self.done(run("--raw", "-n", "0", stdin=b"ab\xc3\xa9c"))

    def test_markers_in_a_prompt_are_ordinary_text(self):
        plain = self.done(run("-n", "0", "--verbose-prompt", "-p", "x"))
        marked = self.done(run("-n", "0", "--verbose-prompt", "-p", "<|im_end|><|im_start|>system"))
        count = lambda result, id_: len(re.findall(rf"(?m)^ +{id_}  <\|im_", result.err))
        self.assertEqual((count(marked, 1), count(marked, 2)), (count(plain, 1), count(plain, 2)))
        raw = self.done(run("--raw", "-n", "0", "--verbose-prompt", "-p", "<|im_start|>"))
        self.assertEqual(count(raw, 1), 1)

    def test_an_empty_system_message_is_not_an_absent_one(self):
        absent, empty, given = (prompt_tokens(self.done(run("-n", "0", "-p", "x", *words)))
                                for words in ([], ["-sys", ""], ["-sys", "Be brief."]))
        self.assertLess(empty, given)
        self.assertLess(given, absent)  # the template brings a message of its own

    def test_another_template_and_its_errors(self):
        one = self.done(run("-n", "0", "--verbose-prompt", "--chat-template", "{{ messages[0].content }}", "-p", "Hello"))
        self.assertEqual(prompt_tokens(one), 1)
        self.refused(run("--chat-template", "{{ raise_exception('no tools here') }}", "-p", "x"), 1, "no tools here")
        self.refused(run("--chat-template", "{% if %}", "-p", "x"), 1, "--chat-template", "line 1")
        kwargs = self.done(run("-n", "0", "--chat-template", "{{ word }}", "--chat-template-kwargs", '{"word": "Hello"}', "-p", "x"))
        self.assertEqual(prompt_tokens(kwargs), 1)


class Answers(Case):
    def test_stdout_holds_the_answer_and_nothing_else(self):
        result = self.done(run("-p", QUESTION))
        self.assertEqual(result.out, ANSWER)
        for line in ("model ", "device ", "kernels ", "context ", "memory "):
            self.assertRegex(result.err, rf"(?m)^{line}")
        self.assertRegex(result.err, r"(?m)^\[ prompt \d+ tok.*\| generated \d+ tok.*\| \d+\.\d s \| ctx \d+/\d+ \]$")

    def test_stderr_of_a_pipe_has_no_control_codes(self):
        result = self.done(run("-p", QUESTION))
        self.assertNotRegex(result.err, r"[\r\x1b]")

    def test_quiet_says_nothing(self):
        self.assertEqual(self.done(run("--quiet", "--no-perf", "-p", QUESTION)).err, "")

    def test_verbose_says_where_settings_come_from(self):
        result = self.done(run("-n", "0", "-v", "-p", "x", env={"TERN_ARG_TOP_K": "7", "LLAMA_ARG_TOP_P": "0.5"}))
        for line in ("temp = 0 (--temp)", "top-k = 7 (TERN_ARG_TOP_K)", "top-p = 0.5 (LLAMA_ARG_TOP_P)",
                     "min-p = 0.05 (built in)"):
            self.assertIn(line + "\n", result.err)

    def test_the_command_line_wins_over_the_environment(self):
        twin = {"TERN_ARG_N_PREDICT": "1", "LLAMA_ARG_N_PREDICT": "2"}
        generated = lambda result: int(re.search(r"generated (\d+) tok", self.done(result).err)[1])
        words = ("run", MODEL, "--temp", "0", "-p", QUESTION)
        self.assertEqual(generated(tern(*words, "-n", "3", env=twin)), 3)
        self.assertEqual(generated(tern(*words, env=twin)), 1)
        self.assertEqual(generated(tern(*words, env={"LLAMA_ARG_N_PREDICT": "2"})), 2)

    def test_n_0_only_evaluates_the_prompt(self):
        result = self.done(run("-n", "0", "-p", QUESTION))
        self.assertEqual(result.out, "")
        self.assertIn("generated 0 tok", result.err)

    def test_stop_strings_end_the_answer_before_them(self):
        self.assertEqual(self.done(run("-p", QUESTION, "--stop", "Paris")).out, "The capital of France is ")
        self.assertEqual(self.done(run("-p", QUESTION, "-r", "zzz", "-r", "of Fra")).out, "The capital ")
        # Held back for a stop string that does not come, then sent.
        self.assertEqual(self.done(run("-p", QUESTION, "--stop", "Paris. And")).out, ANSWER)

    def test_a_seed_repeats_an_answer(self):
        say = lambda seed: self.done(tern("run", MODEL, "--temp", "1.5", "--min-p", "0", "-n", "24", "-s", seed, "-p", "Tell a story."))
        first = say(7)
        self.assertEqual(first.out, say(7).out)
        self.assertNotEqual(first.out, say(8).out)
        self.assertIn("seed     7\n", first.err)

    def test_a_random_seed_is_reported_and_repeats_the_answer(self):
        words = ("run", MODEL, "--temp", "1.5", "-n", "16", "-p", "Tell a story.")
        random = self.done(tern(*words))
        seed = re.search(r"(?m)^seed +(\d+)$", random.err)[1]
        self.assertEqual(self.done(tern(*words, "--seed", seed)).out, random.out)

    def test_threads_do_not_change_the_answer(self):
        one, two = (self.done(run("-t", n, "-n", "32", "-p", "Tell a story.")) for n in (1, 2))
        self.assertEqual(one.out, two.out)
        self.assertRegex(one.err, r"(?m)^device .*\b1 thread")

    def test_bias_forbids_a_token(self):
        ids = json.loads(self.done(tern("tokenize", MODEL, "--ids", "-p", " Paris")).out)
        self.assertEqual(len(ids), 1)
        self.assertNotIn("Paris", self.done(run("-p", QUESTION, "-l", f"{ids[0]}-inf")).out)

    def test_ignore_eos_and_min_tokens_go_on(self):
        generated = lambda result: int(re.search(r"generated (\d+) tok", self.done(result).err)[1])
        ends = generated(run("-p", QUESTION))
        self.assertLess(ends, 12)
        self.assertEqual(generated(run("-p", QUESTION, "--ignore-eos")), 12)
        self.assertGreaterEqual(generated(run("-p", QUESTION, "--min-tokens", "11")), 11)

    def test_a_prompt_that_does_not_fit_is_refused_with_both_numbers(self):
        result = run("-c", "64", "--raw", "-p", "word " * 100)
        self.refused(result, 1, "64")
        self.assertRegex(result.err, r"\b10[01]\b")

    def test_a_full_context_ends_the_answer_and_says_so(self):
        result = self.done(tern("run", MODEL, "--temp", "0", "-c", "64", "--ignore-eos", "-p", "Tell a long story."))
        self.assertIn("the context is full", result.err)
        self.assertIn("ctx 64/64", result.err)

    def test_too_little_memory_is_code_3_with_numbers(self):
        result = run("-c", "1G", "-p", "x")
        self.refused(result, 3, "needs", "MiB", "free")


class Streams(Case):
    def start(self, *words):
        return subprocess.Popen([TERN, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=clean_environment())

    def endless(self):
        return self.start("run", MODEL, "--temp", "0", "-c", "4096", "--ignore-eos", "-p", "Tell a long story.")

    def first_text(self, process):
        ready, _, _ = select.select([process.stdout], [], [], 300)
        self.assertTrue(ready, "no text within five minutes")
        return os.read(process.stdout.fileno(), 4096)

    def stop(self, signal_number):
        process = self.endless()
        text = self.first_text(process)
        start = time.monotonic()
        process.send_signal(signal_number)
        out, err = process.communicate(timeout=300)
        return process.returncode, text + out, err.decode(), time.monotonic() - start

    def test_the_first_ctrl_c_keeps_what_was_said(self):
        code, out, err, seconds = self.stop(signal.SIGINT)
        self.assertEqual(code, 130, err)
        self.assertGreater(len(out), 0)
        self.assertIn("interrupted:", err)
        self.assertRegex(err, r"\[ prompt ")
        self.assertLess(seconds, seconds_to_stop())

    def test_ctrl_c_while_a_large_file_is_loaded(self):
        """Wherever loading is: reading the file, looking at its codes, laying the weights out."""
        with tempfile.TemporaryDirectory() as folder:
            model = f"{folder}/large.gguf"
            subprocess.run([pathlib.Path(TERN).with_name("make_random_model"), "--shape", "qwen3-1.7b", "--type", "Q2_0", "-o", model],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            was_loading = 0
            for wait in (0.1, 0.2, 0.4, 0.8):
                process = self.start("run", model, "--load-mode", "read", "-c", "64", "-p", "x")
                time.sleep(wait)
                start = time.monotonic()
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=300)
                self.assertEqual(process.returncode, 130, err)
                self.assertLess(time.monotonic() - start, seconds_to_stop(), f"after {wait} s: {err}")
                was_loading += b"loading was cancelled" in err
            self.assertGreater(was_loading, 0)

    def test_sigterm_is_143(self):
        self.assertEqual(self.stop(signal.SIGTERM)[0], 143)

    def test_ctrl_c_ends_a_wait_for_stdin(self):
        process = subprocess.Popen([TERN, "run", MODEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=clean_environment())
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=120), 130)
        process.communicate()

    def test_a_reader_that_has_gone_ends_the_work_quietly(self):
        process = self.endless()
        self.first_text(process)
        process.stdout.close()
        self.assertEqual(process.wait(timeout=300), 0)
        self.assertNotIn("error", process.stderr.read().decode())
        process.stderr.close()

    def test_a_full_disk_is_code_3(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([TERN, "run", MODEL, "--temp", "0", "-n", "8", "-p", "x"], stdin=subprocess.DEVNULL, stdout=full,
                                  stderr=subprocess.PIPE, env=clean_environment(), timeout=600)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(b"error: stdout: ", done.stderr)

    def test_a_terminal_gets_the_same_text(self):
        master, slave = pty.openpty()
        process = subprocess.Popen([TERN, "run", MODEL, "--temp", "0", "-n", "12", "-p", QUESTION], stdin=subprocess.DEVNULL,
                                   stdout=slave, stderr=subprocess.DEVNULL, env=clean_environment())
        os.close(slave)
        text = b""
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:  # the last writer has gone
                break
            if not part:
                break
            text += part
        os.close(master)
        self.assertEqual(process.wait(timeout=300), 0)
        self.assertEqual(text.decode().rstrip("\r\n"), ANSWER)

    def test_colours_only_on_a_terminal_without_no_color(self):
        def stderr_of(env):
            master, slave = pty.openpty()
            process = subprocess.Popen([TERN, "run", MODEL, "--temp", "0", "-n", "1", "-p", "x"], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=slave, env=clean_environment({"TERM": "xterm", **env}))
            os.close(slave)
            text = b""
            while True:
                try:
                    part = os.read(master, 4096)
                except OSError:
                    break
                if not part:
                    break
                text += part
            os.close(master)
            process.wait(timeout=300)
            return text
        self.assertIn(b"\x1b[2m[ prompt", stderr_of({"NO_COLOR": ""}))
        self.assertNotIn(b"\x1b[2m", stderr_of({"NO_COLOR": "1"}))
        self.assertNotIn(b"\x1b", stderr_of({"TERM": "dumb"}))


class Tokenize(Case):
    def tokenize(self, *words, **kwargs):
        return tern("tokenize", MODEL, *words, **kwargs)

    def test_forms_of_the_output(self):
        text = b"The capital of France"
        self.assertEqual(self.done(self.tokenize(stdin=text)).out, "   504  The\n  3575   capital\n   282   of\n  4649   France\n")
        self.assertEqual(self.done(self.tokenize("--ids", stdin=text)).out, "[504, 3575, 282, 4649]\n")
        self.assertEqual(self.done(self.tokenize("--count", stdin=text)).out, "4\n")
        self.assertEqual(json.loads(self.done(self.tokenize("--json", "-p", "The capital")).out),
                         {"tokens": [{"id": 504, "piece": "The"}, {"id": 3575, "piece": " capital"}]})
        self.refused(self.tokenize("--ids", "--json", "-p", "x"), 2, "--json")

    def test_only_p_knows_escapes(self):
        self.assertEqual(self.done(self.tokenize("--ids", "-p", "\\n")).out, self.done(self.tokenize("--ids", stdin=b"\n")).out)
        self.assertNotEqual(self.tokenize("--ids", "-p", "\\n").out, self.tokenize("--ids", stdin=b"\\n").out)

    def test_special_tokens_by_choice(self):
        marker = ("--ids", "-p", "<|im_start|>")
        self.assertEqual(self.tokenize(*marker).out, "[1]\n")
        ordinary = self.done(self.tokenize(*marker, "--parse-special", "none")).out
        self.assertGreater(len(json.loads(ordinary)), 1)
        self.assertEqual(self.tokenize(*marker, "--no-parse-special").out, ordinary)
        self.assertEqual(self.tokenize(*marker, "--no-special").out, ordinary)

    def test_round_trips(self):
        for text in ("Hello, world!", "  two  spaces\n\n\tand tabs ", "größe 東京 😀👩‍💻", "3.14159 1234567", "a\r\nb"):
            ids = self.done(self.tokenize("--ids", "--no-special", stdin=text.encode())).out
            self.assertEqual(self.done(self.tokenize("--decode", ids)).out_bytes, text.encode())

    def test_decode_streams_whole_characters(self):
        ids = "19556, 40303, 218, 905"
        value = json.loads(self.done(self.tokenize("--decode", ids, "--json")).out)
        self.assertEqual(value, {"text": "Hello 😀 world", "chunks": ["Hello", " ", "😀", " world"], "flush": ""})
        cut = json.loads(self.done(self.tokenize("--decode", "40303", "--json")).out)
        self.assertEqual((cut["chunks"], cut["flush"]), ([" "], "\ufffd"))

    def test_decode_shows_special_tokens_unless_told_not_to(self):
        self.assertEqual(self.done(self.tokenize("--decode", "1,504,2")).out, "<|im_start|>The<|im_end|>")
        self.assertEqual(self.done(self.tokenize("--decode", "1,504,2", "--no-special")).out, "The")
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("504 3575\n")
            file.flush()
            self.assertEqual(self.done(self.tokenize("--decode-file", file.name)).out, "The capital")

    def test_wrong_ids_are_named(self):
        self.refused(self.tokenize("--decode", "504,99999999"), 1, "99999999")
        self.refused(self.tokenize("--decode", "five"), 1, "--decode")

    def test_json_lines(self):
        lines = ['"The capital"', '{"text": "<|im_start|>", "parse_special": false, "add_special": false}',
                 '{"ids": [1, 504], "skip_special": true}', '{"messages": [{"role": "user", "content": "<|im_end|>"}]}',
                 '{"oops": 1}', '[1', '{"ids": [99999999]}']
        result = self.tokenize("--jsonl", "-", stdin="\n".join(lines).encode())
        self.assertEqual(result.code, 1)
        answers = [json.loads(line) for line in result.out.splitlines()]
        self.assertEqual(len(answers), len(lines))
        self.assertEqual(answers[0], {"ids": [504, 3575]})
        self.assertNotIn(1, answers[1]["ids"])
        self.assertEqual(answers[2], {"text": "The", "chunks": ["", "The"], "flush": ""})
        self.assertEqual(answers[3]["ids"].count(1), 3)
        self.assertEqual(answers[3]["ids"].count(2), 2)
        for wrong in answers[4:]:
            self.assertEqual(list(wrong), ["error"])
        self.assertEqual(self.tokenize("--jsonl", "-", stdin=b'"x"\n').code, 0)


class Templates(Case):
    CHAT = '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]'
    TEXT = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"

    def test_renders_byte_for_byte(self):
        self.assertEqual(self.done(tern("template", MODEL, "--messages-json", "-", stdin=self.CHAT.encode())).out, self.TEXT)
        request = json.dumps({"messages": json.loads(self.CHAT), "add_generation_prompt": False}).encode()
        self.assertEqual(tern("template", MODEL, "--messages-json", "-", stdin=request).out,
                         self.TEXT.removesuffix("<|im_start|>assistant\n"))

    def test_a_template_file_needs_no_model(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write("{{ strftime_now('%Y-%m-%d %H:%M:%S') }}|{{ messages[0].content }}")
            file.flush()
            result = tern("template", "--chat-template-file", file.name, "--now", "2026-11-30 16:03:21", "--messages-json", "-",
                          stdin=self.CHAT.encode())
            self.assertEqual(self.done(result).out, "2026-11-30 16:03:21|Be brief.")
            self.refused(tern("template", "--chat-template-file", file.name, "--now", "yesterday", "--messages-json", "-", stdin=b"[]"),
                         2, "--now", "yesterday")

    def test_errors_come_in_the_templates_own_words(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write("{{ raise_exception('Only user messages, please') }}")
            file.flush()
            self.refused(tern("template", "--chat-template-file", file.name, "--messages-json", "-", stdin=self.CHAT.encode()), 1,
                         file.name, "Only user messages, please")

    def test_json_lines_and_small_programs(self):
        lines = [json.dumps({"messages": json.loads(self.CHAT)}), '{"template": "{{ x + 1 }}{{ y }}", "vars": {"x": 41}}',
                 '{"template": "{{ raise_exception(\'stop\') }}", "vars": {}}']
        result = tern("template", MODEL, "--jsonl", "-", stdin="\n".join(lines).encode())
        self.assertEqual(result.code, 1)
        answers = [json.loads(line) for line in result.out.splitlines()]
        self.assertEqual(answers[:2], [{"text": self.TEXT}, {"text": "42"}])
        self.assertEqual(answers[2], {"error": "stop"})
        self.done(tern("template", "--jsonl", "-", stdin=lines[1].encode()))

    def test_needs_something_to_render(self):
        self.refused(tern("template", MODEL), 2, "--messages-json")
        self.refused(tern("template", "--messages-json", "-"), 2, "MODEL")
        self.refused(tern("template", MODEL, "--messages-json", "-", stdin=b"[1,"), 1, MODEL)


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            kind = {"F32": "f", "I32": "i"}[entry["dtype"]]
            tensors[name] = (entry["shape"], struct.unpack(f"<{(end - begin) // 4}{kind}", data[8 + size + begin:8 + size + end]))
    return header["__metadata__"], tensors


class Logits(Case):
    def logits(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/out.safetensors"
            self.done(tern("logits", MODEL, "-o", path, "--quiet", *words))
            self.assertEqual(os.listdir(folder), ["out.safetensors"])
            return read_safetensors(path)

    def test_writes_logits_and_what_made_them(self):
        metadata, tensors = self.logits("--token-ids", "504,3575,282")
        self.assertEqual(tensors["input_ids"], ([3], (504, 3575, 282)))
        shape, values = tensors["logits"]
        self.assertEqual(shape, [3, 49152])
        self.assertTrue(all(math.isfinite(value) for value in values))
        self.assertEqual(sorted(metadata), ["activations", "architecture", "device", "model", "threads", "type_k", "type_v", "version"])
        self.assertEqual((metadata["architecture"], metadata["type_k"]), ("llama", "f16"))

    def test_last_decode_and_taps(self):
        words = ("--token-ids", "504,3575,282,4649", "--activations", "f32", "-ctk", "f32", "-ctv", "f32")
        _, whole = self.logits(*words, "--taps")
        _, steps = self.logits(*words, "--decode", "2", "--last", "2")
        self.assertEqual(steps["logits"][0], [2, 49152])
        last = whole["logits"][1][-2 * 49152:]
        worst = max(abs(a - b) for a, b in zip(last, steps["logits"][1]))
        self.assertLess(worst, 1e-3 * max(map(abs, last)))
        self.assertEqual(whole["final_norm"][0], [4, 576])
        self.assertEqual(whole["layer_out.29"][0], [4, 576])
        self.assertEqual(whole["embeddings"][0], [4, 576])
        self.assertEqual(len(whole), 2 + 30 + 2)

    def test_refusals(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/out.safetensors"
            self.refused(tern("logits", MODEL, "--token-ids", "504,-1", "-o", path), 1, "-1", "position 1")
            self.refused(tern("logits", MODEL, "--token-ids", "49152", "-o", path), 1, "49152", "position 0")
            self.refused(tern("logits", MODEL, "--token-ids", "", "-o", path), 1, "no token id")
            self.refused(tern("logits", MODEL, "--token-ids", "1,1,1", "-c", "2", "-o", path), 1, "3 ids", "2 tokens")
            self.refused(tern("logits", MODEL, "--token-ids", "1"), 2, "--output")
            self.assertEqual(os.listdir(folder), [])
            pathlib.Path(path).write_text("mine")
            self.refused(tern("logits", MODEL, "--token-ids", "1", "-o", path), 2, path, "--force")
            self.assertEqual(pathlib.Path(path).read_text(), "mine")
            self.done(tern("logits", MODEL, "--token-ids", "1", "-o", path, "--force"))
            self.assertEqual(read_safetensors(path)[1]["input_ids"], ([1], (1,)))
            self.refused(tern("logits", MODEL, "--token-ids", "1", "-o", MODEL, "--force"), 2, "is the input")


class Perplexity(Case):
    TEXT = ("The quick brown fox jumps over the lazy dog. " * 8 + "It was the best of times, it was the worst of times. ").encode()

    def test_prints_windows_and_an_estimate(self):
        result = self.done(tern("perplexity", MODEL, "-c", "32", stdin=self.TEXT))
        self.assertRegex(result.out, r"^\[1\]\d+\.\d{4},\[2\]\d+\.\d{4},.*\nFinal estimate: PPL = \d+\.\d{4} \+/- \d+\.\d{5}\n$")

    def test_json_has_the_fields(self):
        result = self.done(tern("perplexity", MODEL, "-c", "32", "--json", "--quiet", stdin=self.TEXT))
        value = json.loads(result.out)
        self.assertEqual(list(value), ["ppl", "ppl_stderr", "nll_mean", "n_ctx", "n_chunks", "n_scored", "chunks", "text_sha256"])
        self.assertEqual(value["n_ctx"], 32)
        self.assertEqual(value["n_scored"], value["n_chunks"] * 15)
        self.assertEqual(len(value["chunks"]), value["n_chunks"])
        self.assertAlmostEqual(value["chunks"][-1], value["ppl"])
        self.assertAlmostEqual(math.exp(value["nll_mean"]), value["ppl"])
        import hashlib
        self.assertEqual(value["text_sha256"], hashlib.sha256(self.TEXT).hexdigest())

    def test_scores_are_those_of_the_logits(self):
        ids = json.loads(tern("tokenize", MODEL, "--ids", "--no-special", stdin=self.TEXT).out)
        precise = ("--activations", "f32", "-ctk", "f32", "-ctv", "f32", "--quiet")
        value = json.loads(self.done(tern("perplexity", MODEL, "-c", "16", "--json", *precise, stdin=self.TEXT)).out)
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/out.safetensors"
            self.done(tern("logits", MODEL, "--token-ids", ",".join(map(str, ids[:16])), "-o", path, *precise))
            _, tensors = read_safetensors(path)
        nll = []
        for target in range(9, 16):  # window of 16: tokens h + 1 .. n - 1
            row = tensors["logits"][1][(target - 1) * 49152:target * 49152]
            top = max(row)
            nll.append(top + math.log(sum(math.exp(x - top) for x in row)) - row[ids[target]])
        self.assertAlmostEqual(value["chunks"][0], math.exp(sum(nll) / len(nll)), delta=1e-3 * value["chunks"][0])

    def test_a_short_text_is_refused_with_both_numbers(self):
        self.refused(tern("perplexity", MODEL, "-c", "512", stdin=b"too short"), 1, "2 tokens", "1024")

    def test_divergence_from_another_run(self):
        with tempfile.TemporaryDirectory() as folder:
            base = f"{folder}/base"
            words = ("perplexity", MODEL, "-c", "32", "--json", "--quiet", "--kl-divergence-base", base)
            self.done(tern(*words, "--activations", "f32", "-ctk", "f32", "-ctv", "f32", stdin=self.TEXT))
            self.refused(tern(*words, stdin=self.TEXT), 2, "--force")
            kl = json.loads(self.done(tern(*words, "--kl-divergence", stdin=self.TEXT)).out)["kl"]
            self.assertLess(abs(kl["mean"]), 1e-3)
            self.assertGreater(kl["same_top"], 0.95)
            for name in ("max", "p99_9", "p99", "p95", "p90", "median", "p10", "p5", "p1", "p0_1", "min"):
                self.assertIn(name, kl)
                self.assertIn(name, kl["delta_p"])
            self.refused(tern(*words, "--kl-divergence", stdin=self.TEXT + b"And more of it, until another window is full. " * 4), 1, base)


class Bench(Case):
    FIELDS = ("build_commit build_number cpu_info gpu_info backends model_filename model_type model_size model_n_params n_batch n_ubatch "
              "n_threads cpu_mask cpu_strict poll type_k type_v n_gpu_layers split_mode main_gpu no_kv_offload flash_attn tensor_split "
              "use_mmap embeddings n_prompt n_gen n_depth test_time avg_ns stddev_ns avg_ts stddev_ts samples_ns samples_ts "
              "ceiling_gbps bytes_per_token ceiling_share kernels").split()

    def test_json_has_the_fields_and_they_agree(self):
        rows = json.loads(self.done(tern("bench", MODEL, "-p", "16", "-n", "4", "-pg", "8,2", "-r", "2", "-o", "json")).out)
        self.assertEqual([(row["n_prompt"], row["n_gen"]) for row in rows], [(16, 0), (0, 4), (8, 2)])
        for row in rows:
            self.assertEqual(list(row), self.FIELDS)
            self.assertEqual(len(row["samples_ns"]), 2)
            tokens = row["n_prompt"] + row["n_gen"]
            for ns, ts in zip(row["samples_ns"], row["samples_ts"]):
                self.assertAlmostEqual(ts, tokens * 1e9 / ns, delta=1e-6 * ts)
            self.assertRegex(row["test_time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
            self.assertTrue(row["model_type"].startswith("llama 135M Q4_1"), row["model_type"])
        self.assertIsNone(rows[0]["ceiling_share"])
        share = rows[1]["bytes_per_token"] * rows[1]["avg_ts"] / (rows[1]["ceiling_gbps"] * 1e9)
        self.assertAlmostEqual(rows[1]["ceiling_share"], share, delta=1e-3 * share)
        self.assertGreater(rows[1]["bytes_per_token"], 80e6)

    def test_table_and_comparison(self):
        with tempfile.NamedTemporaryFile() as file:
            words = ("bench", MODEL, "-p", "8", "-n", "2", "-d", "0,8", "-r", "1", "--no-warmup")
            result = self.done(tern(*words, "-o", "md", "-oe", "jsonl", "--quiet"))
            lines = result.out.splitlines()
            self.assertEqual([cell.strip() for cell in lines[0].strip("|").split("|")],
                             ["model", "size", "params", "backend", "threads", "test", "t/s", "% ceiling"])
            self.assertEqual([line.split("|")[6].strip() for line in lines[2:6]], ["pp8", "tg2", "pp8 @ d8", "tg2 @ d8"])
            self.assertEqual(len({len(line) for line in lines[:6]}), 1)
            self.assertRegex(lines[-1], r"^build: \S+ \(\d+\.\d+\.\d+\)$")
            file.write("\n".join(line for line in result.err.splitlines() if line.startswith("{")).encode())
            file.flush()
            compared = self.done(tern(*words, "--compare", file.name)).out.splitlines()
            self.assertEqual(compared[0].split("|")[-2].strip(), "ratio")
            self.assertGreater(float(compared[2].split("|")[-2]), 0)

    def test_every_thread_count_is_its_own_row(self):
        rows = self.done(tern("bench", MODEL, "-p", "0", "-n", "2", "-r", "1", "-t", "1-2", "-o", "jsonl")).out.splitlines()
        self.assertEqual([json.loads(row)["n_threads"] for row in rows], [1, 2])

    def test_csv(self):
        lines = self.done(tern("bench", MODEL, "-p", "4", "-n", "0", "-r", "1", "-o", "csv")).out.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertTrue(lines[0].startswith("build_commit,build_number,"))

    def test_ctrl_c_keeps_finished_rows(self):
        process = subprocess.Popen([TERN, "bench", MODEL, "-p", "8", "-n", "4096", "-r", "3", "--no-warmup", "-o", "json"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment())
        ready, _, _ = select.select([process.stdout], [], [], 300)
        self.assertTrue(ready)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual([row["n_prompt"] for row in json.loads(out)], [8])
        self.assertIn(b"interrupted: 1 finished", err)

    def test_refusals(self):
        self.refused(tern("bench", MODEL, "-p", "5-3"), 2, "-p", "5-3")
        self.refused(tern("bench", MODEL, "-p", "0", "-n", "0"), 2, "nothing to measure")
        self.refused(tern("bench", MODEL, "--batched", "1"), 2, "--batched")
        self.refused(tern("bench", MODEL, "--compare", "/nowhere.json"), 1, "/nowhere.json")


class Reports(Case):
    def test_info_reads_headers_only(self):
        used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        before = used()
        text = self.done(tern("info", MODEL)).out
        # Half a second of two or more threads that measure how fast memory is; the clock says nothing on a busy machine.
        self.assertLess(used() - before, 1 + (os.cpu_count() or 1))
        for part in ("GGUF v3", "98,362,432 bytes", "llama 135M Q4_1", "49,152", "smollm", "per 1,000 tokens", "-c 4096", "kernel"):
            self.assertIn(part, text)
        value = json.loads(self.done(tern("info", MODEL, "--json", "--keys", "--tensors")).out)
        self.assertEqual((value["model"]["layers"], value["model"]["heads"], value["file"]["tensors"]), (30, 9, 272))
        self.assertTrue(value["runs"]["can_run"])
        self.assertEqual(len(value["tensor_list"]), 272)
        self.assertIn("general.architecture", [entry["key"] for entry in value["keys"]])

    def test_info_prints_template_and_hash(self):
        self.assertIn("<|im_start|>", self.done(tern("info", MODEL, "--template")).out)
        import hashlib
        self.assertIn(hashlib.sha256(pathlib.Path(MODEL).read_bytes()).hexdigest(), self.done(tern("info", MODEL, "--hash")).out)

    def test_damaged_files_are_one_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, size in (("cut.gguf", 50_000_000), ("stub.gguf", 100), ("empty.gguf", 0)):
                path = f"{folder}/{name}"
                with open(MODEL, "rb") as source, open(path, "wb") as target:
                    target.write(source.read(size))
                for command in (("run", path, "-p", "x"), ("tokenize", path, "-p", "x"), ("bench", path)):
                    if name != "cut.gguf" or command[0] != "tokenize":
                        self.refused(tern(*command), 1, path)

    def test_check_tensors_belongs_to_commands_that_read_the_weights(self):
        self.refused(tern("info", MODEL, "--check-tensors"), 2, "--check-tensors", "does not take")
        self.refused(tern("explain", MODEL, "--check-tensors"), 2, "--check-tensors", "--time")
        self.assertEqual(self.done(run("-p", QUESTION, "--check-tensors")).out, run("-p", QUESTION).out)
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/nan.gguf"
            value = json.loads(tern("info", MODEL, "--json", "--tensors").out)
            norm = next(entry for entry in value["tensor_list"] if entry["name"] == "output_norm.weight")
            data = bytearray(pathlib.Path(MODEL).read_bytes())
            begin = (len(data) - max(entry["offset"] + entry["bytes"] for entry in value["tensor_list"])) // 32 * 32
            at = begin + norm["offset"] + 4 * 7
            data[at:at + 4] = struct.pack("<f", math.nan)
            pathlib.Path(path).write_bytes(data)
            self.refused(tern("run", path, "-p", "x", "--check-tensors"), 1, path, "tensor 'output_norm.weight' weight 7 is nan")

    def test_a_file_that_is_read_answers_like_one_that_is_mapped(self):
        self.assertEqual(self.done(run("-p", QUESTION, "--load-mode", "read")).out, self.done(run("-p", QUESTION, "--load-mode", "mmap")).out)

    def test_explain_comes_from_the_plan(self):
        text = self.done(tern("explain", MODEL)).out
        for part in ("layer 0-29", "linear", "attention", "total ", "memory "):
            self.assertIn(part, text)
        value = json.loads(self.done(tern("explain", MODEL, "--rows", "64", "--json")).out)
        self.assertEqual(value["rows"], 64)
        self.assertGreater(len(value["ops"]), 30 * 5)
        self.assertTrue(all(op["kernel"] and op["reason"] for op in value["ops"]))

    def test_explain_measures(self):
        value = json.loads(self.done(tern("explain", MODEL, "--time", "--json")).out)
        self.assertGreater(sum(op["microseconds"] for op in value["ops"]), 100)
        self.assertGreater(value["read_gbps"], 0)
        self.assertIn("% of the", self.done(tern("explain", MODEL, "--time")).out)


def main():
    global TERN, MODEL
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--tern", required=True)
    parser.add_argument("-k", action="append", help="only tests whose names contain this")
    arguments = parser.parse_args()
    TERN, MODEL = os.path.abspath(arguments.tern), os.path.abspath(arguments.model)
    loader = unittest.TestLoader()
    if arguments.k:
        loader.testNamePatterns = [f"*{part}*" for part in arguments.k]
    suite = loader.loadTestsFromModule(sys.modules["__main__"])
    result = unittest.TextTestRunner(verbosity=1, stream=sys.stdout).run(suite)
    failed = len({test for test, _ in result.failures + result.errors})
    print(f"cli: {result.testsRun - failed} passed, {failed} failed")
    return 1 if failed or result.testsRun == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
