#!/usr/bin/env bash
# Installs what is missing to build and run dstune-mpi; does nothing if nothing is missing.
#
# usage: scripts/setup.sh [--tests | --dev]
#   --tests  also what scripts/test.sh needs
#   --dev    also what the tests, scripts/format.sh, scripts/lint.sh, scripts/bundle.sh, scripts/fuzz.sh and .ci/run
#            need
set -euo pipefail

boost=1.81 # Debian 12's default Boost, 1.74, has no JSON library
. /etc/os-release 2>/dev/null || true
[ "${ID:-}${VERSION_ID:-}" = debian12 ] || boost=""

packages=(
  g++ cmake ninja-build                 # build
  openmpi-bin libopenmpi-dev            # ranks
  "libboost${boost}-dev" "libboost-json${boost}-dev" "libboost-program-options${boost}-dev"
  libopenblas-dev                       # sgemm of the CPU backend
  libre2-dev                            # patterns of LoRA's target modules, in linear time
  libyaml-cpp-dev                       # trainers' files
)
optional=( # nobody needs to ask an administrator for these
  lld ccache                            # quicker builds
  libdnnl-dev                           # products of bf16
  python3                               # calibration, manual pages
)
for_tests=(
  libgtest-dev libgmock-dev
  "libboost-context${boost}-dev" # a kernel's threads on the host
)
case "${1:-}" in
  "") ;;
  --tests) packages+=("${for_tests[@]}") ;;
  # MPICH stands beside Open MPI: Debian's mpirun and mpicxx stay Open MPI's, whose priority is higher.
  --dev) packages+=("${for_tests[@]}" clang clang-format clang-tidy libclang-rt-dev patchelf mpich libmpich-dev
    python3-venv) ;; # the wheel's test
  *) echo "usage: scripts/setup.sh [--tests | --dev]" >&2; exit 2 ;;
esac

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  cat >&2 <<TEXT
setup: this is neither Debian nor Ubuntu; nothing was installed. dstune-mpi needs, under Debian's names:
  ${packages[*]}
that is: a C++20 compiler, CMake >= 3.24, Ninja, an MPI >= 3.1, Boost >= 1.75 (json,
program_options), a BLAS with CBLAS, RE2 and yaml-cpp; if possible oneDNN and Python 3.
Tests need GoogleTest and Boost's context besides (docs/installing.md).
TEXT
  # A cluster's modules may provide all of it: CMake then names what is still missing.
  command -v cmake >/dev/null && { command -v ninja || command -v make; } >/dev/null &&
    { command -v mpirun || command -v mpiexec || command -v srun; } >/dev/null
  exit
fi

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done
needed=${#missing[@]}
for package in "${optional[@]}"; do
  installed "$package" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    if [ "$needed" -eq 0 ]; then
      echo "setup: continuing without ${missing[*]}, which only root can install" >&2
      exit 0
    fi
    echo "setup: these packages are missing and only root can install them; ask for:" >&2
    echo "  apt-get install ${missing[*]:0:needed}" >&2
    echo "or see docs/installing.md for modules, Spack, a bundle and containers" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "setup: installing ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
