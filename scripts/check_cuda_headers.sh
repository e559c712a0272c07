#!/usr/bin/env bash
# Whether the CUDA backend's host sources compile, syntax only, with the headers of older releases of CUDA, cuDNN
# and NCCL, which come from PyPI.
#
# usage: scripts/check_cuda_headers.sh [VERSION...]     of CUDA; default: 12.2, which is the oldest that is accepted,
#        12.4 and 12.8
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- 12.2 12.4 12.8
for version in "$@"; do
  headers=build/cuda-headers/$version
  if [ ! -e "$headers" ]; then
    rm -rf "$headers.part"
    if scripts/cuda_headers.py "$version" "$headers.part"; then
      mv "$headers.part" "$headers"
    elif [ $? -eq 3 ]; then
      echo "CUDA $version: skipped, its headers cannot be had"
      continue
    else
      exit 1
    fi
  fi
  find src/kernels/cuda -name '*.cpp' ! -name 'no_*' ! -name 'cudnn_frontend*' -print0 |
    xargs -0 -P "$(nproc)" -n 3 g++ -std=c++20 -fsyntax-only -Isrc -Isrc/kernels/cuda/include -isystem "$headers" \
        '-DDSTUNE_CUDA_ARCHITECTURES="80"'
  nccl=$(sed -nE 's/^#define NCCL_(MAJOR|MINOR) //p' "$headers/nccl.h" | paste -sd.)
  echo "CUDA $version, NCCL $nccl: compiles"
done
