# shellcheck shell=bash
# Part of scripts/supervise.sh: the training that follows a tuning with --run. Reads $arguments and $stop.

asks_to_run() {
  local argument
  for argument in "${arguments[@]}"; do
    case $argument in
      --run) return 0 ;;
      --) return 1 ;;
    esac
  done
  return 1
}

training_line=""

# Rank 0 leaves the command with a final optimum alone.
take_training_line() { training_line=$(cat "$exit_code_file.command" 2>/dev/null); }

why_not_trained() {
  if [ -n "$stop" ]; then echo "SIG$stop asked for the end"
  elif [ "$1" -eq 4 ]; then echo "the best so far is provisional"
  elif [ "$1" -eq 0 ]; then echo "rank 0 left no optimum for it"
  else echo "the tuning ended with exit code $1"; fi
}

# follow_through CODE: the training takes the place of this process, and so gets its signals and gives its
# exit code. Returns if there is nothing to start.
follow_through() {
  asks_to_run || return 0
  if [ "$1" -ne 0 ] || [ -n "$stop" ] || [ -z "$training_line" ]; then
    say "the training command is not started: $(why_not_trained "$1")"
    return 0
  fi
  say "starting: $training_line"
  trap - INT TERM HUP USR1 USR2 TSTP WINCH
  eval "exec env $training_line" # words quoted for a shell; env, since the first may be NAME=VALUE
}
