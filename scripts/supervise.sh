#!/usr/bin/env bash
# Starts the ranks of dstune-mpi, sees to it that they end, and starts them again where that helps.
#
# usage: scripts/supervise.sh [OPTION...] LAUNCHER [ITS OPTION...] -- PROGRAM [ARGUMENT...]
#   --requeue     in a Slurm job that may be requeued: USR1 comes before the time limit, and the death
#                 of rank 0 or of the launcher requeues the job
#   --shared DIR  rank 0 may run on another host, which sees DIR, or the user's home where DIR is not to be written to
#   --gpu-hosts   in a Slurm job with GPUs a rank for each, and rank 0: mpirun gets a host file with these slots, srun
#                 and others their number (-n), unless LAUNCHER's options have one
#   --set N=V     a variable for the launcher alone
#   LAUNCHER      mpirun, mpiexec, srun or flux, with its options
#
# Where standard error is a terminal the program is told so, by --progress terminal, and where stdout is one, too, how
# wide it is, by --columns: at most 100, since longer lines are hard to read.
# The launcher has a process group of its own. INT, TERM, HUP, USR1 and USR2 ask rank 0 once to stop and
# write its results; a second one, or a minute without an end, ends the launcher. TSTP and CONT stop and
# continue the ranks.
# A launcher that outlives its ranks is ended. If a worker, rank 0 or the launcher died, or something else than a
# signal to this script ended them, the run starts again with --resume, at most 3 times (a worker that ended for
# want of memory does not count), until two starts in a row bring no new record.
# With --run among the program's arguments the training command takes this process's place once an optimum
# is found: its exit code is the training's then.
# Exit codes: 0 found, 1 internal error, 2 wrong input, 3 nothing fits, 4 interrupted: --resume continues.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/supervise/say.sh"
. "$here/supervise/folders.sh"
. "$here/supervise/follow.sh"
. "$here/supervise/journal.sh"
. "$here/supervise/kind.sh"
. "$here/supervise/launcher.sh"

requeue=false
with_gpu_hosts=false
shared=""
settings=()
while :; do
  case "${1:-}" in
    --requeue) requeue=true; shift ;;
    --shared) shared=$2; shift 2 ;;
    --gpu-hosts) with_gpu_hosts=true; shift ;;
    --set) settings+=("$2"); shift 2 ;;
    *) break ;;
  esac
done
launcher=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do launcher+=("$1"); shift; done
shift
kind=$(launcher_kind "${launcher[0]}")
program=$1
shift
arguments=("$@")

# The launcher hands on what rank 0 writes by a pipe, so that rank 0 cannot see the terminal behind it.
progress=()
if [ -t 2 ] && [ "${TERM:-dumb}" != dumb ] && ! has_option --progress '--progress=*'; then
  progress=(--progress terminal)
fi
if [ -t 1 ] && [ -t 2 ] && ! has_option --columns '--columns=*'; then
  columns=$(stty size <&2 2>/dev/null) || columns=""
  columns=${columns#* }
  if [[ $columns =~ ^[0-9]+$ ]] && [ "$columns" -ge 40 ]; then
    progress+=(--columns $((columns < 100 ? columns : 100)))
  fi
fi

max_restarts=3
restarts=0
stop="" # the signal that asked for the end

# ended CODE MESSAGE...
ended() {
  final_code=$1
  shift
  [ $# -eq 0 ] || say "$*"
  if $requeue; then
    if [ "$final_code" -eq 0 ] && asks_to_run; then remember_answer; else forget_starts; fi
  fi
  remove_folders
  if asks_to_run; then follow_through; fi
  exit "$final_code"
}

# The end of a run that has not found its answer: is there something to go on from?
ended_resumable() {
  if can_be_resumed; then ended 4 "$1; continue it with --resume"; fi
  [ -z "$stop" ] || ended 4 "$1 before it had begun"
  ended 1 "$1"
}

requeue_job() {
  say "$1; the job is requeued"
  remove_folders
  scontrol requeue "$SLURM_JOB_ID" && exit 0
  ended_resumable "$1 and could not be requeued"
}

start_again() {
  [ "$restarts" -lt "$max_restarts" ] || ended_resumable "$1, after $restarts restarts"
  restarts=$((restarts + 1))
  say "$1; starting again ($restarts of $max_restarts)"
  if is_journal_ours; then resume_arguments; fi
}

# A signal that nobody answered: the launcher died of it, or there was none when it came.
heed_stop() {
  if [ "$stop" = USR1 ] && $requeue; then requeue_job "the time limit is near"; fi
  [ -z "$stop" ] || ended_resumable "interrupted by SIG$stop"
}

# What to do after an attempt that left the exit code $code, if any.
settle() {
  case $code in
    0)
      if [ "$stop" = USR1 ] && $requeue && asks_to_run; then
        remember_answer
        requeue_job "the time limit is near"
      fi
      ended 0
      ;;
    2 | 3) ended "$code" ;;
    4)
      if [ "$stop" = USR1 ] && $requeue; then requeue_job "the time limit is near"; fi
      if [ -n "$stop" ]; then ended 4; fi
      if ! $had_begun; then start_again "a rank died at the start"
      elif lost_a_worker; then
        ! lost_to_memory || restarts=$((restarts - 1)) # each such start brings its record
        start_again "a worker was lost and too few are left"
      else go_on "something else than a signal to this script ended the ranks: the launcher or a host may have died"; fi
      ;;
    1)
      if [ -z "$stop" ] && ! $had_begun && was_launcher_killed; then start_again "a rank died at the start"
      else ended 1; fi
      ;;
    *) settle_death ;;
  esac
}

# After a death that may have been a host's: in a job that can be requeued on others.
go_on() {
  if $requeue && is_journal_ours; then requeue_job "$1"; fi
  start_again "$1"
}

settle_death() {
  local what="the launcher died"
  # Hydra ends all ranks when one dies.
  [ "$kind" != hydra ] || what="a rank or the launcher died"
  [ -z "$code" ] || what="rank 0 died (exit code $code)"
  heed_stop
  if ! $rank_0_started && ! was_launcher_killed; then
    if [ "$restarts" -eq 0 ]; then ended 1 "${launcher[0]} could not start the ranks"; fi
    if $requeue && is_journal_ours; then requeue_job "${launcher[0]} could not start the ranks again"; fi
    ended_resumable "${launcher[0]} could not start the ranks again. If a host is gone, leave it out, \
set --ranks-per-experiment to the workers of the others"
  fi
  go_on "$what"
}

ask_to_stop() {
  if [ -z "$stop" ]; then
    stop=$1
    asked_at=$SECONDS
    hand_on_stop
  elif [ $((SECONDS - asked_at)) -ge 2 ]; then # a terminal that closes sends two at once
    signal_launcher TERM
  fi
}

for signal in INT TERM HUP USR1 USR2; do
  # shellcheck disable=SC2064
  trap "ask_to_stop $signal" "$signal"
done
trap 'pause_ranks; kill -STOP $$; continue_ranks' TSTP

remove_leftovers
if $requeue; then
  recall_starts
  resume_requeued
fi
while :; do
  is_worth_a_start || ended_resumable "two starts in a row brought no new record"
  run_once
  settle
done
