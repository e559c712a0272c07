#!/usr/bin/env bash
# Installs what is missing to build and run dstune-mpi; does nothing if nothing is missing.
#
# usage: scripts/setup.sh [--dev]
#   --dev  also what scripts/format.sh, scripts/lint.sh, scripts/bundle.sh, scripts/fuzz.sh and .ci/run need
set -euo pipefail

boost=1.81 # Debian 12's default Boost, 1.74, has no JSON library
. /etc/os-release 2>/dev/null || true
[ "${ID:-}${VERSION_ID:-}" = debian12 ] || boost=""

packages=(
  g++ cmake ninja-build lld ccache      # build
  openmpi-bin libopenmpi-dev            # ranks
  "libboost${boost}-dev" "libboost-json${boost}-dev" "libboost-program-options${boost}-dev"
  libopenblas-dev                       # sgemm of the CPU backend
  libdnnl-dev                           # its products of bf16
  libre2-dev                            # patterns of LoRA's target modules, in linear time
  libyaml-cpp-dev                       # trainers' files
  libgtest-dev libgmock-dev             # tests
  "libboost-context${boost}-dev"        # tests: a kernel's threads on the host
  libbenchmark-dev                      # benchmarks
  python3                               # end-to-end tests
)
case "${1:-}" in
  "") ;;
  --dev) packages+=(clang clang-format clang-tidy libclang-rt-dev patchelf) ;;
  *) echo "usage: scripts/setup.sh [--dev]" >&2; exit 2 ;;
esac

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  cat >&2 <<TEXT
setup: this is no Debian or Ubuntu; nothing was installed. dstune-mpi needs, by Debian's names:
  ${packages[*]}
that is: a C++20 compiler, CMake >= 3.24, Ninja, an MPI >= 3.1, Boost >= 1.75 (json,
program_options; context for the tests), a BLAS with CBLAS, RE2, yaml-cpp,
if possible oneDNN, GoogleTest, Google Benchmark and Python 3.
TEXT
  # A cluster's modules may provide all of it: CMake then names what is still missing.
  command -v cmake >/dev/null && command -v mpirun >/dev/null && command -v ninja >/dev/null
  exit
fi

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: these packages are missing and only root can install them; ask for:" >&2
    echo "  apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "setup: installing ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
