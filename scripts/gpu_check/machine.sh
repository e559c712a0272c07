# shellcheck shell=bash
# Part of scripts/gpu_check/machine.py and scripts/bundle.sh: where the CUDA libraries of this machine are.

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

# folder_of LIBRARY
folder_of() {
  local folder
  library_folders | while read -r folder; do
    if [ -e "$folder/$1" ]; then echo "$folder"; break; fi
  done
}
