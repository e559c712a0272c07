#!/usr/bin/env bash
# Configures and builds a preset (default: without CUDA; cuda, cuda12, asan, tsan) into build/<preset>.
#
# usage: scripts/build.sh [PRESET [TARGET...]]
#   CUDAARCHS             GPUs to compile for with the presets cuda and cuda12, e.g. 90 (default: all that the toolkit knows)
#   DSTUNE_CMAKE_OPTIONS  further options of cmake
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-default}
shift || true

if command -v ninja >/dev/null; then export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}; fi
if command -v ccache >/dev/null; then # what another checkout compiled is not compiled again
  export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
  export CMAKE_CUDA_COMPILER_LAUNCHER=${CMAKE_CUDA_COMPILER_LAUNCHER-ccache}
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
  export CCACHE_SLOPPINESS=pch_defines,time_macros # or it leaves alone what uses a precompiled header
fi
targets=()
[ $# -eq 0 ] || targets=(--target "$@")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
read -ra options <<<"${DSTUNE_CMAKE_OPTIONS:-}"
# Said anew each time: CMake itself reads the variable at the first configuration of a folder alone.
[ -z "${CUDAARCHS:-}" ] || options+=("-DCMAKE_CUDA_ARCHITECTURES=$CUDAARCHS")
mkdir -p build
exec {building}>"build/$preset.lock" # two builds of one folder take turns
flock "$building" 2>/dev/null || true # some file systems have no locks
cmake --preset "$preset" "${options[@]}" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
cmake --build --preset "$preset" --parallel "$(nproc)" "${targets[@]}"
