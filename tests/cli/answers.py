"""tern run: usage, prompts, answers, streams and signals."""
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import tempfile
import time

from support import ANSWER, Case, QUESTION, ROOT, Result, clean_environment, paths, prompt_tokens, run, seconds_to_stop, tern


class Usage(Case):
    def test_nothing_at_all_shows_the_commands(self):
        result = tern()
        self.assertEqual((result.code, result.out), (2, ""))
        self.assertIn("usage: tern COMMAND", result.err)

    def test_unknown_command_suggests_a_near_one(self):
        self.refused(tern("rnu", paths.model), 2, "rnu", "run")
        self.refused(tern("tokenise", paths.model), 2, "tokenize")

    def test_commands_of_later_builds_are_refused_by_name(self):
        for name in "chat image serve convert quantize kernels devices".split():
            self.refused(tern(name, paths.model), 2, name, "this build does not have this command")

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
            self.refused(tern("run", paths.model, flag, "1", "-p", "x"), 2, flag, "this build does not have this flag")
        self.refused(tern("explain", paths.model, "--fail-on", "fallback"), 2, "--fail-on")

    def test_unknown_flags_suggest_a_near_one(self):
        self.refused(tern("run", paths.model, "--tmep", "0"), 2, "--tmep", "--temp")
        self.refused(tern("info", paths.model, "--temp", "0"), 2, "--temp", "does not take")

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
        source, table = ((ROOT / f"src/base/limits.{end}").read_text() for end in ("h", "cpp"))
        values = {}
        for name, text in re.findall(r"constexpr \S+ (k\w+) = ([^;{]+);", source):
            text = text.replace("'", "").replace("std::numeric_limits<std::int64_t>::max()", str(2**63 - 1))
            values[name] = eval(text, {}, values)
        wanted = [f"{what:<32} {values[name]:,}" for what, name in re.findall(r'Limit\{"([^"]+)", (k\w+)\}', table)]
        self.assertGreater(len(wanted), 20)
        self.assertEqual(self.done(tern("version", "--limits")).out.splitlines(), wanted)

    def test_completion_scripts_parse(self):
        script = self.done(tern("completion", "bash")).out
        subprocess.run(["bash", "-n"], input=script.encode(), check=True)
        self.assertIn("--ctx-size", script)
        self.assertIn("complete -c tern", self.done(tern("completion", "fish")).out)
        self.refused(tern("completion", "csh"), 2, "bash, zsh or fish")


    def test_refusals_say_the_range_and_the_element(self):
        self.refused(run("-s", "9" * 30, "-p", "x"), 2, "-s", "-1 .. 9223372036854775807")
        self.refused(tern("bench", paths.model, "-p", "1,two,3"), 2, "-p", "element 2", "'two'")
        self.refused(tern("bench", paths.model, "-p", "1," + "9" * 30), 2, "-p", "'" + "9" * 30 + "'", "0 .. ")
        self.refused(run("-l", "99999999+1", "-p", "x"), 1, "-l", "99999999", "49151")
        self.refused(run("-l", "1+inf", "-p", "x"), 2, "-l")

    def test_refusals_name_the_help(self):
        self.refused(tern("run", paths.model, "--qqqqqqqqqqqqqqqqqq", "x"), 2, "tern help run")
        self.refused(tern("info", paths.model, "--temp", "0"), 2, "tern help info")
        self.refused(tern("run", paths.model, "-p"), 2, "tern help run")

    def test_empty_names_are_named(self):
        self.refused(tern(""), 2, "COMMAND: ", "empty")
        self.refused(tern("info", ""), 2, "MODEL: ", "empty")
        self.refused(tern("run", "", "-p", "x"), 2, "MODEL: ", "empty")

    def test_a_context_beyond_the_trained_one_is_a_warning(self):
        self.assertIn("warning: -c: the model was trained on 8192 tokens", self.done(run("-c", "9000", "-n", "0", "-p", "x")).err)
        self.assertNotIn("warning: -c", self.done(run("-c", "8192", "-n", "0", "-p", "x")).err)


