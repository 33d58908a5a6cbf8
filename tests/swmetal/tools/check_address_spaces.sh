#!/bin/sh
# Syntax-only pass over .metal files with real address spaces: finds a missing or wrong device, constant or threadgroup,
# which the executing build accepts.
#
# usage: check_address_spaces.sh FILE.metal ... [-D... -I...]
#
# Known false alarm: a struct copied by value out of device memory. Copy its members, or use a reference.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
clang=${SWM_CLANG:-clang++-19}
files='' flags=''
for argument in "$@"; do
  case $argument in
    -*) flags="$flags $argument" ;;
    *) files="$files $argument" ;;
  esac
done
[ -n "$files" ] || { sed -n '2,7p' "$0" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
for file in $files; do
  # shellcheck disable=SC2086 # a list of flags
  PYTHONDONTWRITEBYTECODE=1 python3 "$here/msl2cpp.py" "$file" "$work/in.cpp" --clang "$clang" $flags || { status=1; continue; }
  sed -e 's/^#include "msl.h"$/#include "as_check.h"/' -e '/^#line 1 "<thunks>"/,$d' "$work/in.cpp" >"$work/check.cpp"
  "$clang" -x c++ -std=c++14 -fdeclspec -fsyntax-only -I"$here/../msl" -I"$here/../rt" -Wno-everything "$work/check.cpp" || status=1
done
exit $status
