#!/bin/sh
# Runs the prebuilt GPU tests and benchmarks on a machine with an NVIDIA GPU, where nothing is installed, and writes what
# came out into one folder.
#
# usage: gpu_check.sh FOLDER [OUT] [quick]
#   FOLDER   with gpu_test, gpu_bench and, if there is one, lib/ (shared libraries that they need)
#   OUT      results (default: FOLDER/out): summary.txt, test.txt, bench.txt, sanitizer.txt
#   quick    no compute-sanitizer
# Exit: 0 all passed; 1 something failed; 77 no GPU.
set -u
if [ $# -lt 1 ] || [ ! -x "$1/gpu_test" ]; then
  sed -n '5,9s/^# //p' "$0" >&2
  exit 2
fi
folder=$(cd "$1" && pwd)
out=${2:-$folder/out}
mode=${3:-full}
mkdir -p "$out" || exit 1
summary=$out/summary.txt
: > "$summary"
failed=0

say() { echo "$*" | tee -a "$summary"; }
# with_libs COMMAND...: the carried libraries are for our programs only, not for the tools around them.
with_libs() {
  if [ -d "$folder/lib" ]; then LD_LIBRARY_PATH="$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$@"; else "$@"; fi
}

say "machine: $(uname -srm), $(date -u +%Y-%m-%dT%H:%MZ)"
if ! command -v nvidia-smi > /dev/null || ! nvidia-smi > /dev/null 2>&1; then
  say "no NVIDIA GPU is visible: nothing was run"
  exit 77
fi
say "gpu: $(nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem,temperature.gpu,power.draw --format=csv,noheader)"

start=$(date +%s)
with_libs "$folder/gpu_test" --gtest_color=no > "$out/test.txt" 2>&1
status=$?
say "gpu_test: exit $status, $(($(date +%s) - start)) s; $(grep -c '^\[       OK' "$out/test.txt") passed, $(grep -c '^\[  FAILED  \].*ms)' "$out/test.txt") failed, $(grep -c '^\[  SKIPPED \].*ms)' "$out/test.txt") skipped"
grep '^\[  FAILED  \]' "$out/test.txt" | sort -u | tee -a "$summary"
[ $status -eq 0 ] || failed=1

start=$(date +%s)
with_libs "$folder/gpu_bench" > "$out/bench.txt" 2>&1
status=$?
say "gpu_bench: exit $status, $(($(date +%s) - start)) s"
cat "$out/bench.txt" >> "$summary"
[ $status -eq 0 ] || failed=1
say "after: $(nvidia-smi --query-gpu=clocks.sm,clocks.mem,temperature.gpu,power.draw,clocks_throttle_reasons.active --format=csv,noheader)"

if [ "$mode" != quick ]; then
  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null)
  : > "$out/sanitizer.txt"
  if [ -z "$sanitizer" ]; then
    say "compute-sanitizer: not there"
  else
    for tool in memcheck racecheck initcheck synccheck; do
      # Small cases only (their names end in Small): a checked kernel is up to a hundred times slower.
      with_libs timeout 120 "$sanitizer" --tool $tool --error-exitcode 9 "$folder/gpu_test" \
        --gtest_color=no '--gtest_filter=*Small*' > "$out/one_tool.txt" 2>&1
      status=$?
      { echo "== $tool: exit $status"; cat "$out/one_tool.txt"; } >> "$out/sanitizer.txt"
      if grep -qi 'device not supported\|failed to initialize' "$out/one_tool.txt"; then
        say "compute-sanitizer $tool: this machine's runtime refuses the tool: $(grep -i -m1 'not supported\|failed to init' "$out/one_tool.txt")"
      elif [ $status -eq 0 ]; then
        say "compute-sanitizer $tool: $(grep -m1 'ERROR SUMMARY\|RACECHECK SUMMARY' "$out/one_tool.txt")"
      else
        say "compute-sanitizer $tool: exit $status, $(grep -m1 'ERROR SUMMARY\|RACECHECK SUMMARY' "$out/one_tool.txt")"
        failed=1
      fi
    done
    rm -f "$out/one_tool.txt"
  fi
fi
if [ $failed -eq 0 ]; then say "gpu_check: passed"; else say "gpu_check: FAILED"; fi
exit $failed
