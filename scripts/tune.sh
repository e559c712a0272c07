#!/usr/bin/env bash
# Tunes a DeepSpeed configuration: installs what is missing, builds (neither in a bundle nor where
# it is installed), runs under mpirun, or the launcher of another MPI (docs/installing.md).
#
# usage: scripts/tune.sh [CONFIG.json] [options] [-- training command]
#        scripts/tune.sh --calibrate [N] [CONFIG.json]
#   -n N             ranks: rank 0 tunes, the others train (default: one more than GPUs; without
#                    GPUs one per core, at least 3; or the slots of the host file; also by DSTUNE_NP)
#   --gpus N         as -n N + 1 where neither -n, a host file nor Slurm says how many; with --plan, plan for N
#   -hostfile FILE   hosts to run on, in Open MPI's form (under MPICH, too); their ranks get the environment that
#                    DeepSpeed's launcher would pass on (.deepspeed_env, NCCL_*, PYTHONPATH, ...), and the Python's
#                    (docs/configuration.md)
#   --calibrate [N]  measures what the training's host code costs here, with N ranks in 3 minutes, for later runs
#                    (needs torch, deepspeed and transformers; docs/host-overhead.md)
#   --no-calibrate   tunes with a preset where this machine was not measured (also by DSTUNE_NO_CALIBRATE=1); else
#                    the first tuning where the Python in use has DeepSpeed does that first, in 3 minutes
#   other options    as in `dstune-mpi --help`
# CONFIG.json defaults to examples/gpt2-30m.json. stdout has the result only.
# Tunes for the release of DeepSpeed that is installed in the Python named by PYTHON, else in the active environment's,
# else in python3, unless CONFIG.json names one.
# With a GPU and nvcc here the preset cuda is built, else default; DSTUNE_PRESET overrides this, e.g. for
# the GPUs of other hosts.
# A run that loses a worker, rank 0 or mpirun restarts by itself: see scripts/supervise.sh.
# With --run the training command takes this script's place once an optimum is found and MPI has ended: it gets
# the signals, and the exit code is its own.
# Exit codes: 0 found, 1 internal error, 2 wrong input, 3 nothing fits in memory, 4 interrupted
# (--resume continues).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tune/gpus.sh
. "$root/scripts/tune/gpus.sh"
# shellcheck source=tune/python.sh
. "$root/scripts/tune/python.sh"
# shellcheck source=tune/calibrate_first.sh
. "$root/scripts/tune/calibrate_first.sh"
# shellcheck source=tune/exports.sh
. "$root/scripts/tune/exports.sh"
# shellcheck source=tune/launcher.sh
. "$root/scripts/tune/launcher.sh"
# shellcheck source=supervise/kind.sh
. "$root/scripts/supervise/kind.sh"
# shellcheck source=supervise/say.sh
. "$root/scripts/supervise/say.sh"

ranks=${DSTUNE_NP:-}
hosts=""
config=""
world_size=""
gpus=""
model=""
needs_file=true
backend=""
local_only=false # nothing is run, so no ranks are needed
needs_config=true
plans=false
results_dir=""
group="" # ranks per experiment
calibrates=true
[ -z "${DSTUNE_NO_CALIBRATE:-}" ] || calibrates=false
arguments=()
as_given=("$@")

need_value() { [ $# -ge 2 ] || { echo "error: $(printable "$1") needs a value" >&2; exit 2; }; }
while [ $# -gt 0 ]; do
  case "$1" in
    -n | -np) need_value "$@"; ranks=$2; shift 2 ;;
    -hostfile | --hostfile) need_value "$@"; hosts=$2; shift 2 ;;
    --calibrate | --calibrate=*) exec "$root/scripts/tune/calibrate.sh" "${as_given[@]}" ;;
    --help | -h | --version | --list-backends | --list-models) local_only=true; needs_config=false; arguments+=("$1"); shift ;;
    --status) # of the last run, unless a folder follows
      local_only=true; needs_config=false; arguments+=("$1"); shift
      if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then arguments+=("$1"); shift; fi ;;
    --status=*) local_only=true; needs_config=false; arguments+=("$1"); shift ;;
    --plan) local_only=true; plans=true; arguments+=("$1"); shift ;;
    --check | --explain=*) local_only=true; arguments+=("$1"); shift ;;
    --explain) need_value "$@"; local_only=true; arguments+=("$1" "$2"); shift 2 ;;
    --world-size) need_value "$@"; world_size=$2; arguments+=("$1" "$2"); shift 2 ;;
    --gpus) need_value "$@"; gpus=$2; arguments+=("$1" "$2"); shift 2 ;;
    --gpus=*) gpus=${1#*=}; arguments+=("$1"); shift ;;
    --world-size=*) world_size=${1#*=}; arguments+=("$1"); shift ;;
    --backend) need_value "$@"; backend=$2; arguments+=("$1" "$2"); shift 2 ;;
    --backend=*) backend=${1#*=}; arguments+=("$1"); shift ;;
    --no-calibrate) calibrates=false; shift ;;
    --resume) calibrates=false; arguments+=("$1"); shift ;; # another profile would make other experiments
    --results-dir) need_value "$@"; results_dir=$2; arguments+=("$1" "$2"); shift 2 ;;
    --results-dir=*) results_dir=${1#*=}; arguments+=("$1"); shift ;;
    --ranks-per-experiment) need_value "$@"; group=$2; arguments+=("$1" "$2"); shift 2 ;;
    --ranks-per-experiment=*) group=${1#*=}; arguments+=("$1"); shift ;;
    --model) need_value "$@"; model=$2; arguments+=("$1" "$2"); shift 2 ;;
    --model=*) model=${1#*=}; arguments+=("$1"); shift ;;
    --format | --progress | --columns | --memory-limit | --without | --precision | --emit | \
      --sequence-length | --train-batch-size | --micro-batch-size | --checkpointing | --lora-r)
      need_value "$@"; arguments+=("$1" "$2"); shift 2 ;;
    --) break ;;
    -?*) arguments+=("$1"); shift ;;
    *) config=$1; arguments+=("$1"); shift ;;
  esac
