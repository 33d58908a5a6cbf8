"""The measured side of against_llama_cpp.py: one peer engine with one model, in a process of its own.

usage: llama_cpp_peer.py xllamacpp|ik MODEL THREADS       (started by against_llama_cpp.py with the peer's Python)

Reads one JSON request a line, {"prompt": P, "generate": G}, answers {"prompt_tps": ..., "generate_tps": ...}; "quit" ends it.
"""
import json
import os
import random
import sys
import time

CONTEXT = 1024


def ids(count, vocabulary, seed=0):
    # The same ids for every engine: random, so that nothing is cached or predictable.
    return [random.Random(seed + i).randrange(vocabulary) for i in range(count)]


class XLlamaCpp:
    """llama.cpp through the package xllamacpp; it times itself (agrees with llama-bench within 3 %)."""

    def __init__(self, path, threads):
        import xllamacpp
        params = xllamacpp.CommonParams()
        params.model.path, params.n_ctx, params.n_parallel = path, CONTEXT, 1
        params.n_gpu_layers, params.warmup, params.verbosity = 0, True, -1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        self.server = xllamacpp.Server(params)
        # Any id that every vocabulary has will do.
        self.vocabulary = 30000

    def ask(self, prompt, generate):
        got = []
        self.server.handle_completions({"prompt": ids(prompt, self.vocabulary), "n_predict": generate, "temperature": 0.0, "cache_prompt": False,
                                        "ignore_eos": True, "stream": False}, got.append)
        return got[-1]["timings"]

    def prompt_rate(self, count):
        return self.ask(count, 1)["prompt_per_second"]

    def generate_rate(self, count):
        # count steps are timed: the first token comes from the prompt.
        return self.ask(1, count + 1)["predicted_per_second"]


class IkLlamaCpp:
    """ik_llama.cpp through the package ik-llama-cpp-python, its low-level calls timed from outside."""

    def __init__(self, path, threads):
        from ik_llama_cpp import _ctypes_api, _internals
        self.api, self.internals = _ctypes_api, _internals
        self.model = _internals.IkModel(path)
        self.context = _internals.IkContext(self.model, n_ctx=CONTEXT, n_threads=threads)
        self.vocabulary = min(30000, self.model.n_vocab)

    def decode(self, tokens, position):
        batch = self.internals.make_batch_range(tokens, pos_start=position)
        try:
            if self.context.decode(batch) != 0:
                raise RuntimeError("llama_decode failed")
            self.context.get_logits(-1)
        finally:
            self.api.llama_batch_free(batch)

    def prompt_rate(self, count):
        self.context.kv_cache_clear()
        tokens = ids(count, self.vocabulary)
        begin = time.perf_counter()
        self.decode(tokens, 0)
        return count / (time.perf_counter() - begin)

    def generate_rate(self, count):
        self.context.kv_cache_clear()
        tokens = ids(count + 1, self.vocabulary)
        self.decode(tokens[:1], 0)
        begin = time.perf_counter()
        for i, token in enumerate(tokens[1:], 1):
            self.decode([token], i)
        return count / (time.perf_counter() - begin)


def main():
    kind, path, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    # Engines print to stdout, too; the answers keep a descriptor of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    peer = {"xllamacpp": XLlamaCpp, "ik": IkLlamaCpp}[kind](path, threads)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        if line.strip() == "quit":
            break
        request = json.loads(line)
        answer = {}
        if request["prompt"]:
            answer["prompt_tps"] = peer.prompt_rate(request["prompt"])
        if request["generate"]:
            answer["generate_tps"] = peer.generate_rate(request["generate"])
        print(json.dumps(answer), file=answers, flush=True)
    answers.close()
    os._exit(0)  # the servers' threads do not all end by themselves


if __name__ == "__main__":
    main()
