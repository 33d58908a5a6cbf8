#!/usr/bin/env python3
"""Compares the tern program with tests/golden/lm, case by case, as that folder's README says ("What to expect").

usage: goldens_replay.py [--tern build/release/bin/tern] [--goldens tests/golden/lm] [--only CASE] [FLAG ...]

Flags after the options go to every `tern logits` (for example: -t 1). Python's standard library only.
"""
import argparse
import pathlib
import sys

from program import FLOAT, Program, Report, ROOT, best, divergences, read_json, read_safetensors, relative_error

# Bars of the README: "fail above".
FLOAT_ERROR, FLOAT_KL_HALF, FLOAT_ERROR_HALF, I12_ERROR, DEFAULT_MEAN_KL = 1e-4, 1e-5, 3e-3, 1e-5, 1e-3
DECODE_ROWS = 8
# A greedy choice is compared where its gap is larger than what float32 engines differ by.
SAFE_GAP = 2e-3


def replay_float(program, report, case, model, golden, flags):
    """Float activations and cache: every logit and hidden state of one pass."""
    ids = list(golden["input_ids"].values)
    got = program.logits(model, ids, *FLOAT, "--taps", *flags)
    names = ["logits", "final_norm"] + [n for n in golden if n.startswith("layer_out.")]
    if "embeddings" in golden:
        names.append("embeddings")
    for name in sorted(names):
        report.below(f"{case} f32 {name}", relative_error(got[name], golden[name]), FLOAT_ERROR)

    rows = golden["decode_logits"].shape[0]
    got = program.logits(model, ids, *FLOAT, "--decode", rows, "--last", rows, *flags)
    report.below(f"{case} f32 decode", relative_error(got["logits"].last_rows(rows), golden["decode_logits"]), FLOAT_ERROR)

    # Small device steps: a prompt that is cut in many pieces gives the same.
    got = program.logits(model, ids, *FLOAT, "-ub", 7, *flags)
    report.below(f"{case} f32 -ub 7", relative_error(got["logits"], golden["logits"]), FLOAT_ERROR)


def replay_greedy(program, report, case, what, model, prompt, greedy, gaps, flags):
    """The greedy continuation, each id from the logits before it, one token at a time."""
    count = len(greedy)
    got = program.logits(model, prompt + greedy[:-1], *FLOAT, "--decode", count - 1, "--last", count, *flags)
    chosen = [best(row) for row in got["logits"].rows()]
    differ = [i for i in range(count) if chosen[i] != greedy[i] and gaps[i] > SAFE_GAP]
    report.check(f"{case} {what}", not differ, f"{sum(g > SAFE_GAP for g in gaps)} of {count} steps compared" if not differ else
                 f"step {differ[0]}: {chosen[differ[0]]} where {greedy[differ[0]]} is expected")


def replay_half_cache(program, report, case, model, golden, flags):
    got = program.logits(model, list(golden["input_ids"].values), "--activations", "f32", "-ctk", "f16", "-ctv", "f16", *flags)
    report.below(f"{case} f32, half cache: error", relative_error(got["logits"], golden["logits"]), FLOAT_ERROR_HALF)
    report.below(f"{case} f32, half cache: largest KL", max(divergences(got["logits"], golden["logits"])), FLOAT_KL_HALF)


def replay_i12(program, report, case, entry, model, golden, flags):
    """Packed cases: 12-bit activations with exact sums, at every position, in one pass and token by token."""
    ids = list(golden["input_ids"].values)
    f32_cache = ["-ctk", "f32", "-ctv", "f32"]
    got = program.logits(model, ids, "--exact", *f32_cache, "--taps", *flags)
    for name in ("logits", "final_norm"):
        report.below(f"{case} i12 {name}", relative_error(got[name], golden[f"i12.{name}"]), I12_ERROR)
    rows = min(DECODE_ROWS, len(ids) - 1)
    decoded = program.logits(model, ids, "--exact", *f32_cache, "--decode", rows, "--last", rows, *flags)
    report.below(f"{case} i12 decode", relative_error(decoded["logits"], golden["i12.logits"].last_rows(rows)), I12_ERROR)
    report.check(f"{case} i12 decode equals prefill, bit for bit",
                 decoded["logits"].values.tobytes() == got["logits"].last_rows(rows).values.tobytes())
    half = program.logits(model, ids, "--exact", *flags)
    report.below(f"{case} i12, half cache: largest KL to i12", max(divergences(half["logits"], golden["i12.logits"])),
                 3 * entry["i12_after_flips"]["kl_max"])


def replay_default(program, report, case, model, golden, flags):
    """What a user gets without flags, against the float golden."""
    got = program.logits(model, list(golden["input_ids"].values), *flags)
    kl = divergences(got["logits"], golden["logits"])
    report.below(f"{case} default settings: mean KL to f32", sum(kl) / len(kl), DEFAULT_MEAN_KL)


def replay_text(program, report, case, model, chat):
    answers = program.json_lines(["tokenize", model], [{"text": s["text"], "add_special": False, "parse_special": "all"} for s in chat["strings"]]
                                 + [{"messages": chat["messages"]}])
    for answer, string in zip(answers, chat["strings"]):
        report.check(f"{case} ids of {string['text']!r}", answer.get("ids") == string["ids_with_special_tokens_parsed"], "" if "ids" in answer else answer)
    report.check(f"{case} ids of the chat", answers[-1].get("ids") == chat["prompt_ids"], "" if answers[-1].get("ids") == chat["prompt_ids"] else answers[-1])
    [rendered] = program.json_lines(["template", model], [{"messages": chat["messages"]}])
    report.check(f"{case} rendered chat", rendered.get("text") == chat["prompt"])


def replay_case(program, report, folder, entry, flags):
    case, model = entry["name"], folder / entry["name"] / "model.gguf"
    golden = read_safetensors(folder / case / "golden.safetensors")
    chat = read_json(folder / case / "chat.json")
    ids = list(golden["input_ids"].values)
    parts = [
        ("float", lambda: replay_float(program, report, case, model, golden, flags)),
        ("greedy", lambda: replay_greedy(program, report, case, "greedy ids", model, ids, list(golden["greedy_ids"].values),
                                         list(golden["greedy_gaps"].values), flags)),
        ("chat", lambda: replay_greedy(program, report, case, "greedy ids of the chat", model, chat["prompt_ids"], chat["greedy_ids"],
                                       chat["greedy_gaps"], flags)),
        ("half cache", lambda: replay_half_cache(program, report, case, model, golden, flags)),
        ("default", lambda: replay_default(program, report, case, model, golden, flags)),
        ("text", lambda: replay_text(program, report, case, model, chat)),
    ]
    if "i12.logits" in golden:
        parts.append(("i12", lambda: replay_i12(program, report, case, entry, model, golden, flags)))
    for name, part in parts:
        report.attempt(f"{case} {name}", part)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tern", type=pathlib.Path, default=ROOT / "build/release/bin/tern")
    parser.add_argument("--goldens", type=pathlib.Path, default=ROOT / "tests/golden/lm")
    parser.add_argument("--only")
    args, flags = parser.parse_known_args()

    program, report = Program(args.tern), Report("goldens replay")
    for entry in read_json(args.goldens / "cases.json")["cases"]:
        if args.only and entry["name"] != args.only:
            continue
        if not (args.goldens / entry["name"]).is_dir():
            print(f"skipped  {entry['name']}: not in {args.goldens}")
            continue
        replay_case(program, report, args.goldens, entry, flags)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
