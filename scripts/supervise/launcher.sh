# shellcheck shell=bash
# Part of scripts/supervise.sh: one start of the launcher, and its end. Reads $launcher, $program,
# $arguments, $progress, $settings, $stop and the folders.

patience=${DSTUNE_PATIENCE:-15}           # seconds for the launcher to end after its ranks
stop_patience=${DSTUNE_STOP_PATIENCE:-60} # seconds for rank 0 to end after it was asked
launcher_pid=""

is_alive() { kill -0 "$1" 2>/dev/null; }

# Local processes of this start, by what they were given: ranks, and what the launcher has started for other hosts.
own_processes() {
  grep -lzx -e "DSTUNE_EXIT_CODE_FILE=$exchange/exit-code" -e "OMPI_MCA_orte_local_tmpdir_base=$run_dir" -F \
    /proc/[0-9]*/environ 2>/dev/null | sed 's,/proc/\([0-9]*\)/environ,\1,'
}

children() { cat "/proc/$launcher_pid/task/$launcher_pid/children" 2>/dev/null; }

# Nothing is left to wait for: rank 0 has ended, or the launcher has neither ranks nor daemons.
is_over() {
  local space pid
  if word_of_rank_0 exit-code >/dev/null; then return 0; fi
  if read -r space pid < <(word_of_rank_0 rank-0) && [ "$space" = "$own_space" ]; then
    is_alive "$pid" || return 0
  fi
  if [ -n "$(children)" ]; then had_children=true; fi
  $had_children && [ -z "$(children)" ]
}

kill_all() {
  local pid
  for pid in $launcher_pid $(own_processes); do kill -KILL "$pid" 2>/dev/null; done
}

# Rank 0 was killed, or left after a death: its results are written, and on several hosts mpirun then
# never ends by itself.
left_after_a_death() {
  local left
  left=$(exit_code_of_rank_0)
  [ "${left:-0}" -eq 4 ] || [ "${left:-0}" -gt 128 ]
}

# Nothing if it left none.
exit_code_of_rank_0() {
  local word
  word=$(word_of_rank_0 exit-code) && [[ $word =~ ^[0-9]{1,3}$ ]] && echo "$word"
}

# Seconds since it was over; those after a death count threefold. A dead supervisor sees to nothing.
count_over() {
  if ! is_alive $$; then
    over=$((over < patience ? patience : over + 1))
  elif ! is_over; then
    over=0
  elif left_after_a_death && [ "$over" -lt "$patience" ]; then
    over=$((over + 3))
  else
    over=$((over + 1))
  fi
}

# Open MPI 4.1 may wait for ever after a death, and behind a link that is cut.
watch() {
  trap '' INT TERM HUP USR1 USR2 # a terminal sends them to this process too
  local stopping=0 told=false
  over=0
  had_children=false
  while is_alive "$launcher_pid"; do
    sleep 1
    count_over
    if [ -e "$run_dir/stop" ]; then stopping=$((stopping + 1)); fi
    # Now, not at the end: the whole job may die.
    if $requeue && [ -z "$results_dir" ] && take_results_dir; then remember_starts; fi
    if ! $told && { [ "$over" -ge "$patience" ] || [ "$stopping" -ge "$stop_patience" ]; }; then
      kill -TERM "$launcher_pid" 2>/dev/null
      told=true
    fi
    if [ "$over" -ge $((patience + 5)) ] || [ "$stopping" -ge $((stop_patience + 15)) ]; then kill_all; fi
  done
  is_alive $$ || { kill_all; remove_folders; }
}

signal_launcher() { [ -z "$launcher_pid" ] || kill -"$1" "$launcher_pid" 2>/dev/null; }

# Hydra hands on USR1 and TERM, but neither TSTP nor CONT.
signal_own_ranks() {
  local pid
  for pid in $(own_processes); do
    if [ "$pid" != "$launcher_pid" ]; then kill -"$1" "$pid" 2>/dev/null; fi
  done
}

pause_ranks() { if [ "$kind" = hydra ]; then signal_own_ranks STOP; else signal_launcher TSTP; fi; }

continue_ranks() { if [ "$kind" = hydra ]; then signal_own_ranks CONT; else signal_launcher CONT; fi; }

# Without a launcher there is nobody to ask: run_once looks before it starts one.
hand_on_stop() {
  [ -n "$launcher_pid" ] || return 0
  : >"$run_dir/stop"
  signal_launcher USR1
}

# A moment in which signals wait: bash heeds all of them behind a command of its own. Of two that come at once
# during its builtin wait it drops the first.
nap() { (trap '' INT TERM HUP USR1 USR2 TSTP; exec sleep 0.25); }

# Sets launcher_code.
wait_for_launcher() {
  while is_alive "$launcher_pid"; do nap; done
  launcher_code=0
  wait "$launcher_pid" 2>/dev/null || launcher_code=$?
}

