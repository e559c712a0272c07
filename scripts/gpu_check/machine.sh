# shellcheck shell=bash
# Part of scripts/gpu_check.sh and scripts/bundle.sh: the GPUs of this machine, and where its CUDA libraries are.

gpu_names() { nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null; }

has_gpu() {
  if command -v nvidia-smi >/dev/null; then nvidia-smi -L 2>/dev/null | grep -q '^GPU '
  else compgen -G '/dev/nvidia[0-9]*' >/dev/null; fi
}

# Names of libraries that PROGRAM... are linked to and do not find.
missing_libraries() {
  local each
  for each in "$@"; do ldd "$each" 2>/dev/null; done | awk '/=> not found/ { print $1 }' | sort -u
}

# Where toolkits, Python wheels and Conda keep them.
library_folders() {
  local python
  compgen -G "${CUDA_HOME:-/usr/local/cuda}/lib64"
  compgen -G '/usr/local/cuda*/lib64'
  compgen -G '/usr/local/cuda*/lib'
  compgen -G '/usr/local/cuda*/targets/x86_64-linux/lib'
  for python in "${VIRTUAL_ENV:-/nowhere}" "${CONDA_PREFIX:-/nowhere}" "$HOME/.local" /usr/local /usr /opt/conda; do
    compgen -G "$python/lib/python3*/*-packages/nvidia/*/lib"
    compgen -G "$python/lib/python3/*-packages/nvidia/*/lib"
  done
  python3 -c 'import nvidia, glob; print(*glob.glob(list(nvidia.__path__)[0] + "/*/lib"), sep="\n")' 2>/dev/null
}

folder_of() {
  local folder
  library_folders | while read -r folder; do
    if [ -e "$folder/$1" ]; then echo "$folder"; break; fi
  done
}

# Extends LD_LIBRARY_PATH until PROGRAM... find all that they are linked to; says what cannot be found. What is
# opened when it is used (NCCL, cuBLASLt, cuDNN) the program looks for by itself.
find_cuda_libraries() {
  local library folder
  for library in $(missing_libraries "$@"); do
    folder=$(folder_of "$library")
    [ -z "$folder" ] || export LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  done
  library=$(missing_libraries "$@" | tr '\n' ' ')
  [ -z "$library" ] && return 0
  add_row "libraries" "failed" "not found: ${library% }: set LD_LIBRARY_PATH, or bundle --with-cuda-libraries" 0
  return 1
}
