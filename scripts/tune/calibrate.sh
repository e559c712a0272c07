#!/usr/bin/env bash
# Part of scripts/tune.sh: measures what PyTorch's and DeepSpeed's host code and collectives cost on this machine.
#
# usage: scripts/tune.sh --calibrate [N] [CONFIG.json] [--results-dir DIR] [-hostfile FILE] [--backend cpu|cuda]
#   N   ranks, on CPUs at least 2 (default: one per GPU; without GPUs 2, or the slots of the host file)
# Needs torch, deepspeed and transformers, in the Python that PYTHON names, else in the active environment,
# else in python3. The profile goes to stdout, the user's cache and the results directory, where later runs
# find it (docs/host-overhead.md).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=gpus.sh
. "$root/scripts/tune/gpus.sh"
# shellcheck source=python.sh
. "$root/scripts/tune/python.sh"
# shellcheck source=exports.sh
. "$root/scripts/tune/exports.sh"
# shellcheck source=../supervise/say.sh
. "$root/scripts/supervise/say.sh"
# shellcheck source=../supervise/kind.sh
. "$root/scripts/supervise/kind.sh"
# shellcheck source=launcher.sh
. "$root/scripts/tune/launcher.sh"

fail() { # FAULT [ADVICE...]
  local advice
  printf 'error: %s\n' "$(printable "$1")" >&2
  shift
  for advice in "$@"; do printf '  %s\n' "$(printable "$advice")" >&2; done
  exit 2
}

ranks=""
hosts=""
config=""
results_dir=""
keeps_in_results=true
arguments=()
need_value() { [ $# -ge 2 ] || fail "$1 needs a value"; }
while [ $# -gt 0 ]; do
  case "$1" in
    --calibrate)
      shift
      if [[ ${1:-} =~ ^[0-9]+$ ]]; then ranks=$1; shift; fi ;;
    --calibrate=*)
      ranks=${1#*=}; shift
      [[ $ranks =~ ^[0-9]+$ ]] || fail "--calibrate takes a number of ranks, not \"$ranks\"" ;;
    -hostfile | --hostfile) need_value "$@"; hosts=$2; shift 2 ;;
    --backend) need_value "$@"; export DS_ACCELERATOR=$2; shift 2 ;;
    --backend=*) export DS_ACCELERATOR=${1#*=}; shift ;;
    --results-dir) need_value "$@"; results_dir=$2; shift 2 ;;
    --results-dir=*) results_dir=${1#*=}; shift ;;
    --in-cache-alone) # of a tuning that measures first
      keeps_in_results=false; arguments+=(--unless-vague); shift ;;
    --seconds | --rounds-to) need_value "$@"; arguments+=("$1" "$2"); shift 2 ;;
    --seconds=* | --rounds-to=*) arguments+=("$1"); shift ;;
    --help | -h) sed -n '2,/^set /{ /^#/s/^# \{0,1\}//p; }' "$0"; exit 0 ;;
    -*) fail "--calibrate does not take $1" "accepted: [N] [CONFIG.json] --results-dir, -hostfile, --backend" ;;
    *)
      [ -f "$1" ] || fail "no file $1"
      config=$1; shift ;;
  esac
done
case "${DS_ACCELERATOR:-cpu}" in
  cpu | cuda) ;;
  *) fail "--calibrate knows the backends cpu and cuda, not \"$DS_ACCELERATOR\"" ;;
esac
on_gpus=false least=2
if [ "${DS_ACCELERATOR:-cuda}" = cuda ] && has_gpu; then on_gpus=true least=1; fi
if [ -n "$ranks" ] && [ "$ranks" -lt "$least" ]; then
  fail "--calibrate $ranks: a rank without a partner has collectives that cost next to nothing; $least ranks or more"
fi

python=$(find_python)
command -v "$python" >/dev/null || fail "no Python at \"$python\": PYTHON names another one"
missing=$("$python" -c '
import importlib.util
print(*(name for name in ("torch", "deepspeed", "transformers") if importlib.util.find_spec(name) is None))') ||
  fail "$python does not run: PYTHON names another one"
if [ -n "$missing" ]; then
  fail "--calibrate runs the real DeepSpeed, and $(command -v "$python") has no ${missing// /, no }" \
    "install it there: $python -m pip install $missing" \
    "or name the Python that has it: PYTHON=/path/to/bin/python3 scripts/tune.sh --calibrate"
fi

also=""
if $keeps_in_results; then
  also=$("$python" -B "$root/scripts/calibration/profiles.py" "$config" "$results_dir") || exit 2
fi
[ -z "$also" ] || arguments+=(--also "$also")
calibrate=("$root/scripts/calibration/calibrate.py" ${arguments[@]+"${arguments[@]}"})
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} # ranks share the cores, and the shapes are tiny

if [ -n "${OMPI_COMM_WORLD_SIZE:-}${PMI_SIZE:-}" ]; then # a rank of someone's mpirun
  exec "$python" "${calibrate[@]}"
fi

if [ -n "$hosts" ]; then
  [ -f "$hosts" ] || fail "no file $hosts"
  first=$(awk '!/^[[:space:]]*(#|$)/ { print $1; exit }' "$hosts")
  [ -n "$first" ] || fail "$hosts names no host"
  # The ranks are Python's, which any launcher may start; what they need is handed on by Open MPI's -x.
  mpirun=${DSTUNE_MPIRUN:-$(first_of_kind openmpi mpirun mpirun.openmpi mpiexec.openmpi)}
  read -ra mpi <<<"$mpirun"
  if [ -z "$mpirun" ] || [ "$(launcher_kind "${mpi[0]}")" != openmpi ]; then
    fail "--calibrate -hostfile starts its ranks with Open MPI's mpirun, and ${mpirun:-what is here} is none" \
      "accepted: DSTUNE_MPIRUN with the path of one; or no -hostfile, on one host, with the ranks of that host"
  fi
  mpi+=(-hostfile "$hosts" --oversubscribe --bind-to none -x "MASTER_ADDR=$first"
    -x "MASTER_PORT=${MASTER_PORT:-29511}" -x OMP_NUM_THREADS)
  [ -z "${DS_ACCELERATOR:-}" ] || mpi+=(-x DS_ACCELERATOR)
  hand_on export_to_ranks
  [ -z "$ranks" ] || mpi+=(-n "$ranks")
  allow_root export
  exec "${mpi[@]}" "$python" "${calibrate[@]}"
fi

if [ -z "$ranks" ]; then
  ranks=2
  if $on_gpus; then
    gpus=$("$python" -c 'import torch; print(torch.cuda.device_count())')
    [ "$gpus" -eq 0 ] || ranks=$gpus
  fi
fi
exec "$python" -m torch.distributed.run --standalone --nproc_per_node "$ranks" "${calibrate[@]}"
