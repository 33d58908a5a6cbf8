#!/bin/sh
# Installs a build into a scratch prefix, builds the project beside this script against it, and runs that.
#
# usage: tests/install/run.sh BUILD_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
cmake -G Ninja -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
cmake --build "$work/build"
"$work/build/tern_user" "$root/tests/golden/lm/qwen3-q1_0/model.gguf"
"$work/prefix/bin/tern" version >/dev/null
for header in "$root"/include/tern/*.h; do
  [ -f "$work/prefix/include/tern/$(basename "$header")" ] || { echo "FAILED  $(basename "$header") is not installed"; exit 1; }
done
echo "install: 1 passed, 0 failed"
