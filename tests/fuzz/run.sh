#!/bin/sh
# Runs every fuzz target over its seeds for a fixed number of runs with a fixed seed, and prints its coverage.
#
# usage: tests/fuzz/run.sh BUILD_DIR [RUNS]        exit code 1 after a finding, for a target without a row in
#        tests/fuzz/coverage.txt, or when the coverage of a target has fallen by more than 5 % below its row (measured
#        with 20000 runs, so checked from there on)
#
# Seeds: BUILD_DIR/fuzz_corpus/NAME (made by the build) and tests/fuzz/corpus/NAME (stored). New inputs that the run
# finds stay in BUILD_DIR/fuzz_found/NAME and are not used by the next run; a finding is kept there too.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${1:?usage: tests/fuzz/run.sh BUILD_DIR [RUNS]}
build=$(cd "$build" && pwd) || exit 2
runs=${2:-20000}
status=0
found_any=0

for source in "$here"/*_fuzz.cpp; do
  name=$(basename "$source" _fuzz.cpp)
  target="$build/bin/fuzz_$name"
  if [ ! -x "$target" ]; then
    echo "fuzz $name: $target is not built (target tern_fuzzers of the asan preset)"
    status=1
    continue
  fi
  found_any=1
  out="$build/fuzz_found/$name"
  rm -rf "$out"
  mkdir -p "$out"
  set -- "$out"
  for seeds in "$build/fuzz_corpus/$name" "$here/corpus/$name"; do
    [ -d "$seeds" ] && set -- "$@" "$seeds"
  done
  [ -f "$here/$name.dict" ] && set -- "$@" "-dict=$here/$name.dict"
  code=0
  "$target" -runs="$runs" -seed=1 -timeout=5 -rss_limit_mb=512 -print_final_stats=0 \
    -artifact_prefix="$out/finding-" "$@" >"$out.log" 2>&1 || code=$?
  if [ $code -ne 0 ]; then
    if ls "$out"/finding-* >/dev/null 2>&1; then
      echo "fuzz $name: FINDING, input in $out/finding-*, log in $out.log"
    else
      echo "fuzz $name: ended with code $code before its runs were done, log in $out.log"
    fi
    tail -n 30 "$out.log"
    status=1
    continue
  fi
  line=$(grep -E '^#[0-9]+.*cov: ' "$out.log" | tail -n 1)
  covered=$(echo "$line" | sed -n 's/.*cov: \([0-9]*\).*/\1/p')
  features=$(echo "$line" | sed -n 's/.*ft: \([0-9]*\).*/\1/p')
  echo "fuzz $name: $runs runs, no finding, cov $covered ft $features"
  stored=$(sed -n "s/^$name \([0-9][0-9]*\)\$/\1/p" "$here/coverage.txt" 2>/dev/null)
  if [ -z "$stored" ]; then
    echo "fuzz $name: tests/fuzz/coverage.txt has no row '$name EDGES'"
    status=1
  elif [ -z "$covered" ]; then
    echo "fuzz $name: the log names no coverage: $out.log"
    status=1
  elif [ "$runs" -ge 20000 ] && [ $((covered * 100)) -lt $((stored * 95)) ]; then
    echo "fuzz $name: coverage fell from $stored to $covered"
    status=1
  fi
done
[ "$found_any" = 1 ] || status=1
exit $status
