#!/usr/bin/env python3
"""Compares what the rewriter makes of small files with the text that is kept beside them.

usage: rewriter_test.py [--update]      --update writes the expected texts anew; read the difference before committing it
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parents[1] / "tools"))

import msl2cpp  # noqa: E402 (found through the path above)
from msl_tokens import Tokens  # noqa: E402


def check_golden(update):
    failed = 0
    files = sorted((HERE / "golden").glob("*.metal"))
    for source in files:
        expected = source.with_suffix(".expected")
        result = msl2cpp.rewrite(source.read_text(), source.name)
        if update:
            expected.write_text(result)
        kept = expected.read_text() if expected.exists() else ""
        # Each line of the source is on the same line of the result, behind the line of the include.
        body = result.split('\n#line 1 "<thunks>"')[0]
        wrong = ""
        if result != kept:
            wrong = f"differs from {expected.name}"
        elif body.count("\n") != source.read_text().count("\n") + 1:
            wrong = "lines were lost or added"
        failed += bool(wrong)
        print(f"{'FAIL' if wrong else 'ok  '} {source.name} {wrong}")
        if wrong:
            print(result)
    return len(files), failed


def check_tokens():
    """Nothing is lost by taking a text apart and putting it together."""
    failed, count = 0, 0
    for source in sorted(HERE.parents[1].glob("**/*.metal")):
        text = source.read_text()
        count += 1
        if "".join(Tokens(text).t) != text:
            failed += 1
            print(f"FAIL {source.name}: tokens do not give the text again")
    return count, failed


def main(arguments):
    results = [check_golden("--update" in arguments), check_tokens()]
    failed = sum(f for _, f in results)
    print(f"{sum(n for n, _ in results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
