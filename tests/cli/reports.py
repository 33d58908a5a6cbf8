"""The commands that report: tokenize, template, logits, perplexity, bench, info, explain."""
import json
import math
import os
import pathlib
import resource
import select
import signal
import struct
import subprocess
import tempfile

from support import Case, QUESTION, clean_environment, paths, run, tern


class Tokenize(Case):
    def tokenize(self, *words, **kwargs):
        return tern("tokenize", paths.model, *words, **kwargs)

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

    def test_bytes_without_a_token_are_a_warning(self):
        result = self.done(self.tokenize("--ids", stdin=b"a\x04b\xffc"))
        self.assertEqual(len(json.loads(result.out)), 3)
        self.assertIn("warning: stdin: the vocabulary has no token for bytes 0x04, 0xff: left out", result.err)
        self.assertEqual(self.done(self.tokenize("--ids", stdin=b"abc")).err, "")

    def test_endless_inputs_are_refused(self):
        self.refused(self.tokenize("-f", "/dev/zero"), 1, "/dev/zero", "64 MiB")
        self.refused(self.tokenize("--jsonl", "/dev/zero"), 1, "/dev/zero", "64 MiB")
        self.refused(tern("template", paths.model, "--messages-json", "/dev/zero"), 1, "/dev/zero", "64 MiB")

    def test_a_key_that_comes_twice_is_refused(self):
        result = self.tokenize("--jsonl", "-", stdin=b'{"text": "a", "text": "b"}\n')
        self.assertEqual(result.code, 1)
        self.assertIn('\\"text\\" comes a second time, at byte 14', result.out)


class Templates(Case):
    CHAT = '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]'
    TEXT = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"

    def test_renders_byte_for_byte(self):
        self.assertEqual(self.done(tern("template", paths.model, "--messages-json", "-", stdin=self.CHAT.encode())).out, self.TEXT)
        request = json.dumps({"messages": json.loads(self.CHAT), "add_generation_prompt": False}).encode()
        self.assertEqual(tern("template", paths.model, "--messages-json", "-", stdin=request).out,
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
        result = tern("template", paths.model, "--jsonl", "-", stdin="\n".join(lines).encode())
        self.assertEqual(result.code, 1)
        answers = [json.loads(line) for line in result.out.splitlines()]
        self.assertEqual(answers[:2], [{"text": self.TEXT}, {"text": "42"}])
        self.assertEqual(answers[2], {"error": "stop"})
        self.done(tern("template", "--jsonl", "-", stdin=lines[1].encode()))

    def test_needs_something_to_render(self):
        self.refused(tern("template", paths.model), 2, "--messages-json")
        self.refused(tern("template", "--messages-json", "-"), 2, "MODEL")
        self.refused(tern("template", paths.model, "--messages-json", "-", stdin=b"[1,"), 1, "stdin: JSON")

    def test_what_is_wrong_with_a_request_names_its_file(self):
        render = lambda text: tern("template", paths.model, "--messages-json", "-", stdin=text)
        self.refused(render(b'{"messages": null}'), 1, "stdin", "is null, expected a list")
        self.refused(render(b"[3]"), 1, "stdin", "message 0 is an object, not a number")
        self.refused(render(b'[{"role": "user", "role": "x", "content": "a"}]'), 1, "stdin", '"role" comes a second time', "byte 18")
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"messages": "x"}')
            file.flush()
            self.refused(tern("template", paths.model, "--messages-json", file.name), 1, file.name, "is a string, expected a list")


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
            self.done(tern("logits", paths.model, "-o", path, "--quiet", *words))
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
            self.refused(tern("logits", paths.model, "--token-ids", "504,-1", "-o", path), 1, "-1", "position 1")
            self.refused(tern("logits", paths.model, "--token-ids", "49152", "-o", path), 1, "49152", "position 0")
            self.refused(tern("logits", paths.model, "--token-ids", "", "-o", path), 1, "no token id")
            self.refused(tern("logits", paths.model, "--token-ids", "1,1,1", "-c", "2", "-o", path), 1, "3 ids", "2 tokens")
            self.refused(tern("logits", paths.model, "--token-ids", "1"), 2, "--output")
            self.refused(tern("logits", paths.model, "--token-ids", "1", "-o", "-"), 2, "stdout")
            self.assertEqual(os.listdir(folder), [])
            pathlib.Path(path).write_text("mine")
            self.refused(tern("logits", paths.model, "--token-ids", "1", "-o", path), 2, path, "--force")
            self.assertEqual(pathlib.Path(path).read_text(), "mine")
            self.done(tern("logits", paths.model, "--token-ids", "1", "-o", path, "--force"))
            self.assertEqual(read_safetensors(path)[1]["input_ids"], ([1], (1,)))
            self.refused(tern("logits", paths.model, "--token-ids", "1", "-o", paths.model, "--force"), 2, "is the input")


