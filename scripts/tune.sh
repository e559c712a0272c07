#!/usr/bin/env bash
# Tunes a DeepSpeed configuration: installs what is missing, builds, runs under mpirun.
#
# usage: scripts/tune.sh [CONFIG.json] [options] [-- training command]
#   -n N             ranks: rank 0 tunes, the others train (default: one per core, at least 3;
#                    or the slots of the host file; also by DSTUNE_NP)
#   -hostfile FILE   hosts to run on, in Open MPI's form
#   other options    as in `dstune-mpi --help`
# CONFIG.json defaults to examples/gpt2.json. stdout has the result only.
# Exit codes: 0 found, 1 internal error, 2 wrong input, 3 nothing fits in memory.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

ranks=${DSTUNE_NP:-}
hosts=""
config=""
local_only=false # --plan, --help and --version need no ranks
arguments=()

need_value() { [ $# -ge 2 ] || { echo "error: $1 needs a value" >&2; exit 2; }; }
while [ $# -gt 0 ]; do
  case "$1" in
    -n | -np) need_value "$@"; ranks=$2; shift 2 ;;
    -hostfile | --hostfile) need_value "$@"; hosts=$2; shift 2 ;;
    --plan | --help | -h | --version) local_only=true; arguments+=("$1"); shift ;;
    --model | --results-dir | --format | --backend | --memory-limit | --ranks-per-experiment | \
      --world-size)
      need_value "$@"; arguments+=("$1" "$2"); shift 2 ;;
    --) break ;;
    -*) arguments+=("$1"); shift ;;
    *) config=$1; arguments+=("$1"); shift ;;
  esac
done
[ -n "$config" ] || arguments+=("$root/examples/gpt2.json")

"$root/scripts/setup.sh"
"$root/scripts/build.sh" default dstune-mpi >&2
program=$root/build/default/dstune-mpi
if $local_only; then
  [ -z "$hosts" ] || arguments+=(--hostfile "$hosts")
  exec "$program" "${arguments[@]}" "$@"
fi

# Two workers at least: with one there is nothing to shard. A worker of the default example takes up
# to 6 GiB.
default_ranks() {
  local cores gib workers
  cores=$(nproc)
  gib=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
  workers=$((gib / 7 < cores ? gib / 7 : cores))
  echo $((1 + (workers > 2 ? workers : 2)))
}

in_container() {
  [ -e /.dockerenv ] || [ -e /run/.containerenv ] || [ -n "${container:-}" ] ||
    ! grep -qE '^(systemd|init)$' /proc/1/comm
}

mpi=(mpirun --oversubscribe --bind-to none)
# A dead worker costs its experiment, not the run.
mpi+=(--mca orte_abort_on_non_zero_status 0)
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
exit_code_file=$(mktemp "${TMPDIR:-/tmp}/dstune-exit-code.XXXXXX")
trap 'rm -f "$exit_code_file"' EXIT
code=0
"${mpi[@]}" "$root/scripts/run_rank.sh" "$exit_code_file" "$program" "${arguments[@]}" "$@" \
  </dev/null &
launcher=$!
for signal in USR1 USR2 TERM INT HUP; do
  # shellcheck disable=SC2064
  trap "kill -$signal $launcher 2>/dev/null || true" "$signal"
done
wait "$launcher" || code=$?
while kill -0 "$launcher" 2>/dev/null; do # a signal interrupted the wait
  code=0
  wait "$launcher" || code=$?
done
[ ! -s "$exit_code_file" ] || code=$(cat "$exit_code_file")
exit "$code"
