#!/usr/bin/env bash
# Runs on a machine with a GPU what can only be seen there: tests, kernels and steps beside PyTorch's and DeepSpeed's,
# collectives, killed runs, sanitizers; with --pretend all of its lines without a GPU (docs/gpu.md). In a bundle made
# --with-tests, or in a tree with a build. Needs Python 3.8 and no network; --help lists the options.
#
# usage: scripts/gpu_check.sh [--minutes N] [--only GROUP,...] [--skip GROUP,...] [--pretend] [--long]
#                             [--preset NAME] [--limit SECONDS] [OUTPUT_DIR]
# Exit codes: 0 nothing failed, 1 something did, 2 no GPU or wrong usage.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export DSTUNE_GPU_CHECK_ROOT=${DSTUNE_GPU_CHECK_ROOT:-$(dirname "$here")}
exec python3 -B "$here/gpu_check/main.py" "$@"
