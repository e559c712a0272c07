#!/usr/bin/env bash
# Makes the folder that link.sh takes libraries from: Ubuntu 18.04's C library and what oneDNN needs
# beside it, Open MPI and oneDNN of PyPI, each by its digest. Does nothing where the folder is there and up to date.
#
# usage: scripts/bundle/manylinux/fetch.sh ROOT
#   DSTUNE_UBUNTU_MIRROR   where the packages lie (default: http://archive.ubuntu.com/ubuntu)
# ROOT gets
#   link    for the linker (-B): C library, start files, libgcc_s
#   run     libraries for the bundle
#   python  a Python environment with the wheels: bin, lib, include, share
#   system  the packages as they are
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 1 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
root=$(realpath -m "$1")
mirror=${DSTUNE_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}

state=$(cat "$here"/* | sha256sum)
[ "$(cat "$root/complete" 2>/dev/null)" != "$state" ] || exit 0
for tool in dpkg-deb /usr/lib/apt/apt-helper c++ ar "${PYTHON:-python3}"; do
  command -v "$tool" >/dev/null || { echo "manylinux: no $tool here: such a bundle is made on Debian" >&2; exit 1; }
done
rm -rf "$root"
mkdir -p "$root/link" "$root/run" "$root/system"

fetch_packages() {
  local digest path file
  while read -r digest path; do
    file=$root/system/$(basename "$path")
    /usr/lib/apt/apt-helper -qq -o APT::Sandbox::User=root download-file "$mirror/$path" "$file" "SHA256:$digest"
    dpkg-deb -x "$file" "$root/system"
    rm "$file"
  done <"$here/packages.txt"
}

fetch_wheels() {
  "${PYTHON:-python3}" -m venv "$root/python"
  "$root/python/bin/pip" install -q --no-deps --require-hashes -r "$here/requirements.txt"
}

# Names without folders: the linker looks for them in -B. libc.so stands for what is one library since glibc 2.34, too,
# which is what Debian 12's g++ and static libraries expect of it.
write_link_folder() {
  local system=$root/system/lib/x86_64-linux-gnu name
  cp -L "$root"/system/usr/lib/x86_64-linux-gnu/{crt1,Scrt1,crti,crtn}.o \
    "$root"/system/usr/lib/x86_64-linux-gnu/lib{c,pthread}_nonshared.a "$root/link/"
  for name in c.so.6 m.so.6 pthread.so.0 dl.so.2 rt.so.1 gcc_s.so.1; do
    cp -L "$system/lib$name" "$root/link/"
    ln -sf "lib$name" "$root/link/lib${name%%.*}.so"
  done
  cp -L "$system/ld-linux-x86-64.so.2" "$root/link/"
  c++ -std=c++20 -Wall -Wextra -O2 -fPIC -c "$here/older_glibc.cpp" -o "$root/link/older_glibc.o"
  ar rcs "$root/link/libolder_glibc.a" "$root/link/older_glibc.o"
  rm "$root/link/libc.so"
  cat >"$root/link/libc.so" <<'TEXT'
GROUP ( libc.so.6 libc_nonshared.a libpthread_nonshared.a libolder_glibc.a
        AS_NEEDED ( libpthread.so.0 libdl.so.2 librt.so.1 libm.so.6 ld-linux-x86-64.so.2 ) )
TEXT
}

copy_run_folder() {
  cp -L "$root"/system/lib/x86_64-linux-gnu/lib{gcc_s,z}.so.1 \
    "$root"/system/usr/lib/x86_64-linux-gnu/lib{stdc++.so.6,gomp.so.1} "$root/run/"
}

fetch_packages
fetch_wheels
write_link_folder
copy_run_folder
echo "$state" >"$root/complete"
