#!/usr/bin/env python3
"""Writes tests/golden/smollm2: what Hugging Face transformers says about SmolLM2-135M-Instruct.

usage: make_smollm2_goldens.py MODEL.gguf [--out DIR] [--survey]

The Q4_1 file is loaded dequantised, in float32, on the CPU. Every number comes from transformers; the tokenizer is built
from the file's own vocabulary and compared with transformers' reading of the chat template.

--survey   runs all candidate prompts and prints how far each answer goes before its first near-tie, then writes nothing.

Needs torch, transformers, accelerate, tokenizers, gguf, safetensors, jinja2 (versions are written into greedy.json).
"""
import argparse
import hashlib
import importlib.metadata
import json
import math
import pathlib

import numpy as np
import torch
from gguf import GGUFReader
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
STEPS = 64
NEAR_TIE = 1e-3
END_TOKENS = {0, 2}
WINDOW = 512
TOP = 64
KL_ROWS = 200

# The fixture: from a survey of these and the candidates below, answers of at least 64 tokens (so that no end token falls
# inside) without a near-tie before their end.
PROMPTS = [
    "What are the main differences between cats and dogs?",
    "How do I bake a simple loaf of bread?",
    "Why is the sky blue?",
    "Give me five tips for learning a new language.",
    "Write a polite letter asking a neighbour to turn the music down.",
    "How does a sailing boat move against the wind?",
    "Write a poem about the sea in winter.",
    "What is the difference between weather and climate?",
    "How are rainbows made?",
    "Write a Python function that adds up the numbers of a list.",
]
CANDIDATES = [
    "Explain how a bicycle stays upright, in simple words.",
    "Write a short story about a lighthouse keeper.",
    "Describe the water cycle to a child.",
    "What did people use before electric light?",
    "Explain what a computer program is.",
    "Tell me about the history of the printing press.",
    "What should I pack for a walk in the mountains?",
    "Explain the rules of chess for a beginner.",
]


