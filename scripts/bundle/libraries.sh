# shellcheck shell=bash
# Part of scripts/bundle.sh: the shared libraries that $bundle needs, and where its files look for them.

# Every Linux has them, and they must fit its kernel or driver.
system_libraries='^(linux-vdso|ld-linux|libc\.|libm\.|libpthread\.|libdl\.|librt\.|libresolv\.|libutil\.|libcuda\.|libnvidia-)'
cuda_libraries='^lib(cudart|cublas|cublasLt|cudnn.*|nccl|nvrtc.*|nvJitLink|cusolver|cusparse|curand)\.'

elf_files() {
  find "$bundle" -type f \( -name '*.so' -o -name '*.so.*' -o -path '*/bin/*' \) |
    while read -r file; do
      if head -c 4 "$file" | grep -q ELF; then echo "$file"; fi
    done
}

# "NAME PATH" of all that the files need, directly or not.
needed_libraries() { elf_files | xargs -n 1 ldd 2>/dev/null | awk '$2 == "=>" && $3 ~ "^/" { print $1, $3 }' | sort -u; }

copy_libraries() {
  local name path
  needed_libraries | while read -r name path; do
    [[ $name =~ $system_libraries ]] && continue
    if [[ $name =~ $cuda_libraries ]]; then
      $with_cuda_libraries || continue
      copy_siblings "$name" "$path"
    fi
    [ -e "$bundle/lib/$name" ] || cp -L "$path" "$bundle/lib/$name"
    echo "$path" >>"$work/copied"
  done
}

# cuDNN loads the rest of itself at run time.
copy_siblings() {
  case $1 in
    libcudnn.*) cp -Ln "${2%/*}"/libcudnn_*."${1##*.}" "$bundle/lib/" 2>/dev/null || true ;;
  esac
}

# Debian's licence texts of all that is not ours.
copy_licences() {
  local package
  mkdir -p "$bundle/share/licences"
  command -v dpkg >/dev/null || return 0
  { cat "$work/copied"; realpath "$(command -v orterun)"; } | while read -r path; do
    dpkg -S "$path" 2>/dev/null || dpkg -S "$(realpath "$path")" 2>/dev/null || true
  done | cut -d: -f1 | sort -u | while read -r package; do
    cp -L "/usr/share/doc/$package/copyright" "$bundle/share/licences/$package" 2>/dev/null || true
  done
}

# DT_RPATH, not DT_RUNPATH: a cluster's modules fill LD_LIBRARY_PATH with another Open MPI.
set_run_paths() {
  local file up
  elf_files | while read -r file; do
    chmod u+w "$file"
    strip --strip-unneeded "$file" 2>/dev/null || true
    up=$(realpath --relative-to "$(dirname "$file")" "$bundle/lib")
    patchelf --force-rpath --set-rpath "\$ORIGIN/$up" "$file"
  done
}