class Prompts(Case):
    def test_an_empty_prompt_is_wrong_usage_wherever_it_is_from(self):
        with tempfile.NamedTemporaryFile() as file:
            self.refused(run(stdin=b""), 2, "stdin: the prompt is empty")
            self.refused(run("-p", ""), 2, "-p: the prompt is empty")
            self.refused(run("-f", file.name), 2, file.name + ": the prompt is empty")
            self.refused(run("--raw", "-p", ""), 2, "-p: the prompt is empty")

    def test_bytes_without_a_token_are_a_warning(self):
        warning = "warning: stdin: the vocabulary has no token for byte 0x04: left out"
        self.assertIn(warning, self.done(run("-n", "0", "--quiet", stdin=b"a\x04b")).err)
        self.assertIn(warning, self.done(run("-n", "0", "--raw", "--quiet", stdin=b"a\x04b")).err)
        self.assertNotIn("warning", self.done(run("-n", "0", "--quiet", stdin=b"a\x05b")).err)

    def test_an_endless_prompt_is_refused(self):
        self.refused(run("-f", "/dev/zero"), 1, "/dev/zero", "64 MiB")
        self.refused(run("-p", "x", "--chat-template-file", "/dev/zero"), 1, "/dev/zero", "1 MiB")

    def test_a_key_that_comes_twice_is_refused(self):
        self.refused(run("-p", "x", "--chat-template-kwargs", '{"a": {"b": 1, "b": 2}}'), 2, "--chat-template-kwargs", '"b"', "byte 15")

    def test_a_terminal_is_never_waited_for(self):
        master, slave = pty.openpty()
        try:
            start = time.monotonic()
            done = subprocess.run([paths.tern, "run", paths.model], stdin=slave, capture_output=True, env=clean_environment(), timeout=120)
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
                tern("run", "-m", paths.model, "--temp", "0", "-n", "12", "-p", QUESTION))]
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
        words = ("run", paths.model, "--temp", "0", "-p", QUESTION)
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
        say = lambda seed: self.done(tern("run", paths.model, "--temp", "1.5", "--min-p", "0", "-n", "24", "-s", seed, "-p", "Tell a story."))
        first = say(7)
        self.assertEqual(first.out, say(7).out)
        self.assertNotEqual(first.out, say(8).out)
        self.assertIn("seed     7\n", first.err)

    def test_a_random_seed_is_reported_and_repeats_the_answer(self):
        words = ("run", paths.model, "--temp", "1.5", "-n", "16", "-p", "Tell a story.")
        random = self.done(tern(*words))
        seed = re.search(r"(?m)^seed +(\d+)$", random.err)[1]
        self.assertEqual(self.done(tern(*words, "--seed", seed)).out, random.out)

    def test_threads_do_not_change_the_answer(self):
        one, two = (self.done(run("-t", n, "-n", "32", "-p", "Tell a story.")) for n in (1, 2))
        self.assertEqual(one.out, two.out)
        self.assertRegex(one.err, r"(?m)^device .*\b1 thread")

    def test_bias_forbids_a_token(self):
        ids = json.loads(self.done(tern("tokenize", paths.model, "--ids", "-p", " Paris")).out)
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
        result = self.done(tern("run", paths.model, "--temp", "0", "-c", "64", "--ignore-eos", "-p", "Tell a long story."))
        self.assertIn("the context is full", result.err)
        self.assertIn("ctx 64/64", result.err)

    def test_too_little_memory_is_code_3_with_numbers(self):
        result = run("-c", "1G", "-p", "x")
        self.refused(result, 3, "needs", "MiB", "free")

    def test_the_limit_of_the_address_space_is_the_memory_there_is(self):
        program = pathlib.Path(paths.tern).read_bytes()
        if b"__asan_init" in program or b"__tsan_init" in program:
            self.skipTest("a sanitizer takes all of the address space")
        for words in (("-c", "60000"), ("-c", "60000", "--load-mode", "read"), ()):
            limited = subprocess.run(["sh", "-c", 'ulimit -v 500000; exec "$@"', "sh", paths.tern, "run", paths.model, "-p", "x", *words],
                                     capture_output=True, stdin=subprocess.DEVNULL, env=clean_environment(), timeout=600)
            result = Result(limited.returncode, limited.stdout, limited.stderr)
            self.refused(result, 3, paths.model, "needs", "free", "--ctx-size")
            self.assertEqual(result.err.count(paths.model), 1)

    def test_the_answer_does_not_depend_on_the_instruction_set(self):
        words = ("run", paths.model, "--raw", "--temp", "0", "-n", "3", "-p", "The capital of France is")
        best, portable = self.done(tern(*words)), self.done(tern(*words, "--isa", "portable"))
        self.assertEqual(best.out, portable.out)
        self.assertIn("slower", portable.err)
        self.refused(tern(*words, "--isa", "sse9"), 2, "--isa", "avx2")


