#!/usr/bin/env bash
# Formats all C++ and CUDA sources in place; with --check only says which are not formatted.
#
# usage: scripts/format.sh [--check]
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(-i)
case "${1:-}" in
  "") ;;
  --check) mode=(--dry-run --Werror) ;;
  *) echo "usage: scripts/format.sh [--check]" >&2; exit 2 ;;
esac
find src tests bench -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh' |
  xargs -r -P "$(nproc)" -n 16 clang-format "${mode[@]}"
