#!/usr/bin/env bash
# Runs on a machine with a GPU what can only be seen there: the tests that need one, the benchmarks, and a small
# step under compute-sanitizer. In a bundle made --with-tests, or in a tree with a CUDA build.
#
# usage: scripts/gpu_check.sh [--preset NAME] [--limit SECONDS] [OUTPUT_DIR]
#   --preset NAME     the build of a tree (default: cuda)
#   --limit SECONDS   of each program (default: 180)
# OUTPUT_DIR (default: gpu_check) gets report.md, whose table is also printed, and a log of each program.
# Needs no network. Exit codes: 0 all passed, 1 something did not, 2 no GPU or wrong usage.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=${DSTUNE_GPU_CHECK_ROOT:-$(dirname "$here")}
. "$here/gpu_check/machine.sh"
. "$here/gpu_check/report.sh"
. "$here/gpu_check/programs.sh"

preset=cuda
limit=180
output=""
usage() { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case "$1" in
    --preset) [ $# -ge 2 ] || usage; preset=$2; shift 2 ;;
    --limit) [ $# -ge 2 ] || usage; limit=$2; shift 2 ;;
    -*) usage ;;
    *) [ -z "$output" ] || usage; output=$1; shift ;;
  esac
done

has_gpu || { echo "gpu_check: no NVIDIA GPU is usable here" >&2; exit 2; }
find_programs || exit 2
output=${output:-gpu_check}
mkdir -p "$output" && output=$(cd "$output" && pwd) || exit 2
begin_report
prepare_mpi
find_cuda_libraries "$program" ${tests[@]+"${tests[@]#* }"} ${benchmarks[@]+"${benchmarks[@]}"} || { end_report; exit 1; }
run_tests
run_benchmarks # before the sanitizers, which may take all that is left of a short session
run_sanitizers
end_report