done
if $plans && [ -n "$model" ]; then needs_file=false; fi # such a plan needs no CONFIG.json
if $needs_config && $needs_file && [ -z "$config" ]; then arguments+=("$root/examples/gpt2-30m.json"); fi
if $needs_config; then # without importing it, which takes seconds
  deepspeed=$("$(find_python)" -c 'import importlib.metadata as m; print(m.version("deepspeed"))' 2>/dev/null || true)
  [ -z "$deepspeed" ] || arguments+=(--installed-deepspeed "$deepspeed")
fi

launcher=()
is_built=false # there is nothing to install or to build: a bundle (docs/bundle.md), or what cmake --install made
if [ -e "$root/scripts/tune/installed.sh" ]; then
  is_built=true
  # shellcheck source=/dev/null
  . "$root/scripts/tune/installed.sh" # program
elif [ -e "$root/etc/openmpi" ]; then
  is_built=true
  program=$root/bin/dstune-mpi
  launcher=("$root/bin/mpirun")
  kind=openmpi
else
  preset=$(choose_preset)
  program=$root/build/$preset/dstune-mpi
fi

# What was built before is brought up to date, which takes no apt and mostly no time.
refresh() {
  if $is_built; then return 0; fi
  [ -x "$program" ] || return 1
  if [ ! -w "$root/build/$preset" ]; then return 0; fi # somebody else's, or on a read-only disk: used as it is
  (
    exec {building}>"$root/build/$preset.lock" # as scripts/build.sh
    flock "$building" 2>/dev/null || true
    cmake --build "$root/build/$preset" --target dstune-mpi 2>&1
  ) | { grep -vE 'ninja: no work to do|Re-checking globbed directories|Looking up the commit' || true; } >&2
}

build() { "$root/scripts/setup.sh" && "$root/scripts/build.sh" "$preset" dstune-mpi >&2; }

if ! refresh && ! build; then
  [ "$preset" = cuda ] && [ -z "${DSTUNE_PRESET:-}" ] || exit 1
  echo "tune: no build for the GPUs of this machine, see above: using the CPU" >&2
  preset=default
  program=$root/build/$preset/dstune-mpi
  refresh || build
fi

# Rank 0 has no GPU of its own to train on.
if [ -z "$ranks$hosts${SLURM_JOB_ID:-}" ] && [[ $gpus =~ ^[0-9]+$ ]]; then ranks=$((10#$gpus + 1)); fi

if $local_only; then
  if [ -n "$hosts" ]; then
    arguments+=(--hostfile "$hosts")
  elif [ -z "$world_size$gpus" ] && { [ -n "$ranks" ] || $plans; }; then
    ranks=${ranks:-$(default_ranks "$program" "$backend")}
    arguments+=(--world-size $((ranks - 1)))
  fi
  exec "$program" "${arguments[@]}" "$@"
fi

in_container() {
  [ -e /.dockerenv ] || [ -e /run/.containerenv ] || [ -n "${container:-}" ] ||
    ! grep -qE '^(systemd|init)$' /proc/1/comm
}

[ -n "${launcher[*]}" ] || choose_launcher "$("$program" --version | sed -n 's/^MPI: //p')" || exit 2
options=() # of supervise.sh; --set is for this mpirun alone, not for one that trains later
set_for_mpirun() { options+=(--set "$1"); }
if [ -n "$hosts" ]; then
  options+=(--shared "$PWD") # rank 0 is on the first host of the file, not always here
elif [ -z "${SLURM_JOB_ID:-}" ]; then
  ranks=${ranks:-$(default_ranks "$program" "$backend")}
elif [ -z "$ranks" ]; then # mpirun asks Slurm for nodes and tasks
  options+=(--gpu-hosts)
fi
launch_options "$ranks" "$hosts" || exit 2
if [ -n "$hosts" ] || [ -n "${SLURM_JOB_ID:-}" ]; then hand_on export_to_ranks; fi
if $calibrates && [[ ${ranks:-} =~ ^[0-9]+$ ]]; then
  calibrate_first "$group" $((ranks - 1)) "${config:-$root/examples/gpt2-30m.json}" "$results_dir" "$backend" "$hosts" \
    "$program" --check --world-size $((ranks - 1)) "${arguments[@]}" "$@"
fi

if [ "$kind" = openmpi ]; then allow_root set_for_mpirun; fi
if in_container; then # they commonly forbid the system call of the single copy
  set_for_mpirun OMPI_MCA_btl_vader_single_copy_mechanism=none
fi
# On one host the ranks share memory and need no port that other hosts can reach.
if [ -z "$hosts" ] && [ -z "${SLURM_JOB_ID:-}" ] && [ -z "${OMPI_MCA_btl:-}" ]; then
  set_for_mpirun OMPI_MCA_btl=self,vader
fi
exec "$root/scripts/supervise.sh" ${options[@]+"${options[@]}"} "${mpi[@]}" -- \
  "$program" "${arguments[@]}" "$@"
