#!/bin/sh
# Installs what is missing of the named sections of tools/packages.txt with apt-get, and does nothing (no network, no root)
# when all of it is there.
#
# usage: tools/install_packages.sh SECTION...        for example: tools/install_packages.sh build check
set -eu

here=$(cd "$(dirname "$0")" && pwd)
list=$here/packages.txt

[ $# -gt 0 ] || { echo "usage: $0 SECTION...   (sections of $list)" >&2; exit 2; }

# The packages of one section: comments and blanks removed.
section() {
  awk -v want="[$1]" '
    { sub(/#.*/, ""); gsub(/[ \t\r]+$/, "") }
    /^\[/ { inside = ($0 == want); found = found || inside; next }
    inside && NF { print $1 }
    END { if (!found) exit 3 }' "$list"
}

wanted=
for name in "$@"; do
  packages=$(section "$name") || { echo "error: $list has no section [$name]" >&2; exit 2; }
  wanted="$wanted $packages"
done

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "error: this script knows Debian packages only and finds no dpkg here; install the counterparts of these yourself:" >&2
  echo "$wanted" >&2
  exit 1
fi

missing=
for package in $wanted; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
  echo "packages: all there"
  exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
  as_root=
elif command -v sudo >/dev/null 2>&1; then
  as_root=sudo
else
  echo "error: these packages are missing and only root can install them (there is no sudo):$missing" >&2
  echo "run as root: apt-get update && apt-get install --no-install-recommends$missing" >&2
  exit 1
fi

count=$(echo "$missing" | wc -w)
echo "packages: installing $count:$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() {
  if ! $as_root env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "error: '$*' failed (last lines above)" >&2
    exit 1
  fi
}

# Installing ca-certificates writes the system's bundle anew. What an administrator had put there is kept: certificates that
# the new bundle lacks go where Debian expects local ones.
bundle=/etc/ssl/certs/ca-certificates.crt
one_per_line() { awk '/BEGIN CERT/ { c = "" } { c = c $0 "|" } /END CERT/ { print c }' "$1" | sort -u; }
before=
case " $missing " in *" ca-certificates "*) [ ! -f $bundle ] || before=$(mktemp) ;; esac
[ -z "$before" ] || cp $bundle "$before"

run apt-get update
# shellcheck disable=SC2086 # a list of packages
run apt-get install -y --no-install-recommends $missing

if [ -n "$before" ]; then
  now=$(mktemp) kept=$(mktemp)
  one_per_line $bundle >"$now"
  one_per_line "$before" | comm -23 - "$now" >"$kept"
  number=0
  while IFS= read -r line; do
    number=$((number + 1))
    printf '%s' "$line" | tr '|' '\n' | $as_root tee "/usr/local/share/ca-certificates/kept-$number.crt" >/dev/null
  done <"$kept"
  [ $number -eq 0 ] || run update-ca-certificates
  rm -f "$before" "$now" "$kept"
fi
echo "packages: installed"
