#!/usr/bin/env bash
# Started by the launcher on every rank: scripts/run_rank.sh FILE PROGRAM [ARGUMENT...]
# Rank 0 leaves its exit code in FILE: the program itself, or this script if the program was killed.
# An mpirun that survives a dead worker returns 0, or the dead worker's code, whatever rank 0 returned;
# and it waits for ever after a rank 0 that returned another code than 0. With --run it leaves the training
# command with the optimum in FILE.command.
export DSTUNE_EXIT_CODE_FILE=$1 DSTUNE_COMMAND_FILE=$1.command
shift
unset OMPI_MCA_orte_local_tmpdir_base # mpirun's own: ranks have their daemon's
[ "${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${SLURM_PROCID:-0}}}" = 0 ] || exec "$@"

# They come to the whole process group: the program handles them.
trap : USR1 USR2 TERM INT HUP
(
  echo "$(uname -n) $BASHPID ${PMIX_NAMESPACE:-}" >"$DSTUNE_EXIT_CODE_FILE.rank0"
  exec "$@"
)
code=$?
[ -s "$DSTUNE_EXIT_CODE_FILE" ] || echo "$code" >"$DSTUNE_EXIT_CODE_FILE"
exit 0
