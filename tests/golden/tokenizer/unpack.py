#!/usr/bin/env python3
"""Unpacks one .xz file: unpack.py IN.xz OUT."""
import lzma
import pathlib
import sys

source, target = sys.argv[1:]
pathlib.Path(target).write_bytes(lzma.open(source).read())
