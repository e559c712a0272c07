#!/usr/bin/env bash
# Started by mpirun on every rank: scripts/run_rank.sh FILE PROGRAM [ARGUMENT...]
# Rank 0 leaves the program's exit code in FILE, because an mpirun that survives a dead worker
# returns 0, or the dead worker's code, whatever rank 0 returned.
exit_code_file=$1
shift
[ "${OMPI_COMM_WORLD_RANK:-0}" = 0 ] || exec "$@"

trap : USR1 USR2 # mpirun signals the whole process group: the program handles it
"$@"
code=$?
echo "$code" >"$exit_code_file" 2>/dev/null
exit "$code"