class Perplexity(Case):
    TEXT = ("The quick brown fox jumps over the lazy dog. " * 8 + "It was the best of times, it was the worst of times. ").encode()

    def test_prints_windows_and_an_estimate(self):
        result = self.done(tern("perplexity", paths.model, "-c", "32", stdin=self.TEXT))
        self.assertRegex(result.out, r"^\[1\]\d+\.\d{4},\[2\]\d+\.\d{4},.*\nFinal estimate: PPL = \d+\.\d{4} \+/- \d+\.\d{5}\n$")

    def test_json_has_the_fields(self):
        result = self.done(tern("perplexity", paths.model, "-c", "32", "--json", "--quiet", stdin=self.TEXT))
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
        ids = json.loads(tern("tokenize", paths.model, "--ids", "--no-special", stdin=self.TEXT).out)
        precise = ("--activations", "f32", "-ctk", "f32", "-ctv", "f32", "--quiet")
        value = json.loads(self.done(tern("perplexity", paths.model, "-c", "16", "--json", *precise, stdin=self.TEXT)).out)
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/out.safetensors"
            self.done(tern("logits", paths.model, "--token-ids", ",".join(map(str, ids[:16])), "-o", path, *precise))
            _, tensors = read_safetensors(path)
        nll = []
        for target in range(9, 16):  # window of 16: tokens h + 1 .. n - 1
            row = tensors["logits"][1][(target - 1) * 49152:target * 49152]
            top = max(row)
            nll.append(top + math.log(sum(math.exp(x - top) for x in row)) - row[ids[target]])
        self.assertAlmostEqual(value["chunks"][0], math.exp(sum(nll) / len(nll)), delta=1e-3 * value["chunks"][0])

    def test_a_short_text_is_refused_with_both_numbers(self):
        self.refused(tern("perplexity", paths.model, "-c", "512", stdin=b"too short"), 1, "2 tokens", "1024")

    def test_divergence_from_another_run(self):
        with tempfile.TemporaryDirectory() as folder:
            base = f"{folder}/base"
            words = ("perplexity", paths.model, "-c", "32", "--json", "--quiet", "--kl-divergence-base", base)
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
        rows = json.loads(self.done(tern("bench", paths.model, "-p", "16", "-n", "4", "-pg", "8,2", "-r", "2", "-o", "json")).out)
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
            words = ("bench", paths.model, "-p", "8", "-n", "2", "-d", "0,8", "-r", "1", "--no-warmup")
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
        rows = self.done(tern("bench", paths.model, "-p", "0", "-n", "2", "-r", "1", "-t", "1-2", "-o", "jsonl")).out.splitlines()
        self.assertEqual([json.loads(row)["n_threads"] for row in rows], [1, 2])

    def test_csv(self):
        lines = self.done(tern("bench", paths.model, "-p", "4", "-n", "0", "-r", "1", "-o", "csv")).out.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertTrue(lines[0].startswith("build_commit,build_number,"))

    def test_ctrl_c_keeps_finished_rows(self):
        process = subprocess.Popen([paths.tern, "bench", paths.model, "-p", "8", "-n", "4096", "-r", "3", "--no-warmup", "-o", "json"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment())
        ready, _, _ = select.select([process.stdout], [], [], 300)
        self.assertTrue(ready)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual([row["n_prompt"] for row in json.loads(out)], [8])
        self.assertIn(b"interrupted: 1 finished", err)

    def test_refusals(self):
        self.refused(tern("bench", paths.model, "-p", "5-3"), 2, "-p", "5-3")
        self.refused(tern("bench", paths.model, "-p", "0", "-n", "0"), 2, "nothing to measure")
        self.refused(tern("bench", paths.model, "--batched", "1"), 2, "--batched")
        self.refused(tern("bench", paths.model, "--compare", "/nowhere.json"), 1, "/nowhere.json")
        for text in ("", "\n", "[]"):
            with tempfile.NamedTemporaryFile("w") as file:
                file.write(text)
                file.flush()
                self.refused(tern("bench", paths.model, "--compare", file.name), 1, file.name, "no result to compare with")


class Reports(Case):
    def test_info_reads_headers_only(self):
        used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        before = used()
        text = self.done(tern("info", paths.model)).out
        # A quarter of a second of all threads that measure how fast memory is; the clock says nothing on a busy machine.
        self.assertLess(used() - before, 1 + 0.5 * (os.cpu_count() or 1))
        self.assertNotIn("at most", text)
        self.assertRegex(text, r"(?m)^  speed +(about \d+\.\d tokens/s|not measured)")
        for part in ("GGUF v3", "98,362,432 bytes", "llama 135M Q4_1", "49,152", "smollm", "per 1,000 tokens", "-c 4096", "kernel"):
            self.assertIn(part, text)
        value = json.loads(self.done(tern("info", paths.model, "--json", "--keys", "--tensors")).out)
        self.assertEqual((value["model"]["layers"], value["model"]["heads"], value["file"]["tensors"]), (30, 9, 272))
        self.assertTrue(value["runs"]["can_run"])
        self.assertEqual(len(value["tensor_list"]), 272)
        self.assertIn("general.architecture", [entry["key"] for entry in value["keys"]])

    def test_info_takes_little_memory(self):
        program = pathlib.Path(paths.tern).read_bytes()
        if b"__asan_init" in program or b"__tsan_init" in program:
            self.skipTest("a sanitizer takes memory of its own")
        process = subprocess.Popen([paths.tern, "info", paths.model], stdout=subprocess.DEVNULL, env=clean_environment())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        self.assertLess(usage.ru_maxrss, 400 << 10)  # KiB: 256 MiB to measure with, and the program

    def test_info_prints_template_and_hash(self):
        self.assertIn("<|im_start|>", self.done(tern("info", paths.model, "--template")).out)
        import hashlib
        self.assertIn(hashlib.sha256(pathlib.Path(paths.model).read_bytes()).hexdigest(), self.done(tern("info", paths.model, "--hash")).out)

    def test_damaged_files_are_one_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, size in (("cut.gguf", 50_000_000), ("stub.gguf", 100), ("empty.gguf", 0)):
                path = f"{folder}/{name}"
                with open(paths.model, "rb") as source, open(path, "wb") as target:
                    target.write(source.read(size))
                for command in (("run", path, "-p", "x"), ("tokenize", path, "-p", "x"), ("bench", path)):
                    if name != "cut.gguf" or command[0] != "tokenize":
                        self.refused(tern(*command), 1, path)

    def test_check_tensors_belongs_to_commands_that_read_the_weights(self):
        self.refused(tern("info", paths.model, "--check-tensors"), 2, "--check-tensors", "does not take")
        self.refused(tern("explain", paths.model, "--check-tensors"), 2, "--check-tensors", "--time")
        self.assertEqual(self.done(run("-p", QUESTION, "--check-tensors")).out, run("-p", QUESTION).out)
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/nan.gguf"
            value = json.loads(tern("info", paths.model, "--json", "--tensors").out)
            norm = next(entry for entry in value["tensor_list"] if entry["name"] == "output_norm.weight")
            data = bytearray(pathlib.Path(paths.model).read_bytes())
            begin = (len(data) - max(entry["offset"] + entry["bytes"] for entry in value["tensor_list"])) // 32 * 32
            at = begin + norm["offset"] + 4 * 7
            data[at:at + 4] = struct.pack("<f", math.nan)
            pathlib.Path(path).write_bytes(data)
            self.refused(tern("run", path, "-p", "x", "--check-tensors"), 1, path, "tensor 'output_norm.weight' weight 7 is nan")

    def test_a_file_that_is_read_answers_like_one_that_is_mapped(self):
        self.assertEqual(self.done(run("-p", QUESTION, "--load-mode", "read")).out, self.done(run("-p", QUESTION, "--load-mode", "mmap")).out)

    def test_explain_comes_from_the_plan(self):
        text = self.done(tern("explain", paths.model)).out
        for part in ("layer 0-29", "linear", "attention", "total ", "memory "):
            self.assertIn(part, text)
        value = json.loads(self.done(tern("explain", paths.model, "--rows", "64", "--json")).out)
        self.assertEqual(value["rows"], 64)
        self.assertGreater(len(value["ops"]), 30 * 5)
        self.assertTrue(all(op["kernel"] and op["reason"] for op in value["ops"]))

    def test_explain_plans_for_a_device_that_is_not_here(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "small.profile")
            pathlib.Path(path).write_text("name = small\nkind = cpu\narchitecture = x86-64\nmemory_gib = 8\ncores = 6\nisa = avx2\n")
            text = self.done(tern("explain", paths.model, "--profile", path)).out
            self.assertIn("small: AVX2 FMA F16C, 6 threads", text)
            self.assertIn("block_product:avx2 i12", text)
            self.refused(tern("explain", paths.model, "--profile", path, "--time"), 2, "--time", "nothing to time")
            pathlib.Path(path).write_text("name = small\nkind = npu\n")
            self.refused(tern("explain", paths.model, "--profile", path), 1, "--profile", "line 2", "expected cpu, cuda or metal")
        self.refused(tern("explain", paths.model, "--profile", "h900"), 1, "h900", "h200, m4-pro, rtx4090")

    def test_calibrate_measures_or_says_that_the_machine_is_busy(self):
        with tempfile.TemporaryDirectory() as folder:
            shapes = pathlib.Path(folder, "shapes")
            shapes.write_text("f32 64 64 1,8 # two\n")
            result = tern("calibrate", "--shapes", str(shapes), "--quick", "--json", env={"TERN_CACHE_DIR": folder})
            if result.code == 0:
                value = json.loads(result.out)
                self.assertEqual(len(value["rows"]) + len(value["skipped"]), 2)
                self.assertTrue(value["kept_in"].startswith(folder))
            else:
                self.assertIn("busy or too hot", result.err)
            shapes.write_text("f32 64\n")
            self.refused(tern("calibrate", "--shapes", str(shapes)), 1, "shapes", "line 1")
            self.refused(tern("calibrate", paths.model, "--shapes", str(shapes)), 2, "--shapes", "one of the two")

    def test_explain_measures(self):
        value = json.loads(self.done(tern("explain", paths.model, "--time", "--json")).out)
        self.assertGreater(sum(op["microseconds"] for op in value["ops"]), 100)
        self.assertGreater(value["read_gbps"], 0)
        self.assertIn("% of the", self.done(tern("explain", paths.model, "--time")).out)
