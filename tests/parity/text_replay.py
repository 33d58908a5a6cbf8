#!/usr/bin/env python3
"""Compares `tern tokenize` and `tern template` with the vectors of tests/golden/tokenizer and tests/golden/templates.

usage: text_replay.py [--tern build/release/bin/tern] [--tokenizer DIR] [--templates DIR] [--all-templates]

Vectors whose vocabulary is not in DIR are skipped by name. Lines marked `unicode` or `artifact` are reported, all others must be
equal. --all-templates renders every template of the folder; without it those that must render exactly (Qwen3).
Python's standard library only.
"""
import argparse
import collections
import lzma
import pathlib
import shutil
import sys
import tempfile

from program import Failed, Program, Report, ROOT, read_json, read_json_lines

CLOCK = "2026-01-02 03:04:05"          # strftime_now of the expected renderings
REQUIRED_TEMPLATES = ["Qwen-Qwen3-0.6B"]
NEEDED = ["smollm2", "qwen3"]          # their vectors must be there


def unpacked(source, target):
    """A copy of source at target, xz taken off."""
    if source.suffix == ".xz":
        with lzma.open(source) as packed, open(target, "wb") as out:
            shutil.copyfileobj(packed, out)
    else:
        shutil.copyfile(source, target)
    return target


def find_vocabulary(folder, stem, work):
    """MODEL for `tern tokenize`: a vocabulary GGUF, or a folder with tokenizer.json; None where it is not there."""
    for file in sorted(folder.rglob(f"ggml-vocab-{stem}.gguf*")):
        if file.name.endswith((".gguf", ".gguf.xz")):
            return unpacked(file, work / f"{stem}.gguf")
    for file in sorted([*folder.rglob("tokenizer.json*"), *folder.rglob(f"{stem}_tokenizer.json*")]):
        if file.parent.name == stem or file.name.startswith(stem + "_"):
            target = work / stem
            target.mkdir()
            unpacked(file, target / "tokenizer.json")
            config = file.with_name(file.name.removesuffix(".xz").replace("tokenizer.json", "tokenizer_config.json"))
            if config.is_file():
                shutil.copyfile(config, target / "tokenizer_config.json")
            return target
    return None


def questions(row):
    """The requests that one line of vectors makes, each with the fields of the answer and the values they must have."""
    if "messages" in row:
        request = {k: row[k] for k in ("messages", "tools", "kwargs", "add_generation_prompt") if row.get(k) is not None}
        return [("chat", request, {"ids": row["ids_sanitized"]})]
    if "chunks" in row:
        shown = {k: row[k] for k in ("text", "chunks", "flush")}
        asks = [("stream", {"ids": row["ids"], "skip_special": False}, shown)]
        if "skip_special" in row:
            asks.append(("stream without special tokens", {"ids": row["ids"], "skip_special": True}, row["skip_special"]))
        return asks
    asks = []
    for parse, key in (("all", "ids"), ("defined", "ids_no_special"), ("none", "ids_plain")):
        ids = row.get(key, row["ids_no_special"]) if parse == "none" else row[key]
        asks.append((f"parse_special {parse}", {"text": row["text"], "add_special": False, "parse_special": parse}, {"ids": ids}))
    asks.append(("decode", {"ids": row["ids"], "skip_special": False}, {"text": row["decoded"]}))
    return asks


def first_difference(answer, expected):
    for key, value in expected.items():
        got = answer.get(key)
        if got == value:
            continue
        if isinstance(value, list) and isinstance(got, list):
            place = next((i for i, (a, b) in enumerate(zip(got, value)) if a != b), min(len(got), len(value)))
            return f"{key}[{place}]: {got[place:place + 4]} where {value[place:place + 4]} is expected"
        return f"{key}: {str(got)[:120]!r} where {str(value)[:120]!r} is expected ({answer.get('error', '')})"
    return None


def compare(report, name, rows, asked, answers):
    """Counts equal answers; prints each difference, and marks that excuse one."""
    marks = collections.Counter()
    for (row, what, expected), answer in zip(asked, answers):
        difference = first_difference(answer, expected)
        if difference and (row.get("unicode") or row.get("artifact")):
            marks["unicode" if row.get("unicode") else "artifact"] += 1
            continue
        label = row.get("name") or row.get("group") or ""
        report.check(f"{name} {what} ({label}) {str(row.get('text', ''))[:40]!r}", difference is None, difference or "")
    note = "".join(f", {count} marked {mark} differ" for mark, count in sorted(marks.items()))
    print(f"  {name}: {len(rows)} lines, {len(asked)} questions{note}", flush=True)