class Streams(Case):
    def start(self, *words):
        return subprocess.Popen([paths.tern, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=clean_environment())

    def endless(self):
        return self.start("run", paths.model, "--temp", "0", "-c", "4096", "--ignore-eos", "-p", "Tell a long story.")

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
        with tempfile.TemporaryDirectory() as folder:
            model = f"{folder}/large.gguf"
            subprocess.run([pathlib.Path(paths.tern).with_name("make_random_model"), "--shape", "qwen3-1.7b", "--type", "Q2_0", "-o", model],
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
        process = subprocess.Popen([paths.tern, "run", paths.model], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=clean_environment())
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=120), 130)
        process.communicate()

    def stop_after(self, seconds, *words, stdin=subprocess.DEVNULL, number=signal.SIGINT):
        process = subprocess.Popen([paths.tern, *map(str, words)], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=clean_environment())
        time.sleep(seconds)
        self.assertIsNone(process.poll(), "ended before it was interrupted")
        start = time.monotonic()
        process.send_signal(number)
        _, err = process.communicate(timeout=300)
        self.assertLess(time.monotonic() - start, seconds_to_stop())
        self.assertIn(b"interrupted: ", err)
        return process.returncode

    def test_ctrl_c_ends_a_wait_for_a_pipe_without_a_writer(self):
        with tempfile.TemporaryDirectory() as folder:
            fifo = f"{folder}/fifo"
            os.mkfifo(fifo)
            self.assertEqual(self.stop_after(0.5, "run", paths.model, "-f", fifo), 130)
            self.assertEqual(self.stop_after(0.5, "template", paths.model, "--messages-json", fifo, number=signal.SIGTERM), 143)

    def test_a_named_pipe_is_read_to_its_end(self):
        with tempfile.TemporaryDirectory() as folder:
            fifo = f"{folder}/fifo"
            os.mkfifo(fifo)
            process = self.start("tokenize", paths.model, "--ids", "-f", fifo)
            with open(fifo, "wb") as writer:
                for part in (b"The", b" capital"):
                    writer.write(part)
                    writer.flush()
                    time.sleep(0.3)
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out), (0, b"[504, 3575]\n"), err)

    def test_ctrl_c_ends_the_encoding_of_a_long_text(self):
        for text in (b"The quick brown fox. ", b"a", "\u6771\u4eac".encode()):
            with tempfile.NamedTemporaryFile() as file:
                file.write(text * (60_000_000 // len(text)))
                file.flush()
                self.assertEqual(self.stop_after(1, "tokenize", paths.model, "--count", "-f", file.name), 130)

    def test_no_message_depends_on_stderr(self):
        def code(redirection, *words):
            return subprocess.run(["sh", "-c", f'exec "$@" {redirection}', "sh", paths.tern, *words], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=clean_environment(), timeout=600)
        answer = ("run", paths.model, "--temp", "0", "-n", "12", "-p", QUESTION)
        for redirection in ("2>/dev/full", "2>&-", "<&- 2>&-"):
            done = code(redirection, *answer)
            self.assertEqual((done.returncode, done.stdout.decode()), (0, ANSWER), redirection)
            self.assertEqual(code(redirection, "info", "/nowhere/m.gguf").returncode, 1, redirection)
            self.assertEqual(code(redirection, "rnu").returncode, 2, redirection)
            self.assertEqual(code(redirection).returncode, 2, redirection)
        self.assertEqual(code("<&- >&- 2>&-", *answer).returncode, 1)

    def test_a_file_above_the_limit_of_its_size_is_code_3(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/out.safetensors"
            words = [paths.tern, "logits", paths.model, "--token-ids", "504,3575", "--quiet", "-o", path]
            done = subprocess.run(["sh", "-c", 'ulimit -f 10; exec "$@"', "sh", *words], capture_output=True, env=clean_environment(), timeout=600)
            self.refused(Result(done.returncode, done.stdout, done.stderr), 3, path, "may not grow")
            self.assertEqual(os.listdir(folder), [])

    def test_a_reader_that_has_gone_ends_the_work_quietly(self):
        process = self.endless()
        self.first_text(process)
        process.stdout.close()
        self.assertEqual(process.wait(timeout=300), 0)
        self.assertNotIn("error", process.stderr.read().decode())
        process.stderr.close()

    def test_a_full_disk_is_code_3(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([paths.tern, "run", paths.model, "--temp", "0", "-n", "8", "-p", "x"], stdin=subprocess.DEVNULL, stdout=full,
                                  stderr=subprocess.PIPE, env=clean_environment(), timeout=600)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(b"error: stdout: ", done.stderr)

    def test_a_terminal_gets_the_same_text(self):
        master, slave = pty.openpty()
        process = subprocess.Popen([paths.tern, "run", paths.model, "--temp", "0", "-n", "12", "-p", QUESTION], stdin=subprocess.DEVNULL,
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
            process = subprocess.Popen([paths.tern, "run", paths.model, "--temp", "0", "-n", "1", "-p", "x"], stdin=subprocess.DEVNULL,
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