def read_tokenizer(path):
    """The tokenizer of the file: byte-level BPE, digits one by one, then the GPT-2 pattern."""
    fields = {k: v.contents() for k, v in GGUFReader(path).fields.items() if k.startswith("tokenizer.")}
    tokens, kinds = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    vocab = {}
    for i, token in enumerate(tokens):
        vocab.setdefault(token, i)
    merges = [tuple(m.split(" ", 1)) for m in fields["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t, k in zip(tokens, kinds) if k == 3])
    return tokenizer, fields["tokenizer.chat_template"]


def greedy(model, ids, steps):
    """Greedy ids one at a time with a cache, and the gap between the two best logits of every step. End tokens count as tokens."""
    out, margins, cache, feed = [], [], None, torch.tensor([ids])
    for _ in range(steps):
        result = model(feed, cache=cache, use_cache=True)
        best = torch.topk(result.logits[0, -1].double(), 2)
        out.append(int(best.indices[0]))
        margins.append(float(best.values[0] - best.values[1]))
        cache, feed = result.cache, torch.tensor([[out[-1]]])
    return out, margins


def first_tie(margins):
    return next((i for i, m in enumerate(margins) if m < NEAR_TIE), len(margins))


def answer(model, tokenizer, chat, prompt):
    messages = [{"role": "user", "content": prompt}]
    text = chat.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    torch.set_num_threads(1)
    out, margins = greedy(model, ids, STEPS)
    return {"prompt": prompt, "text": text, "ids": ids, "greedy_ids": out, "margins": [round(m, 6) for m in margins],
            "compared_steps": first_tie(margins)}


def verify(model, case):
    """A second opinion by another road: two threads, and the whole answer forced through in one pass."""
    torch.set_num_threads(2)
    again, _ = greedy(model, case["ids"], STEPS)
    forced = model(torch.tensor([case["ids"] + case["greedy_ids"][:-1]])).logits[0, -STEPS:].argmax(-1).tolist()
    n = case["compared_steps"]
    assert again[:n] == case["greedy_ids"][:n], f"two threads differ: {case['prompt']}"
    assert forced[:n] == case["greedy_ids"][:n], f"the forced pass differs: {case['prompt']}"


def perplexity(model, ids):
    """llama-perplexity's rule: windows of n tokens, each scored on its tokens n/2+1 .. n-1."""
    windows, total, squares, count, running = [], 0.0, 0.0, 0, []
    for k in range(len(ids) // WINDOW):
        window = ids[k * WINDOW:(k + 1) * WINDOW]
        logp = torch.log_softmax(model(torch.tensor([window])).logits[0].double(), -1)
        nll = [-float(logp[t - 1, window[t]]) for t in range(WINDOW // 2 + 1, WINDOW)]
        windows.append({"scored": len(nll), "nll_mean": sum(nll) / len(nll)})
        total, squares, count = total + sum(nll), squares + sum(x * x for x in nll), count + len(nll)
        running.append(math.exp(total / count))
    mean = total / count
    return {"n_ctx": WINDOW, "n_tokens": len(ids), "n_chunks": len(windows), "n_scored": count, "nll_mean": mean, "ppl": math.exp(mean),
            "chunks": running, "windows": windows}


def top_probabilities(model, ids):
    """The best TOP log-probabilities of the last KL_ROWS positions of the first window, and the mass of the rest."""
    logp = torch.log_softmax(model(torch.tensor([ids[:WINDOW]])).logits[0, -KL_ROWS:].double(), -1)
    best = torch.topk(logp, TOP)
    rest = torch.log1p(-best.values.exp().sum(-1))
    return {"ids": best.indices.to(torch.int32).numpy(), "log_probabilities": best.values.float().numpy(), "log_rest": rest.float().numpy(),
            "input_ids": np.array(ids[:WINDOW], dtype=np.int32)}


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests/golden/smollm2")
    parser.add_argument("--survey", action="store_true")
    args = parser.parse_args()

    digest = hashlib.sha256(args.model.read_bytes()).hexdigest()
    assert digest == SHA256, f"{args.model} is another file: {digest}"
    model = AutoModelForCausalLM.from_pretrained(str(args.model.parent), gguf_file=args.model.name, dtype=torch.float32).eval()
    tokenizer, template = read_tokenizer(str(args.model))
    chat = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>")
    chat.chat_template = template

    if args.survey:
        for prompt in PROMPTS + CANDIDATES:
            case = answer(model, tokenizer, chat, prompt)
            ends = next((i for i, t in enumerate(case["greedy_ids"]) if t in END_TOKENS), STEPS)
            print(f"tie after {case['compared_steps']:2}  end after {ends:2}  smallest {min(case['margins']):.4f}  {prompt}", flush=True)
        return

    cases = [answer(model, tokenizer, chat, p) for p in PROMPTS]
    for case in cases:
        verify(model, case)
        n = case["compared_steps"]
        assert not END_TOKENS & set(case["greedy_ids"]), f"an end token inside the answer: {case['prompt']}"
        case["greedy_text"] = tokenizer.decode(case["greedy_ids"][:n], skip_special_tokens=False)
    compared = sum(c["compared_steps"] for c in cases)
    assert compared >= 500, f"only {compared} of {STEPS * len(cases)} steps lie before a near-tie"

    args.out.mkdir(parents=True, exist_ok=True)
    made_with = {p: importlib.metadata.version(p) for p in ("torch", "transformers", "tokenizers", "gguf", "numpy")}
    greedy_file = {"model": {"file": args.model.name, "sha256": SHA256}, "made_with": made_with, "near_tie": NEAR_TIE,
                   "compared_steps": compared, "cases": cases}
    (args.out / "greedy.json").write_text(json.dumps(greedy_file, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    text = (args.out / "alice.txt").read_bytes()
    ids = tokenizer.encode(text.decode(), add_special_tokens=False).ids
    torch.set_num_threads(2)
    result = {"text": "alice.txt", "text_sha256": hashlib.sha256(text).hexdigest(), **perplexity(model, ids)}
    (args.out / "perplexity.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    save_file(top_probabilities(model, ids), args.out / "top_probabilities.safetensors")
    print(f"{compared} of {STEPS * len(cases)} greedy steps before a near-tie; perplexity {result['ppl']:.6f} over {result['n_scored']} tokens")


if __name__ == "__main__":
    main()
