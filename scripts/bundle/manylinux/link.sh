#!/usr/bin/env bash
# Links a program for older systems: runs the command of an ordinary link with the older C library of ROOT (fetch.sh), and
# with another library in the place of each shared one of this machine, which would need this machine's C library.
#
# usage: scripts/bundle/manylinux/link.sh ROOT COMPILER ARGUMENT...
set -euo pipefail
[ $# -ge 2 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
root=$1
compiler=$2
shift 2
fail() { echo "manylinux: $*" >&2; exit 1; }
[ -e "$root/complete" ] || fail "$root is not there: scripts/bundle.sh --manylinux makes it"

static_of() {
  local name path
  name=$(basename "$1")
  path=$("$compiler" "-print-file-name=${name%%.so*}.a")
  [[ $path = */* ]] || fail "no ${name%%.so*}.a here, which would stand for $1"
  echo "$path"
}

words=()
for word in "$@"; do
  case "$word" in
    */libmpi_cxx.so*) continue ;; # nothing of it is used
    */libmpi.so* | */libmpich.so*)
      # What the objects are compiled for: Open MPI since 3.0 is one, MPICH another.
      objdump -p "$word" | grep -q 'SONAME.* libmpi\.so\.40$' || fail "$word is not Open MPI's"
      word=$root/python/lib/libmpi.so.40 ;;
    */libdnnl.so*) word=$root/python/lib/libdnnl.so.2 ;;
    /*.so | /*.so.[0-9]*) word=$(static_of "$word") ;;
    -Wl,-rpath,*) continue ;;
  esac
  words+=("$word")
done

# libgcc_s is the bundle's, one for the program and oneDNN. libstdc++ is not: an older one lacks what a newer g++ calls,
# and this machine's needs its C library. So the program has it inside, where oneDNN, which has its own, does not see it.
words+=("-B$root/link/" "-Wl,-rpath-link,$root/link" -static-libstdc++ -Wl,--exclude-libs,libstdc++.a)
# The program looks for these when it runs, and no reference takes them out of libopenblas.a.
for name in openblas_set_num_threads openblas_get_config openblas_get_corename; do
  words+=("-Wl,-u,$name" "-Wl,--export-dynamic-symbol=$name")
done
exec "$compiler" "${words[@]}"
