#!/usr/bin/env bash
# Makes one tar.gz that runs on another x86-64 Linux with nothing installed: the program, its Open MPI,
# its other libraries, scripts, examples and documents. docs/bundle.md says how it is used.
#
# usage: scripts/bundle.sh [--preset NAME] [--manylinux] [--with-cuda-libraries] [--with-tests] [OUT.tar.gz]
#   --preset NAME           of scripts/build.sh (default: default; with CUDA: cuda, cuda12)
#   --manylinux             for older systems than this one: glibc 2.27 or newer (made on Debian 12)
#   --with-cuda-libraries   cuBLASLt, cuDNN and NCCL too: more than 1 GB
#   --with-tests            the tests that need a GPU and its benchmarks too, for scripts/gpu_check.sh
# OUT.tar.gz defaults to build/dstune-mpi-VERSION-x86_64.tar.gz
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/bundle/mpi.sh
. scripts/bundle/libraries.sh
. scripts/bundle/manylinux.sh
. scripts/bundle/tests.sh
. scripts/gpu_check/machine.sh

preset=default
manylinux=false
with_cuda_libraries=false
with_tests=false
out=""
usage() { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case "$1" in
    --preset) [ $# -ge 2 ] || usage; preset=$2; shift 2 ;;
    --manylinux) manylinux=true; shift ;;
    --with-cuda-libraries) with_cuda_libraries=true; shift ;;
    --with-tests) with_tests=true; shift ;;
    -*) usage ;;
    *) [ -z "$out" ] || usage; out=$1; shift ;;
  esac
done
for tool in patchelf strip objdump; do
  command -v "$tool" >/dev/null || { echo "bundle: no $tool here: scripts/setup.sh --dev" >&2; exit 1; }
done

version=$(sed -nE 's/^project\(dstune-mpi VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
name=dstune-mpi-$version
out=$(realpath -m "${out:-build/$name-$(uname -m).tar.gz}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle=$work/$name

copy_program() {
  cp "build/$preset/$program" "$bundle/bin/dstune-mpi"
}

# In the places of the source tree, so that scripts and documents find each other.
copy_texts() {
  mkdir "$bundle/scripts"
  cp -r examples hostfiles docs README.md LICENSE "$bundle"
  cp -r scripts/tune.sh scripts/tune scripts/supervise.sh scripts/supervise scripts/run_rank.sh scripts/slurm \
    scripts/gpu_check.sh scripts/gpu_check scripts/calibration scripts/compare_step_with_torch.py \
    scripts/gpu_tuning.py scripts/verify_against_deepspeed.py scripts/verify "$bundle/scripts"
  find "$bundle/scripts" -name __pycache__ -prune -exec rm -r {} +
}

# What it was made of and where it can run, for people. Which driver and GPUs it needs, the program knows.
write_manifest() {
  local commit libc cuda
  commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
  libc=$(needed_glibc | tail -1)
  cuda=$("$bundle/bin/dstune-mpi" --list-backends | sed -nE '/^CUDA (run time|code): /p')
  { echo "dstune-mpi $version, commit $commit"
    echo "needs: x86-64-v3 (AVX2), Linux, glibc >= ${libc%% *}"
    [ -z "$cuda" ] || echo "$cuda"
    echo "without CUDA libraries: $($with_cuda_libraries && echo no || echo yes)"; } >"$bundle/MANIFEST"
}

program=dstune-mpi
if $manylinux; then use_older_libraries; fi
scripts/build.sh "$preset" "$program" >&2
mkdir -p "$bundle/bin" "$bundle/lib"
copy_program
copy_mpi
if $with_tests; then copy_tests; fi
copy_texts
if $with_cuda_libraries; then copy_cuda_libraries; fi
copy_libraries
if $manylinux; then copy_older_licences; fi
copy_licences
set_run_paths
if $manylinux; then check_glibc "$most_glibc"; fi
write_manifest
mkdir -p "$(dirname "$out")"
tar -C "$work" --owner=0 --group=0 --sort=name -czf "$out" "$name"
cat "$bundle/MANIFEST"
echo "$out: $(du -h "$out" | cut -f1), $(du -sh "$bundle" | cut -f1) unpacked"
