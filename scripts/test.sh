#!/usr/bin/env bash
# Builds everything with warnings as errors and runs every test that needs no GPU.
#
# usage: scripts/test.sh [PRESET [ctest options]]
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-default}
shift || true

scripts/setup.sh
scripts/build.sh "$preset"
if [ "$preset" = default ]; then # every header compiles alone
  scripts/build.sh "$preset" all_verify_interface_header_sets
fi
ctest --preset "$preset" --parallel "$(nproc)" --label-exclude "gpu|long" "$@"
