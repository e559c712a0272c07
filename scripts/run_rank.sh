#!/usr/bin/env bash
# Started by the launcher on every rank: scripts/run_rank.sh FOLDER PROGRAM [ARGUMENT...]
# Rank 0 leaves its exit code in FOLDER/exit-code: the program itself, or this script if the program was killed.
# An mpirun that survives a dead worker returns 0, or the dead worker's code, whatever rank 0 returned;
# and it waits for ever after a rank 0 that returned another code than 0. It leaves the folder of its results in
# FOLDER/results, and with --run the training command with the optimum in FOLDER/command.
folder=$1
shift
export DSTUNE_SUPERVISED=1 DSTUNE_EXIT_CODE_FILE=$folder/exit-code
unset OMPI_MCA_orte_local_tmpdir_base # mpirun's own: ranks have their daemon's
[ -d "${OMPI_MCA_btl_vader_backing_directory:-}" ] || unset OMPI_MCA_btl_vader_backing_directory # of mpirun's host
# As rank_of_launcher() in src/mpi/base/launcher.cpp.
for rank in "${OMPI_COMM_WORLD_RANK:-}" "${PMIX_RANK:-}" "${PMI_RANK:-}" "${PALS_RANKID:-}" "${FLUX_TASK_RANK:-}" \
  "${SLURM_PROCID:-}" 0; do
  [ -z "$rank" ] || break
done
[ "$rank" = 0 ] || exec "$@"
export DSTUNE_RESULTS_FILE=$folder/results DSTUNE_COMMAND_FILE=$folder/command

# They come to the whole process group: the program handles them.
trap : USR1 USR2 TERM INT HUP
. "${0%/*}/supervise/folders.sh" # own_space
start() {
  if ! echo "$own_space $BASHPID" 2>/dev/null >"$folder/rank-0"; then
    echo "error: rank 0 runs on $(uname -n), which cannot write to $(LC_ALL=C; printf %q "$folder"): start from a folder that all hosts" \
      "share, or with a home that they share" >&2
    exit 1
  fi
  exec "$@"
}
(start "$@")
code=$?
[ -s "$folder/exit-code" ] || echo "$code" >"$folder/exit-code"
exit 0
