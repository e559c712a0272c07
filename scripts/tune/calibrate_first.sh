# shellcheck shell=bash
# Part of scripts/tune.sh: measures the machine before its first tuning, where DeepSpeed is installed.

# calibrate_first RANKS WORKERS CONFIG RESULTS_DIR BACKEND HOST_FILE: nothing where a profile is there, or none would be
# used. A calibration that fails, or whose profile is of no use, is said, and the tuning goes on without.
calibrate_first() {
  local here python found ranks threads=${OMP_NUM_THREADS:-1} result=0
  if [ -n "$6" ] || [ "${SLURM_JOB_NUM_NODES:-1}" -gt 1 ]; then return 0; fi # a profile is of one host
  if [ "$5" != cpu ] && has_gpu; then return 0; fi                           # nobody can calibrate one GPU
  here=$(dirname "${BASH_SOURCE[0]}")
  python=$(find_python)
  found=$("$python" -B "$here/../calibration/needed.py" "$3" "$4" "$5" "$1" "$2" "$threads" 2>/dev/null) || return 0
  ranks=${found%% *}
  echo "tune: DeepSpeed is installed, this machine not measured with $ranks ranks: that comes first, in 3 minutes" >&2
  printf 'tune: --no-calibrate goes without, by a preset; the profile will be %s\n' "$(printable "${found#* }")" >&2
  "$here/calibrate.sh" --calibrate "$ranks" --backend cpu --in-cache-alone >/dev/null || result=$?
  if [ "$result" -gt 128 ]; then exit "$result"; fi # by a signal: of the user, or of the job's end
  [ -e "${found#* }" ] || echo "tune: no profile came of it, see above: going on by a preset" >&2
}
