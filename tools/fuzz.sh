#!/bin/sh
# Runs one fuzz target for hours, starting from its seed corpus and keeping what it finds.
#
# usage: tools/fuzz.sh TARGET [HOURS] [BUILD_DIR]        for example: tools/fuzz.sh gguf 8
#
# New inputs go to build/fuzz/TARGET, faults to build/fuzz/TARGET-faults. A fault becomes a named file of the
# fixtures and an ordinary test before it is fixed.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
target=${1:?usage: tools/fuzz.sh TARGET [HOURS] [BUILD_DIR]}
hours=${2:-1}
build=${3:-$root/build/asan}

[ -f "$build/CMakeCache.txt" ] || { cd "$root" && cmake --preset asan; }
cmake --build "$build" --target "fuzz_$target" || { echo "error: no fuzz target of that name; see tests/fuzz/" >&2; exit 1; }
program=$(find "$build" -type f -name "fuzz_$target" -perm -u+x | head -n 1)

corpus=$root/build/fuzz/$target
faults=$root/build/fuzz/$target-faults
mkdir -p "$corpus" "$faults"
cmake --build "$build" --target fuzz_corpus
set -- "$corpus"
for seeds in "$build/fuzz_corpus/$target" "$root/tests/fuzz/corpus/$target"; do
  if [ -d "$seeds" ]; then set -- "$@" "$seeds"; fi
done

exec "$program" "$@" -artifact_prefix="$faults/" -max_total_time=$((hours * 3600)) -timeout=5 -rss_limit_mb=512 \
  -print_final_stats=1 -jobs="$(nproc)" -workers="$(nproc)"
