# shellcheck shell=bash
# Part of scripts/tune.sh: what the GPUs of this machine mean for the build and the number of ranks.

# Whether a driver offers a GPU here; DEV stands for /dev in tests. nvidia-smi may be absent.
has_gpu() { compgen -G "${1:-/dev}/nvidia[0-9]*" >/dev/null || [ -e "${1:-/dev}/dxg" ]; }

has_nvcc() {
  command -v nvcc >/dev/null || [ -x "${CUDA_HOME:-${CUDA_PATH:-/usr/local/cuda}}/bin/nvcc" ]
}

# The preset to build: DSTUNE_PRESET, or cuda where its compiler and a GPU are.
choose_preset() {
  if [ -n "${DSTUNE_PRESET:-}" ]; then
    echo "$DSTUNE_PRESET"
  elif has_gpu "$@" && has_nvcc; then
    echo cuda
  else
    ! has_gpu "$@" || echo "tune: this machine has GPUs and no nvcc: building for the CPU" >&2
    echo default
  fi
}

# usable_gpus PROGRAM: the names of those that it could train on, which CUDA_VISIBLE_DEVICES may restrict, a line each;
# nothing if it cannot use CUDA.
usable_gpus() {
  "$1" --list-backends | awk '/^GPU [0-9]+: / {
      sub(/^GPU [0-9]+: /, "")
      sub(/, [0-9.]+ [KMGT]iB.*/, "")
      names = names $0 "\n"
    }
    /^cuda: available/ { usable = 1 }
    END { if (usable) printf "%s", names }'
}

count_gpus() { usable_gpus "$1" | wc -l; }

# bounded_gib PROGRAM: what a control group, Slurm or ulimit leaves of the host's memory; nothing if it is all.
bounded_gib() {
  "$1" --list-backends | awk '/^cpu: available/ && $(NF - 2) == "of" {
    scale["KiB"] = 2 ^ -20; scale["MiB"] = 2 ^ -10; scale["GiB"] = 1; scale["TiB"] = 1024
    print int($(NF - 4) * scale[$(NF - 3)]) }'
}

# ranks_for_cores PROGRAM: rank 0 tunes; two workers at least, as with one there is nothing to shard. A worker
# may take up to 6 GiB.
ranks_for_cores() {
  local cores gib bounded workers
  cores=$(nproc)
  gib=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
  bounded=$(bounded_gib "$1")
  gib=$((${bounded:-$gib} < gib ? bounded : gib))
  workers=$((gib / 7 < cores ? gib / 7 : cores))
  echo $((1 + (workers > 2 ? workers : 2)))
}

# default_ranks PROGRAM BACKEND: a worker per GPU, unless BACKEND ("" if not given) uses none.
default_ranks() {
  local gpus=0
  case "$2" in
    "" | auto | cuda) gpus=$(count_gpus "$1") ;;
  esac
  if [ "$gpus" -gt 0 ]; then echo $((1 + gpus)); else ranks_for_cores "$1"; fi
}