# A configuration on standard input is kept for the next start.
keep_input() {
  input=/dev/null
  local argument
  for argument in "${arguments[@]}"; do
    [ "$argument" != -- ] || return 0
    [ "$argument" = - ] || continue
    input=$run_dir/input
    [ -n "${input_text+set}" ] || input_text=$(cat)
    printf '%s\n' "$input_text" >"$input"
  done
}

# mpirun says nothing of a disk that is full or a reader that has gone: what stands between sees it.
open_output() {
  exec {output}> >(
    trap '' INT TERM HUP USR1 USR2 TSTP
    cat 2>/dev/null
    echo $? >"$run_dir/printed"
    cat >/dev/null # a launcher that cannot write might die of it
  )
  output_pid=$!
}

# Sets was_printed: whether all that was printed has reached standard output. A reader may take its time for an answer;
# behind another end some process may hold the pipe for longer.
close_output() {
  local result=0 i pid
  for ((i = 0; i < 20; ++i)); do
    if [ -s "$run_dir/printed" ] || ! is_alive "$output_pid"; then break; fi
    sleep 0.1
    if [ "$code" = 0 ] && [ -z "$stop" ]; then i=0; fi
  done
  was_printed=true
  if read -r result 2>/dev/null <"$run_dir/printed"; then
    [ "$result" -eq 0 ] || was_printed=false
  elif [ -z "$stop" ]; then
    was_printed=false # what should have said so is gone
  fi
  for pid in $output_pid $(cat "/proc/$output_pid/task/$output_pid/children" 2>/dev/null); do
    kill -KILL "$pid" 2>/dev/null
  done
}

# Whether the launcher was told how many ranks to start.
says_ranks() {
  local option
  for option in "${launcher[@]}"; do
    case $option in -n | -n[0-9]* | -np | --np | --ntasks | --ntasks=* | --ntasks-per-node*) return 0 ;; esac
  done
  return 1
}

# A rank for each GPU of the Slurm job, where it has some, and rank 0: by a host file, or by their number for
# launchers that know the hosts of the job. Those fill hosts evenly from the first one on, which so gets rank 0.
gpu_hosts() {
  host_options=()
  $with_gpu_hosts || return 0
  "$here/slurm/gpu_hosts.sh" >"$run_dir/hosts"
  [ -s "$run_dir/hosts" ] || return 0
  case $kind in
    openmpi) host_options=(-hostfile "$run_dir/hosts") ;;
    hydra)
      slots_of_hosts "$run_dir/hosts" | sed 's/ /:/' >"$run_dir/hydra-hosts"
      host_options=(-f "$run_dir/hydra-hosts")
      ;;
    *) says_ranks || host_options=(-n "$(slots_of_hosts "$run_dir/hosts" | awk '{ sum += $2 } END { print sum }')") ;;
  esac
}

start_launcher() {
  open_output
  # For this mpirun alone, not for one that trains later.
  # local_tmpdir_base: a session folder that a killed mpirun leaves behind is ours to remove.
  # abort_on_non_zero_status: a dead worker costs its experiment, not the run.
  # vader_backing_directory: two process spaces with one host name may give two jobs one number, and one segment.
  # sigkill_timeout: what mpirun leaves rank 0 to write its results, when mpirun itself is told to end.
  (
    export OMPI_MCA_orte_local_tmpdir_base="$run_dir" OMPI_MCA_orte_abort_on_non_zero_status=0 \
      OMPI_MCA_odls_base_sigkill_timeout=5 ${segments:+OMPI_MCA_btl_vader_backing_directory="$segments"} \
      ${settings[@]+"${settings[@]}"}
    exec setsid "${launcher[@]}" ${host_options[@]+"${host_options[@]}"} \
      "$here/run_rank.sh" "$exchange" "$program" ${progress[@]+"${progress[@]}"} "${arguments[@]}"
  ) <"$input" >&"$output" &
  launcher_pid=$!
  exec {output}>&-
  [ -z "$stop" ] || hand_on_stop # it came between the two
}

# By a signal, or a rank was: mpirun's own codes are smaller, or above 200.
was_launcher_killed() { [ "$launcher_code" -gt 128 ] && [ "$launcher_code" -le 192 ]; }

# Sets code, launcher_code, rank_0_started and had_begun.
run_once() {
  make_folders
  keep_input
  gpu_hosts
  heed_stop
  start_launcher
  watch >/dev/null 2>&1 &
  local watcher=$!
  wait_for_launcher
  kill -KILL "$watcher" 2>/dev/null
  wait "$watcher" 2>/dev/null
  launcher_pid="" # gone: its number may be another's by now
  kill_all
  rank_0_started=false
  if word_of_rank_0 rank-0 >/dev/null; then rank_0_started=true; fi
  had_begun=false
  if take_results_dir; then
    had_begun=true
    if $requeue; then remember_starts; fi
  fi
  code=$(exit_code_of_rank_0)
  take_training
  close_output
  if [ "$code" = 0 ] && ! $was_printed; then
    say "the result could not be printed in full; it is in $results_dir"
    code=1
  fi
}
