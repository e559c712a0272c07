#!/usr/bin/env bash
# Configures and builds a preset (default, cuda, asan, tsan) into build/<preset>.
#
# usage: scripts/build.sh [PRESET [TARGET...]]
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-default}
shift || true

export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}
targets=()
[ $# -eq 0 ] || targets=(--target "$@")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --preset "$preset" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
cmake --build --preset "$preset" --parallel "$(nproc)" "${targets[@]}"
