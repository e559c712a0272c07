# shellcheck shell=bash
# Part of scripts/supervise.sh and scripts/tune.sh: what a launcher is, by its name or by what it says of itself.

# launcher_kind COMMAND: openmpi, hydra (MPICH's, and Intel MPI's and MVAPICH's, which are made of it), slurm, flux,
# pals (Cray), or other.
launcher_kind() {
  case ${1##*/} in
    srun) echo slurm; return ;;
    flux) echo flux; return ;;
    mpirun.openmpi | mpiexec.openmpi | orterun | prterun) echo openmpi; return ;;
    mpiexec.hydra | mpiexec.mpich | mpirun.mpich) echo hydra; return ;;
    mpirun* | mpiexec*) ;;
    *) echo other; return ;;
  esac
  case $("$1" --version 2>&1 </dev/null | head -n 3) in
    *"Open MPI"* | *OpenRTE* | *PRRTE*) echo openmpi ;;
    *HYDRA* | *"Intel(R) MPI"* | *MPICH* | *MVAPICH*) echo hydra ;;
    *) if command -v palstat >/dev/null; then echo pals; else echo other; fi ;;
  esac
}

# slots_of_hosts FILE: "HOST SLOTS" of each line of a host file in the form of Open MPI ("slots=") or of Hydra (":").
slots_of_hosts() {
  awk '{ sub(/#.*/, "") }
    NF { slots = 1
      for (i = 2; i <= NF; ++i) if ($i ~ /^slots=[0-9]+$/) slots = substr($i, 7)
      host = $1
      if (match(host, /:[0-9]+$/)) { slots = substr(host, RSTART + 1); host = substr(host, 1, RSTART - 1) }
      print host, slots }' "$1"
}
