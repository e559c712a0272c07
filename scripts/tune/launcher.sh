# shellcheck shell=bash
# Part of scripts/tune.sh: which command starts the ranks, and by which options. Needs supervise/kind.sh.

# The first of the commands that is here and of this kind; nothing if none is.
first_of_kind() { # KIND COMMAND...
  local kind=$1 command
  shift
  for command in "$@"; do
    command -v "$command" >/dev/null || continue
    if [ "$(launcher_kind "$command")" = "$kind" ]; then echo "$command"; return; fi
  done
}

# choose_launcher LIBRARY: sets launcher, a command and its first options, and kind. LIBRARY is the program's MPI, as it
# names it: ranks that another library's mpirun has started do not find each other. DSTUNE_MPIRUN names another command.
# Exit code 2 where there is none.
choose_launcher() {
  local command="" manager=""
  if [ -n "${SLURM_JOB_ID:-}" ] && command -v srun >/dev/null; then manager=slurm
  elif [ -n "${FLUX_URI:-}" ] && command -v flux >/dev/null; then manager=flux; fi
  if [ -n "${DSTUNE_MPIRUN:-}" ]; then
    read -ra launcher <<<"$DSTUNE_MPIRUN"
    kind=$(launcher_kind "${launcher[0]}")
    return
  fi
  case $1 in
    "Open MPI"* | "") command=$(first_of_kind openmpi mpirun mpirun.openmpi mpiexec.openmpi) ;;
    *)
      command=$(first_of_kind hydra mpiexec mpiexec.hydra mpiexec.mpich)
      [ -n "$command" ] || [ -n "$manager" ] || command=$(first_of_kind pals mpiexec) ;;
  esac
  if [ -n "$command" ]; then launcher=("$command")
  elif [ "$manager" = slurm ]; then
    case $1 in
      "Open MPI"*) launcher=(srun --mpi=pmix) ;;
      CRAY*) launcher=(srun --mpi=cray_shasta) ;;
      *) launcher=(srun --mpi=pmi2) ;;
    esac
  elif [ "$manager" = flux ]; then launcher=(flux run)
  elif [[ $1 == "Open MPI"* || -z $1 ]]; then
    launcher=(mpirun) kind=openmpi # which the shell will say is not here
    return
  else
    echo "error: no launcher of $1 is on the PATH (mpiexec, mpiexec.hydra, mpiexec.mpich); set DSTUNE_MPIRUN to it" >&2
    return 2
  fi
  kind=$(launcher_kind "${launcher[0]}")
}

# launch_options RANKS HOST_FILE: sets mpi, the launcher and its options. Either may be empty: the ranks are the host
# file's slots then, or what the job has. Exit code 2 for a host file that cannot be used.
launch_options() {
  local ranks=$1 hosts="" most=0 sum=0 host slots
  mpi=("${launcher[@]}")
  if [ -n "$2" ] && [ "$kind" != openmpi ]; then
    case $kind in
      slurm | flux) echo "error: -hostfile is not for ${launcher[0]}, which uses the hosts of its job" >&2; return 2 ;;
    esac
    [ -r "$2" ] || { echo "error: no host file $(printable "$2")" >&2; return 2; }
    while read -r host slots; do
      if [ "$kind" = hydra ]; then hosts+=,$host:$slots; else hosts+=,$host; fi
      most=$((slots > most ? slots : most)) sum=$((sum + slots))
    done < <(slots_of_hosts "$2")
    ranks=${ranks:-$sum}
  fi
  case $kind in
    openmpi) mpi+=(--oversubscribe --bind-to none); [ -z "$2" ] || mpi+=(-hostfile "$2") ;;
    hydra) [ -z "$hosts" ] || mpi+=(-hosts "${hosts#,}") ;;
    slurm) mpi+=(--cpu-bind=none) ;;
    flux) mpi+=(-o cpu-affinity=off) ;;
    pals) mpi+=(--cpu-bind none); [ -z "$hosts" ] || mpi+=(--hosts "${hosts#,}" --ppn "$most") ;;
    *) [ -z "$2" ] || mpi+=(-hostfile "$2") ;;
  esac
  [ -z "$ranks" ] || mpi+=(-n "$ranks")
}
