#!/usr/bin/env python3
"""Compares the tern program on SmolLM2 with tests/golden/smollm2: greedy text, perplexity, log-probabilities, divergence.

usage: smollm2_replay.py MODEL.gguf [--tern build/release/bin/tern] [--goldens tests/golden/smollm2]

Python's standard library only.
"""
import argparse
import heapq
import json
import math
import pathlib
import sys
import tempfile

from program import FLOAT, Program, Report, ROOT, best, log_softmax, read_json, read_safetensors

LEAST_COMPARED = 500          # greedy steps before a near-tie, of 640
PERPLEXITY_BAR = 1e-3         # relative, to transformers
MEAN_KL_BAR = 1e-3            # nats, default settings to float
LOG_PROBABILITY_BAR = 1e-3    # float settings, the 64 best of each position; two right engines differ by 1e-4


def replay_greedy(program, report, model, goldens):
    greedy = read_json(goldens / "greedy.json")
    report.check("steps before a near-tie", greedy["compared_steps"] >= LEAST_COMPARED, greedy["compared_steps"])
    chats = [[{"role": "user", "content": c["prompt"]}] for c in greedy["cases"]]
    rendered = program.json_lines(["template", model], [{"messages": m} for m in chats])
    tokens = program.json_lines(["tokenize", model], [{"messages": m} for m in chats])
    for case, text, ids in zip(greedy["cases"], rendered, tokens):
        report.check(f"prompt {case['prompt']!r}", text.get("text") == case["text"] and ids.get("ids") == case["ids"],
                     "" if ids.get("ids") == case["ids"] else f"text {text}, ids {ids}")

        steps = case["compared_steps"]
        got = program.logits(model, case["ids"] + case["greedy_ids"][:-1], *FLOAT, "--last", len(case["greedy_ids"]))
        rows = got["logits"].rows()
        chosen = [best(row) for row in rows]
        margin_error = 0.0
        for row, margin in zip(rows[:steps], case["margins"]):
            top, second = heapq.nlargest(2, row)
            margin_error = max(margin_error, abs(top - second - margin))
        report.check(f"  {steps} greedy ids", chosen[:steps] == case["greedy_ids"][:steps], f"gaps differ by at most {margin_error:.1e}")

        out = program.run(["run", model, "-p", case["prompt"], "-n", len(case["greedy_ids"]), "--temp", 0, *FLOAT]).decode()
        whole = steps == len(case["greedy_ids"])
        same = out.rstrip("\n") == case["greedy_text"].rstrip("\n") if whole else out.startswith(case["greedy_text"])
        report.check("  greedy text of tern run", same, "" if same else f"{out!r} where {case['greedy_text']!r} is expected")


def replay_perplexity(program, report, model, goldens):
    expected = read_json(goldens / "perplexity.json")
    command = ["perplexity", model, "-f", goldens / expected["text"], "-c", expected["n_ctx"], "--json"]
    got = json.loads(program.run([*command, *FLOAT]))
    report.check("perplexity counts", all(got[k] == expected[k] for k in ("n_ctx", "n_chunks", "n_scored", "text_sha256")),
                 {k: got[k] for k in ("n_ctx", "n_chunks", "n_scored")})
    report.check("perplexity, float", abs(got["ppl"] / expected["ppl"] - 1) <= PERPLEXITY_BAR, f"{got['ppl']:.5f}, transformers {expected['ppl']:.5f}")
    worst = max(abs(a / b - 1) for a, b in zip(got["chunks"], expected["chunks"]))
    report.below("perplexity, float: worst running estimate", worst, PERPLEXITY_BAR)

    with tempfile.TemporaryDirectory() as folder:
        base = pathlib.Path(folder) / "base.kld"
        program.run([*command, *FLOAT, "--kl-divergence-base", base])
        got = json.loads(program.run([*command, "--kl-divergence-base", base, "--kl-divergence"]))
    kl = got["kl"]
    report.below("default settings to float: mean KL", abs(kl["mean"]), MEAN_KL_BAR)
    print(f"        default settings: perplexity {got['ppl']:.5f}, kl {json.dumps(kl)}")
    report.check("default settings: perplexity within 0.5 % of float", abs(got["ppl"] / expected["ppl"] - 1) <= 5e-3, f"{got['ppl']:.5f}")


def replay_probabilities(program, report, model, goldens):
    """The 64 best of 200 positions. The rest counts as one outcome, so the divergence is a lower bound of the whole one."""
    golden = read_safetensors(goldens / "top_probabilities.safetensors")
    ids, count = list(golden["input_ids"].values), golden["ids"].shape[0]
    expected = list(zip(golden["ids"].rows(), golden["log_probabilities"].rows(), golden["log_rest"].values))
    for name, flags in (("float", FLOAT), ("default", [])):
        rows = program.logits(model, ids, "--last", count, *flags)["logits"].rows()
        worst, total, same = 0.0, 0.0, 0
        for row, (top_ids, top, rest) in zip(rows, expected):
            mine = log_softmax(row)
            picked = [mine[i] for i in top_ids]
            worst = max(worst, max(abs(a - b) for a, b in zip(picked, top)))
            my_rest = math.log1p(-min(1 - 1e-12, math.fsum(map(math.exp, picked))))
            total += math.fsum(math.exp(b) * (b - a) for a, b in zip(picked, top)) + math.exp(rest) * (rest - my_rest)
            same += best(row) == top_ids[0]
        if name == "float":
            report.below("float: log-probabilities of the best 64", worst, LOG_PROBABILITY_BAR)
            report.check("float: first choices", same == count or same >= count - 1, f"{same} of {count}")
        report.below(f"{name}: mean KL to transformers", total / count, MEAN_KL_BAR)
        print(f"        {name}: largest difference of a log-probability {worst:.2e}, first choices {same} of {count}")


def replay_answer(program, report, model):
    out = program.run(["run", model, "-p", "What is the capital of France? Answer with one word.", "--temp", 0]).decode()
    report.check("the capital of France", out.strip() == "The capital of France is Paris.", repr(out))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--tern", type=pathlib.Path, default=ROOT / "build/release/bin/tern")
    parser.add_argument("--goldens", type=pathlib.Path, default=ROOT / "tests/golden/smollm2")
    args = parser.parse_args()

    program, report = Program(args.tern), Report("SmolLM2 replay")
    report.attempt("answer", lambda: replay_answer(program, report, args.model))
    report.attempt("perplexity", lambda: replay_perplexity(program, report, args.model, args.goldens))
    report.attempt("probabilities", lambda: replay_probabilities(program, report, args.model, args.goldens))
    report.attempt("greedy", lambda: replay_greedy(program, report, args.model, args.goldens))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