def replay_vectors(program, report, file, stem, model):
    rows = read_json_lines(file)
    asked = [(row, what, request, expected) for row in rows for what, request, expected in questions(row)]
    answers = program.json_lines(["tokenize", model], [a[2] for a in asked], allow_errors=True)
    compare(report, file.name, rows, [(a[0], a[1], a[3]) for a in asked], answers)

    # The text of SmolLM2's chats stands in the vectors, too.
    chats = [row for row in rows if "messages" in row and "text" in row]
    if chats:
        requests = [questions(row)[0][1] for row in chats]
        answers = program.json_lines(["template", model, "--now", CLOCK], requests, allow_errors=True)
        compare(report, file.name + " (template)", chats, [(row, "text", {"text": row["text"]}) for row in chats], answers)


def replay_tokenizer(program, report, folder):
    seen = set()
    with tempfile.TemporaryDirectory() as work:
        vocabularies = {}
        for file in sorted([*folder.rglob("*.jsonl"), *folder.rglob("*.jsonl.xz")]):
            stem = file.name.split(".jsonl")[0].removeprefix("gguf_")
            for ending in ("_chat", "_stream", "_long"):
                stem = stem.removesuffix(ending)
            if stem not in vocabularies:
                vocabularies[stem] = find_vocabulary(folder, stem, pathlib.Path(work))
            if vocabularies[stem] is None:
                print(f"skipped  {file.name}: no vocabulary for it in {folder}")
                continue
            seen.add(stem)
            report.attempt(file.name, lambda f=file, s=stem: replay_vectors(program, report, f, s, vocabularies[s]))
    for stem in NEEDED:
        if stem not in seen:
            report.check(f"vectors of {stem}", False, f"not found in {folder}")


def render_answer(case, answer):
    """None when the answer is what the case expects, else the difference."""
    if "error" not in case:
        return first_difference(answer, {"text": case["expected"]})
    if "error" not in answer:
        return f"{str(answer.get('text'))[:80]!r} where an error is expected: {case['error']['message'][:80]}"
    if case["error"]["kind"] == "raised" and case["error"]["message"] not in answer["error"]:
        return f"{answer['error'][:120]!r} does not hold the template's words {case['error']['message']!r}"
    return None


def replay_template(program, report, template, expected):
    cases = read_json(expected)
    fields = ("messages", "tools", "documents", "kwargs", "add_generation_prompt", "continue_final_message", "bos_token", "eos_token", "raw")
    requests = [{k: case[k] for k in fields if k in case} for case in cases]
    answers = program.json_lines(["template", "--chat-template-file", template, "--now", CLOCK], requests, allow_errors=True)
    differ = 0
    for case, answer in zip(cases, answers):
        difference = render_answer(case, answer)
        differ += difference is not None
        report.check(f"{template.stem} {case.get('name', '')}", difference is None, difference or "")
    print(f"  {template.stem}: {len(cases)} conversations, {differ} differ", flush=True)


def replay_micro(program, report, file):
    cases = read_json(file)
    requests = [{"template": c["template"], "vars": c["vars"]} for c in cases]
    answers = program.json_lines(["template", "--now", CLOCK], requests, allow_errors=True)
    full = 0
    for case, answer in zip(cases, answers):
        expected = {"error": {"kind": case["error_kind"], "message": case.get("message", "")}} if "error_kind" in case else {"expected": case["expected"]}
        difference = render_answer(expected, answer)
        if difference and case["tier"] == "full":
            full += 1
            continue
        report.check(f"micro {case['id']}", difference is None, difference or "")
    print(f"  {file.name}: {len(cases)} programs; {full} of tier full differ (nice to have)", flush=True)


def replay_templates(program, report, folder, every):
    sources = {f.stem: f for f in folder.rglob("*.jinja")}
    found = set()
    for file in sorted(folder.rglob("expected/*.json*")):
        name = file.name.split(".json")[0]
        if name not in sources:
            print(f"skipped  {name}: its template is not in {folder}")
            continue
        if every or name in REQUIRED_TEMPLATES:
            found.add(name)
            report.attempt(name, lambda f=file, n=name: replay_template(program, report, sources[n], f))
    for name in REQUIRED_TEMPLATES:
        if name not in found:
            report.check(f"template {name}", False, f"not found in {folder}")
    for file in sorted(folder.rglob("micro.json")):
        report.attempt(file.name, lambda f=file: replay_micro(program, report, f))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tern", type=pathlib.Path, default=ROOT / "build/release/bin/tern")
    parser.add_argument("--tokenizer", type=pathlib.Path, default=ROOT / "tests/golden/tokenizer")
    parser.add_argument("--templates", type=pathlib.Path, default=ROOT / "tests/golden/templates")
    parser.add_argument("--all-templates", action="store_true")
    args = parser.parse_args()

    program, report = Program(args.tern), Report("text replay", verbose=False)
    try:
        replay_tokenizer(program, report, args.tokenizer)
        replay_templates(program, report, args.templates, args.all_templates)
    except Failed as reason:
        report.check("text replay", False, str(reason))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
