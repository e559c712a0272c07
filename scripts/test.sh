#!/usr/bin/env bash
# Builds everything and runs every test that needs no GPU.
#
# usage: scripts/test.sh [--long] [PRESET [ctest options]]
#   --long  grids of cases in full where usually a sample runs, and the suites of training on CUDA on
#           the host
set -euo pipefail
cd "$(dirname "$0")/.."

left_out="gpu|long"
if [ "${1:-}" = --long ]; then
  left_out="gpu"
  export DSTUNE_TEST_ALL=1
  shift
fi
preset=${1:-default}
shift || true

case "$preset" in
  asan | tsan | mpich) scripts/setup.sh --dev ;; # clang, MPICH
  *) scripts/setup.sh --tests ;;
esac
case "$preset" in
  mpich) ;; # without core's, whatever the gate does
  *) export DSTUNE_CMAKE_OPTIONS=${DSTUNE_CMAKE_OPTIONS--DDSTUNE_CORE_TESTS=ON} ;; # the gate may have left it off
esac
targets=()
[ "$preset" != mpich ] || targets=(dstune-mpi mpi_tests) # what a library of MPI changes
scripts/build.sh "$preset" ${targets[@]+"${targets[@]}"}
# One more than there are cores: tests of processes mostly wait.
ctest --preset "$preset" --parallel "$(($(nproc) + 1))" --label-exclude "$left_out" "$@"
