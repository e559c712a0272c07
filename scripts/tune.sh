#!/usr/bin/env bash
# Tunes a DeepSpeed configuration: installs what is missing, builds (neither in a bundle), runs under mpirun.
#
# usage: scripts/tune.sh [CONFIG.json] [options] [-- training command]
#   -n N             ranks: rank 0 tunes, the others train (default: one per core, at least 3;
#                    or the slots of the host file; also by DSTUNE_NP)
#   -hostfile FILE   hosts to run on, in Open MPI's form
#   other options    as in `dstune-mpi --help`
# CONFIG.json defaults to examples/gpt2-30m.json. stdout has the result only.
# A run that loses a worker, rank 0 or mpirun starts again by itself: see scripts/supervise.sh.
# Exit codes: 0 found, 1 internal error, 2 wrong input, 3 nothing fits in memory, 4 interrupted
# (--resume goes on).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

ranks=${DSTUNE_NP:-}
hosts=""
config=""
world_size=""
local_only=false # nothing is run, so no ranks are needed
needs_config=true
plans=false
arguments=()

need_value() { [ $# -ge 2 ] || { echo "error: $1 needs a value" >&2; exit 2; }; }
while [ $# -gt 0 ]; do
  case "$1" in
    -n | -np) need_value "$@"; ranks=$2; shift 2 ;;
    -hostfile | --hostfile) need_value "$@"; hosts=$2; shift 2 ;;
    --help | -h | --version) local_only=true; needs_config=false; arguments+=("$1"); shift ;;
    --status)
      need_value "$@"; local_only=true; needs_config=false; arguments+=("$1" "$2"); shift 2 ;;
    --status=*) local_only=true; needs_config=false; arguments+=("$1"); shift ;;
    --plan) local_only=true; plans=true; arguments+=("$1"); shift ;;
    --check | --explain=*) local_only=true; arguments+=("$1"); shift ;;
    --explain) need_value "$@"; local_only=true; arguments+=("$1" "$2"); shift 2 ;;
    --world-size) need_value "$@"; world_size=$2; arguments+=("$1" "$2"); shift 2 ;;
    --world-size=*) world_size=${1#*=}; arguments+=("$1"); shift ;;
    --model | --results-dir | --format | --backend | --memory-limit | --ranks-per-experiment | \
      --without | --precision)
      need_value "$@"; arguments+=("$1" "$2"); shift 2 ;;
    --) break ;;
    -?*) arguments+=("$1"); shift ;;
    *) config=$1; arguments+=("$1"); shift ;;
  esac
done
if $needs_config && [ -z "$config" ]; then arguments+=("$root/examples/gpt2-30m.json"); fi

program=$root/build/default/dstune-mpi
in_bundle=false # there is nothing to install or to build (docs/bundle.md)
if [ -e "$root/etc/openmpi" ]; then
  in_bundle=true
  program=$root/bin/dstune-mpi
  PATH=$root/bin:$PATH
fi

# What was built before is brought up to date, which takes no apt and mostly no time.
refresh() {
  if $in_bundle; then return 0; fi
  [ -x "$program" ] || return 1
  cmake --build "$root/build/default" --target dstune-mpi 2>&1 |
    { grep -vE 'ninja: no work to do|Re-checking globbed directories' || true; } >&2
}

refresh || { "$root/scripts/setup.sh" && "$root/scripts/build.sh" default dstune-mpi >&2; }

# Two workers at least: with one there is nothing to shard. A worker may take up to 6 GiB.
default_ranks() {
  local cores gib workers
  cores=$(nproc)
  gib=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
  workers=$((gib / 7 < cores ? gib / 7 : cores))
  echo $((1 + (workers > 2 ? workers : 2)))
}

if $local_only; then
  if [ -n "$hosts" ]; then
    arguments+=(--hostfile "$hosts")
  elif [ -z "$world_size" ] && { [ -n "$ranks" ] || $plans; }; then
    ranks=${ranks:-$(default_ranks)}
    arguments+=(--world-size $((ranks - 1)))
  fi
  exec "$program" "${arguments[@]}" "$@"
fi

in_container() {
  [ -e /.dockerenv ] || [ -e /run/.containerenv ] || [ -n "${container:-}" ] ||
    ! grep -qE '^(systemd|init)$' /proc/1/comm
}

mpi=(mpirun --oversubscribe --bind-to none)
if [ -n "$hosts" ]; then
  mpi+=(-hostfile "$hosts")
elif [ -z "${SLURM_JOB_ID:-}" ]; then # in a Slurm job mpirun asks Slurm for nodes and tasks
  ranks=${ranks:-$(default_ranks)}
fi
[ -z "$ranks" ] || mpi+=(-n "$ranks")

if [ "$(id -u)" -eq 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
if in_container; then # they commonly forbid the system call of the single copy
  export OMPI_MCA_btl_vader_single_copy_mechanism=none
fi
shared=()
[ -z "$hosts" ] || shared=(--shared "$PWD") # rank 0 is on the first host of the file, not always here
exec "$root/scripts/supervise.sh" ${shared[@]+"${shared[@]}"} "${mpi[@]}" -- \
  "$program" "${arguments[@]}" "$@"
