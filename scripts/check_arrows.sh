#!/usr/bin/env bash
# Checks who includes whom: core knows nobody, mpi and kernels know core and never each other, the
# passes over host memory (kernels/host) know none of the backends that they serve, and
# of the folders that stand in an order each sees only those before it; the doors (src's own sources)
# do not know each other, but for main, and core asks for no backend by its name. No two headers
# define types of one name. Prints every fault and fails. With --graph it prints the include graph of the folders
# and their numbers of files instead.
#
# usage: scripts/check_arrows.sh [--graph] [SRC]
set -euo pipefail
graph=no
if [ "${1:-}" = --graph ]; then
  graph=yes
  shift
fi
src=${1:-$(dirname "$0")/../src}
[ -d "$src/core" ] || { echo "check_arrows: $src has no core" >&2; exit 2; }

# Folder: those inside it. Each may include itself and those before it.
orders=(
  "core: base input model device experiment train config report search"
  "core/base: files host"
  "core/device: memory ledger operations drive dry rates"
  "core/experiment: outcome"
  "core/config: command_line host deepspeed space model trainer"
  "core/report: formats journal tables files"
  "core/search: schedule feasibility space predict tuners run"
  "core/search/tuners: compare report"
  "core/train: tape nn zero families"
  "core/train/nn: attention losses"
  "core/train/zero: layout reduction gather offload"
  "mpi: base lifeline collectives pool"
)
mpi_headers='<mpi[./_a-z]*h>|"mpi/'
cuda_headers='<(cuda|cublas|cudnn|nccl|nvml|curand)[^>]*>'
blas_headers='<(cblas|openblas|mkl|blis|lapack)[^>]*>'

print_graph() {
  local folder
  for folder in $(cd "$src" && find . -name '*.[ch]pp' -printf '%h\n' | sort -u); do
    folder=${folder#./}
    [ "$folder" != . ] || continue
    local files included
    files=$(find "$src/$folder" -maxdepth 1 -name '*.[ch]*' | wc -l)
    included=$(cat "$src/$folder"/*.[ch]pp | sed -nE 's/^#include "([^"]+)\/[^/"]+"$/\1/p' | sort -u |
      grep -vx "$folder" | tr '\n' ' ' || true)
    printf '%-28s %3d files -> %s\n' "$folder" "$files" "$included"
  done
}

if [ "$graph" = yes ]; then
  print_graph
  exit
fi

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
forbid kernels/host '"kernels/(cpu|cuda|sim)/' "kernels/host serves the backends and knows none"
forbid kernels '"core/(input|model|experiment|train|config|report|search)/' \
  "of core, kernels includes base and device only"

# check_order FOLDER FOLDER_INSIDE...
check_order() {
  local parent=$1 inner
  shift
  local inside=("$@")
  for ((i = 0; i < ${#inside[@]}; ++i)); do
    for ((j = i + 1; j < ${#inside[@]}; ++j)); do
      forbid "$parent/${inside[i]}" "\"$parent/${inside[j]}/" \
        "$parent/${inside[i]} comes before $parent/${inside[j]} and must not know it"
    done
  done
  for inner in "$src/$parent"/*/; do
    [ -d "$inner" ] || continue
    [[ " ${inside[*]} " == *" $(basename "$inner") "* ]] ||
      { echo "$inner -> not in the order of $parent" >&2; faults=1; }
  done
}

for order in "${orders[@]}"; do
  read -ra inside <<<"${order#*:}"
  check_order "${order%%:*}" "${inside[@]}"
done
for folder in "$src"/core/*/; do
  [ "$(basename "$folder")" = config ] ||
    forbid "core/$(basename "$folder")" '<boost/program_options' "only core/config parses options"
done

for door in "$src"/*.[ch]pp; do
  name=$(basename "$door")
  [ -e "$door" ] && [ "$name" != main.cpp ] || continue
  others=$(grep -nE '^#include "[^/"]+"' "$door" | grep -v "\"${name%.*}.hpp\"" || true)
  [ -z "$others" ] || { printf '%s: %s\n  -> only main knows the doors\n' "$door" "$others" >&2; faults=1; }
done

list=$src/core/device/backend_list.hpp
backends=$([ ! -e "$list" ] || sed -nE 's/^ +X\(([a-z_0-9]+),.*/\1/p' "$list" | paste -sd '|')
if [ -n "$backends" ]; then
  asked=$(grep -rnE --include='*.[ch]pp' "[=!]= *\"($backends)\"|\"($backends)\" *[=!]=" "$src/core" || true)
  [ -z "$asked" ] || { printf '%s\n  -> core asks by what a backend can (backend_list.hpp)\n' "$asked" >&2; faults=1; }
fi

# Folders that do not know each other meet in one program: two types of one name would be one. Modules have
# torch.nn's names in namespace nn, whose operations have them, too.
types=$(grep -rnoE --include='*.hpp' '^(class|struct|enum class) [A-Za-z0-9_]+( final)?( :| \{)' "$src" |
  grep -v '/core/train/nn/' || true)
for name in $(sed -E 's/.*:(class|struct|enum class) ([A-Za-z0-9_]+).*/\2/' <<<"$types" | sort | uniq -d); do
  grep -E "(class|struct) $name( |\$)" <<<"$types" >&2
  echo "  -> a type of this name exists twice" >&2
  faults=1
done
exit "$faults"
