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

# "NAME PATH" of all that the files need, directly or not; $older_libraries has folders that come before the system's.
needed_libraries() {
  local folders=${older_libraries:-}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  elf_files | LD_LIBRARY_PATH=${folders#:} xargs -n 1 ldd 2>/dev/null |
    awk '$2 == "=>" && $3 ~ "^/" { print $1, $3 }' | sort -u
}

copy_libraries() {
  local name path
  needed_libraries | while read -r name path; do
    [[ $name =~ $system_libraries ]] && continue
    if [[ $name =~ $cuda_libraries ]] && ! $with_cuda_libraries; then continue; fi
    [ -e "$bundle/lib/$name" ] || cp -L "$path" "$bundle/lib/$name"
    echo "$path" >>"$work/copied"
  done
}

# Where this preset's build found each library, and the folders of its toolkit, then any others: a library of another
# major version of CUDA may need a newer driver.
cuda_folders() {
  local compiler
  sed -nE 's/^(CUBLASLT|NCCL|CUDNN)_LIBRARY:[^=]*=(.*)\/[^/]*$/\2/p' "build/$preset/CMakeCache.txt"
  compiler=$(sed -n 's/^CMAKE_CUDA_COMPILER:[^=]*=//p' "build/$preset/CMakeCache.txt")
  if [ -n "$compiler" ]; then
    compiler=$(dirname "$(dirname "$(realpath "$compiler")")")
    printf '%s\n' "$compiler/lib64" "$compiler/lib"
  fi
  library_folders
}

# What the program opens when it is used, and what that opens: no linker knows of it.
copy_cuda_libraries() {
  local stem folder
  for stem in libcublasLt libnccl libcudnn libcudart libnvrtc; do
    folder=$(cuda_folders | while read -r folder; do
      if compgen -G "$folder/$stem.so.[0-9]*" >/dev/null; then echo "$folder"; break; fi
    done || true) # who is not read to the end is killed
    [ -n "$folder" ] || { echo "bundle: no $stem is found here" >&2; continue; }
    find -L "$folder" -maxdepth 1 -regex ".*/$stem[-_.a-z]*\.so\.[0-9]+\(\.[0-9]+\)?" ! -name '*.alt.*' \
      -exec cp -Ln {} "$bundle/lib/" \;
  done
}

# "VERSION FILE: SYMBOL" of all that the files need of the C library, the newest version last.
needed_glibc() {
  local file
  elf_files | while read -r file; do
    objdump -T "$file" 2>/dev/null |
      sed -nE "s|^.*\*UND\*.*[ (]GLIBC_(2\.[0-9.]+)\)? +([^ ]+)$|\1 ${file#"$bundle"/}: \2|p"
  done | sort -V
}

# Ends the script if a file needs a newer C library than $1, such as 2.28, and says which and what.
check_glibc() {
  local newer
  newer=$(needed_glibc | awk -v limit="$1" '
    { split($1, have, "."); split(limit, most, "."); if (have[2] + 0 > most[2] + 0) print "  " $0 }')
  [ -z "$newer" ] || { printf 'bundle: these need a newer glibc than %s:\n%s\n' "$1" "$newer" >&2; exit 1; }
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
    if [[ $(basename "$file") =~ $cuda_libraries ]]; then continue; fi # NVIDIA's stay as they are
    chmod u+w "$file"
    strip --strip-debug "$file" 2>/dev/null || true # names of functions stay, for perf and traces
    up=$(realpath --relative-to "$(dirname "$file")" "$bundle/lib")
    patchelf --force-rpath --set-rpath "\$ORIGIN/$up" "$file"
  done
}
