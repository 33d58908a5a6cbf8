#!/bin/sh
# The long runs that ./check has no time for: every test again and again in random order, under each preset, then fuzzing.
# Tests whose names start with DISABLED_ are their long forms and run here only: all 500 seeds of processes on one cache
# folder, minutes of readers and writers of one entry, 100,000 entries.
#
# usage: tools/soak.sh [MINUTES]       default 60; logs in build/soak/; stops at the first failure
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
minutes=${1:-60}
end=$(($(date +%s) + minutes * 60))
logs=build/soak
mkdir -p $logs

for preset in release asan tsan; do
  echo "soak: building $preset"
  { cmake --preset $preset && cmake --build build/$preset; } >"$logs/build_$preset.log" 2>&1 || { tail -n 30 "$logs/build_$preset.log"; exit 1; }
done

round=0
while [ "$(date +%s)" -lt "$end" ]; do
  round=$((round + 1))
  for preset in release asan tsan; do
    for program in build/$preset/bin/test_*; do
      [ "$(date +%s)" -lt "$end" ] || break 2
      name=$preset-$(basename "$program")
      if ! "$program" --gtest_also_run_disabled_tests --gtest_shuffle --gtest_random_seed=$((round % 99999)) >"$logs/$name.log" 2>&1; then
        tail -n 40 "$logs/$name.log"
        echo "soak: $name failed in round $round; again with: $program --gtest_shuffle --gtest_random_seed=$((round % 99999))"
        exit 1
      fi
    done
  done
  echo "soak: round $round passed"
  sh tests/fuzz/run.sh build/asan $((200000 * round)) >"$logs/fuzz.log" 2>&1 || { tail -n 40 "$logs/fuzz.log"; exit 1; }
done
echo "soak: $round rounds passed in $minutes minutes"
