#!/usr/bin/env bash
# Checks who includes whom: core knows nobody, mpi and kernels know core and never each other, and
# inside core each folder sees only those before it. No two headers define types of one name. Prints
# every fault and fails.
#
# usage: scripts/check_arrows.sh [SRC]
set -euo pipefail
src=${1:-$(dirname "$0")/../src}
[ -d "$src/core" ] || { echo "check_arrows: $src has no core" >&2; exit 2; }

folders=(base model train config report search) # each may include itself and those before it
mpi_headers='<mpi[./_a-z]*h>|"mpi/'
cuda_headers='<(cuda|cublas|cudnn|nccl|nvml|curand)[^>]*>'
blas_headers='<(cblas|openblas|mkl|blis|lapack)[^>]*>'

faults=0
# forbid WHERE PATTERN WHY: no #include in WHERE may match PATTERN.
forbid() {
  [ -e "$src/$1" ] || return 0
  local found
  found=$(grep -rnE --include='*.[ch]pp' --include='*.h' --include='*.cu' --include='*.cuh' \
    "^[[:space:]]*#[[:space:]]*include[[:space:]]*($2)" "$src/$1" || true)
  [ -n "$found" ] || return 0
  printf '%s\n  -> %s\n' "$found" "$3" >&2
  faults=1
}

forbid core "$mpi_headers|\"kernels/|$cuda_headers|$blas_headers" \
  "core includes neither mpi nor kernels, MPI, CUDA, NCCL or BLAS"
forbid mpi "\"kernels/|$cuda_headers|$blas_headers" "mpi includes core and <mpi.h> only"
forbid kernels "$mpi_headers" "kernels includes core and the hardware's libraries only"

for ((i = 0; i < ${#folders[@]}; ++i)); do
  for ((j = i + 1; j < ${#folders[@]}; ++j)); do
    forbid "core/${folders[i]}" "\"core/${folders[j]}/" \
      "core/${folders[i]} comes before core/${folders[j]} and must not know it"
  done
  [ "${folders[i]}" = config ] ||
    forbid "core/${folders[i]}" '<boost/program_options' "only core/config parses options"
done

for folder in "$src"/core/*/; do
  name=$(basename "$folder")
  [[ " ${folders[*]} " == *" $name "* ]] || { echo "$folder -> not in the order of core" >&2; faults=1; }
done

# Folders that do not know each other meet in one program: two types of one name would be one.
types=$(grep -rnoE --include='*.hpp' '^(class|struct|enum class) [A-Za-z0-9_]+( final)?( :| \{)' "$src" || true)
for name in $(sed -E 's/.*:(class|struct|enum class) ([A-Za-z0-9_]+).*/\2/' <<<"$types" | sort | uniq -d); do
  grep -E "(class|struct) $name( |\$)" <<<"$types" >&2
  echo "  -> a type of this name exists twice" >&2
  faults=1
done
exit "$faults"
