#!/usr/bin/env python3
"""The program as its users meet it: text, streams, signals and exit codes.

usage: cli_test.py MODEL --tern PROGRAM [-k PART_OF_A_NAME]

MODEL is SmolLM2-135M-Instruct (tools/fetch_smollm2.sh prints where it lies). Ends with "cli: N passed, M failed".
"""
import argparse
import os
import sys
import unittest

import answers
import reports
from support import paths


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--tern", required=True)
    parser.add_argument("-k", action="append", help="only tests whose names contain this")
    arguments = parser.parse_args()
    paths.tern, paths.model = os.path.abspath(arguments.tern), os.path.abspath(arguments.model)
    loader = unittest.TestLoader()
    if arguments.k:
        loader.testNamePatterns = [f"*{part}*" for part in arguments.k]
    suite = unittest.TestSuite(loader.loadTestsFromModule(module) for module in (answers, reports))
    result = unittest.TextTestRunner(verbosity=1, stream=sys.stdout).run(suite)
    failed = len({test for test, _ in result.failures + result.errors})
    print(f"cli: {result.testsRun - failed} passed, {failed} failed")
    return 1 if failed or result.testsRun == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
