# shellcheck shell=bash
# Part of scripts/supervise.sh: one start of the launcher, and its end. Reads $launcher, $program,
# $arguments, $shared and $stop.

patience=${DSTUNE_PATIENCE:-15}           # seconds for the launcher to end after its ranks
stop_patience=${DSTUNE_STOP_PATIENCE:-60} # seconds for rank 0 to end after it was asked
own_host=$(uname -n)
run_dir=""
launcher_pid=""

is_alive() { kill -0 "$1" 2>/dev/null; }

# NAME.HOST.PID, and with .rank0 and .command, of supervisors of this host that are no more; those of this one too.
remove_leftovers() {
  local path pid
  for path in "${TMPDIR:-/tmp}"/dstune-run."$own_host".* ${shared:+"$shared"/.dstune-exit-code."$own_host".*}; do
    pid=${path##*."$own_host".}
    pid=${pid%%.*}
    if [ -O "$path" ] && { [ "$pid" = $$ ] || ! is_alive "$pid"; }; then rm -rf "$path"; fi
  done
}

# Local processes of this start, by the file that they were given.
own_processes() {
  grep -lzxF "DSTUNE_EXIT_CODE_FILE=$exit_code_file" /proc/[0-9]*/environ 2>/dev/null |
    sed 's,/proc/\([0-9]*\)/environ,\1,'
}

children() { cat "/proc/$launcher_pid/task/$launcher_pid/children" 2>/dev/null; }

# Nothing is left to wait for: rank 0 has ended, or the launcher has neither ranks nor daemons.
is_over() {
  local host pid rest
  if [ -s "$exit_code_file" ]; then return 0; fi
  if read -r host pid rest 2>/dev/null <"$exit_code_file.rank0" && [ "$host" = "$own_host" ]; then
    is_alive "$pid" || return 0
  fi
  if [ -n "$(children)" ]; then had_children=true; fi
  $had_children && [ -z "$(children)" ]
}

kill_all() {
  local pid
  for pid in $launcher_pid $(own_processes); do kill -KILL "$pid" 2>/dev/null; done
}

# Shared memory of killed ranks; its name has the job's number, in hexadecimal.
remove_segments() {
  local host pid job
  read -r host pid job 2>/dev/null <"$exit_code_file.rank0" || return 0
  case $job in
    "" | *[!0-9]*) ;;
    *) rm -f "/dev/shm/vader_segment.${own_host%%.*}.$(id -u).$(printf %x "$job")".* ;;
  esac
}

# Rank 0 was killed, or left after a death: its results are written, and on several hosts mpirun then
# never ends by itself.
left_after_a_death() {
  local left
  left=$(cat "$exit_code_file" 2>/dev/null || echo 0)
  [ "${left:-0}" -eq 4 ] || [ "${left:-0}" -gt 128 ]
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
    kill -WINCH $$ 2>/dev/null # a signal that came just before bash's wait is heeded after the next one
    count_over
    if [ -e "$run_dir/stop" ]; then stopping=$((stopping + 1)); fi
    if ! $told && { [ "$over" -ge "$patience" ] || [ "$stopping" -ge "$stop_patience" ]; }; then
      kill -TERM "$launcher_pid" 2>/dev/null
      told=true
    fi
    if [ "$over" -ge $((patience + 5)) ] || [ "$stopping" -ge $((stop_patience + 15)) ]; then kill_all; fi
  done
  is_alive $$ || { kill_all; remove_leftovers; }
}

signal_launcher() { [ -z "$launcher_pid" ] || kill -"$1" "$launcher_pid" 2>/dev/null; }

# Without a launcher there is nobody to ask: run_once looks before it starts one.
hand_on_stop() {
  [ -n "$launcher_pid" ] || return 0
  : >"$run_dir/stop"
  signal_launcher USR1
}

make_run_dir() {
  run_dir=${TMPDIR:-/tmp}/dstune-run.$own_host.$$
  rm -rf "$run_dir"
  (umask 077 && mkdir "$run_dir") || exit 1
  exit_code_file=$run_dir/exit-code
  [ -z "$shared" ] || exit_code_file=$shared/.dstune-exit-code.$own_host.$$
  rm -f "$exit_code_file" "$exit_code_file.rank0" "$exit_code_file.command"
}

# Waits for process $1 through signals, whose traps set `interrupted`. Sets launcher_code.
wait_through_signals() {
  local result
  launcher_code=0
  while :; do
    interrupted=false
    result=0
    wait "$1" 2>/dev/null || result=$?
    [ "$result" -eq 127 ] || launcher_code=$result # 127: its code was given before
    $interrupted || return 0
  done
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

start_launcher() {
  # For this mpirun alone, not for one that trains later.
  # local_tmpdir_base: a session folder that a killed mpirun leaves behind is ours to remove.
  # abort_on_non_zero_status: a dead worker costs its experiment, not the run.
  # sigkill_timeout: what mpirun leaves rank 0 to write its results, when mpirun itself is told to end.
  OMPI_MCA_orte_local_tmpdir_base=$run_dir \
    OMPI_MCA_orte_abort_on_non_zero_status=0 \
    OMPI_MCA_odls_base_sigkill_timeout=5 \
    setsid "${launcher[@]}" "$here/run_rank.sh" "$exit_code_file" "$program" "${arguments[@]}" \
    <"$input" &
  launcher_pid=$!
  [ -z "$stop" ] || hand_on_stop # it came between the two
}

# What is started behind "env NAME=VALUE ...".
launcher_name() {
  local word
  for word in "${launcher[@]}"; do
    case $word in env | *=*) ;; *) echo "$word"; return ;; esac
  done
}

# By a signal, or a rank was: mpirun's own codes are smaller, or above 200.
was_launcher_killed() { [ "$launcher_code" -gt 128 ] && [ "$launcher_code" -le 192 ]; }

# Sets code, launcher_code and rank_0_started.
run_once() {
  make_run_dir
  keep_input
  heed_stop
  start_launcher
  watch >/dev/null 2>&1 &
  local watcher=$!
  wait_through_signals "$launcher_pid"
  kill -KILL "$watcher" 2>/dev/null
  wait "$watcher" 2>/dev/null
  launcher_pid="" # gone: its number may be another's by now
  kill_all
  remove_segments
  rank_0_started=false
  [ ! -e "$exit_code_file.rank0" ] || rank_0_started=true
  code=$(cat "$exit_code_file" 2>/dev/null)
  take_training_line
}
