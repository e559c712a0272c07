# shellcheck shell=bash
# Part of scripts/tune.sh: measures the machine before its first tuning, where DeepSpeed is installed.

# calibrate_first RANKS WORKERS CONFIG RESULTS_DIR BACKEND HOST_FILE PROGRAM CHECK...: nothing where a profile of this
# version is there, or none would be used, or where PROGRAM CHECK... fails: the tuning will then say why. A calibration
# that fails, or whose profile is of no use, is said, and the tuning goes on with what was there before. A signal ends
# the calibration, and this shell.
calibrate_first() {
  local here python gpu threads needed found backend ranks state first fallback
  if [ -n "$6" ] || [ "${SLURM_JOB_NUM_NODES:-1}" -gt 1 ]; then return 0; fi # a profile is of one host
  here=$(dirname "${BASH_SOURCE[0]}")
  python=$(find_python)
  threads=$(threads_of_worker "$2")
  gpu=""
  [ "$5" = cpu ] || gpu=$(usable_gpus "$7" 2>/dev/null | sed -n 1p) || gpu=""
  needed=("$python" -B "$here/../calibration/needed.py" "$3" "$4" "$5" "$1" "$2" "$threads" "$gpu")
  found=$("${needed[@]}" 2>/dev/null) || return 0
  "${@:7}" >/dev/null 2>&1 </dev/null || return 0
  read -r backend ranks threads state _ <<<"$found"
  case $state in
    earlier)
      first="this machine's profile with $ranks ranks is of an earlier version: a new one" fallback="the old one"
      ;;
    broken) first="this machine's profile with $ranks ranks is broken: a new one" fallback="a preset" ;;
    *) first="this machine was not measured with $ranks ranks: that" fallback="a preset" ;;
  esac
  echo "tune: DeepSpeed is installed, $first comes first, in 3 minutes" >&2
  printf 'tune: --no-calibrate skips it and uses %s; the profile will be %s\n' "$fallback" \
    "$(printable "${found#* * * * }")" >&2
  await_calibration env OMP_NUM_THREADS="$threads" \
    "$here/calibrate.sh" --calibrate "$ranks" --backend "$backend" --in-cache-alone || true
  if "${needed[@]}" >/dev/null 2>&1; then
    echo "tune: it gave no new profile, see above: continuing with $fallback" >&2
  fi
}

# threads_of_worker WORKERS: those that a rank has in the experiments (threads_per_rank() in machine.cpp); torch's rate
# in products counts for as many alone. OpenMP's variables would change what nproc says.
threads_of_worker() {
  local threads
  threads=$(($(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc) / ($1 > 1 ? $1 : 1)))
  echo $((threads > 1 ? threads : 1))
}

# await_calibration COMMAND...: its exit code. torchrun answers Ctrl-C like a failure, and would outlive a shell that
# is ended alone. So it has a process group of its own, and every signal is passed on as the one that it ends at.
await_calibration() {
  local calibration="" result=0
  trap 'end_calibration 1' HUP
  trap 'end_calibration 2' INT
  trap 'end_calibration 15' TERM
  set -m
  "$@" </dev/null >/dev/null &
  calibration=$!
  set +m
  wait "$calibration" || result=$?
  trap - HUP INT TERM
  return "$result"
}

# end_calibration SIGNAL: ends the one that await_calibration waits for, and this shell.
end_calibration() {
  trap '' HUP INT TERM
  if [ -n "$calibration" ]; then
    kill -TERM -- "-$calibration" 2>/dev/null || true
    wait "$calibration" || true
  fi
  exit $((128 + $1))
}
