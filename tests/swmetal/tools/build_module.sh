#!/bin/sh
# Compiles .metal files for the CPU executor, into one shared object.
#
# usage: build_module.sh IN.metal [IN.metal ...] OUT.so [--library OUT.metallib] [--depfile FILE] [clang flags]
#
# -D and -I flags also go to the preprocessing step. SWM_CLANG names the compiler (clang++-19).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
clang=${SWM_CLANG:-clang++-19}
sources='' out='' library='' depfile='' preprocess='' frames='-Wframe-larger-than=16384 -Werror=frame-larger-than'
flags=''
while [ $# -gt 0 ]; do
  case $1 in
    --library) library=$2 && shift ;;
    --depfile) depfile=$2 && shift ;;
    -D* | -I*) preprocess="$preprocess $1" flags="$flags $1" ;;
    -fsanitize=*) flags="$flags $1" frames='' ;; # instrumented frames are larger
    -*) flags="$flags $1" ;;
    *.metal) sources="$sources $1" ;;
    *) out=$1 ;;
  esac
  shift
done
[ -n "$sources" ] && [ -n "$out" ] || { sed -n '2,6p' "$0" >&2; exit 2; }

case $(uname -m) in
  aarch64 | arm64) machine=-march=armv8.2-a+fp16 ;;
  *) machine=-march=x86-64-v3 ;;
esac
# excess-precision=none rounds half arithmetic after each operation; it is an option of the inner compiler.
compile="-std=c++14 -fdeclspec -O2 -gline-tables-only $machine -fsigned-char -Xclang -ffloat16-excess-precision=none
  -fno-math-errno -ffp-contract=off -fPIC -fvisibility=hidden -Wall -Wno-unknown-pragmas -Wno-unused-function
  -Wno-unused-const-variable -Werror=c++17-extensions -I$here/../msl -I$here/../rt $frames"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
objects='' n=0
[ -z "$depfile" ] || printf '%s:' "$out" >"$depfile"
for source in $sources; do
  n=$((n + 1))
  # shellcheck disable=SC2086 # lists of flags
  PYTHONDONTWRITEBYTECODE=1 python3 "$here/msl2cpp.py" "$source" "$work/$n.cpp" --clang "$clang" \
    --depfile "$work/$n.d" --target x $preprocess
  [ -z "$depfile" ] || sed -e '1s/^x://' -e 's/\\$//' "$work/$n.d" | tr '\n' ' ' >>"$depfile"
  # shellcheck disable=SC2086
  "$clang" $compile $flags -c "$work/$n.cpp" -o "$work/$n.o"
  objects="$objects $work/$n.o"
done
# shellcheck disable=SC2086
"$clang" -shared -Wl,-z,start-stop-visibility=hidden $flags $objects -o "$work/out.so"
[ -z "$library" ] || { printf SWMTLIB1 && cat "$work/out.so"; } >"$library"
mv "$work/out.so" "$out"
