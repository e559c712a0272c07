#!/usr/bin/env bash
# Makes a wheel around a bundle (scripts/bundle.sh): pip puts dstune and dstune-mpi into a Python environment, which
# needs no compiler, no MPI and no root. docs/installing.md says how it is used.
#
# usage: scripts/wheel.sh [--preset NAME] [--manylinux] [--from BUNDLE.tar.gz] [OUT_DIR]
#   --preset NAME    of scripts/build.sh, for a bundle that is made for it (default: default; with CUDA: cuda, cuda12)
#   --manylinux      a bundle for older systems: glibc 2.27 or newer
#   --from FILE      the bundle; nothing is built then
# OUT_DIR, by default build, gets dstune_mpi-VERSION-py3-none-PLATFORM.whl, whose path is the last line of stdout.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

preset=default
options=()
bundle=""
out=""
usage() { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case "$1" in
    --preset) [ $# -ge 2 ] || usage; preset=$2; shift 2 ;;
    --manylinux) options+=("$1"); shift ;;
    --from) [ $# -ge 2 ] || usage; bundle=$2; shift 2 ;;
    -*) usage ;;
    *) [ -z "$out" ] || usage; out=$1; shift ;;
  esac
done
out=${out:-$here/../build}
command -v readelf >/dev/null || { echo "wheel: no readelf here, which is in binutils" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$bundle" ]; then
  bundle=$work/bundle.tar.gz
  "$here/bundle.sh" --preset "$preset" "${options[@]}" "$bundle" >&2
fi
mkdir "$work/tree" "$work/wheel"
tar -C "$work/tree" --strip-components 1 -xzf "$bundle"
wheel=$("${PYTHON:-python3}" -B "$here/wheel/write_wheel.py" "$work/tree" "$work/wheel")
mkdir -p "$out"
cp "$wheel" "$out/"
realpath "$out/$(basename "$wheel")"
