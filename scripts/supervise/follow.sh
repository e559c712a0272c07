# shellcheck shell=bash
# Part of scripts/supervise.sh: the training that follows a tuning with --run. Reads $arguments, $stop and
# $exchange, and changes $final_code.

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

training=()

# Rank 0 leaves the command's words, each with a zero byte behind it, with a final optimum alone.
take_training() {
  training=()
  if is_own_folder "$exchange" && is_own_file "$exchange/command"; then
    mapfile -d '' -t training <"$exchange/command"
  fi
}

why_not_trained() {
  if [ -n "$stop" ]; then echo "SIG$stop asked for the end"
  elif [ "$final_code" -eq 4 ]; then echo "the best so far is provisional"
  elif [ "$final_code" -eq 0 ]; then echo "rank 0 left no optimum for it"
  else echo "the tuning ended with exit code $final_code"; fi
}

is_assignment() { [[ $1 =~ ^[A-Za-z_][A-Za-z0-9_]*= ]]; }

# The training takes the place of this process, and so gets its signals and gives its exit code. Its first words may
# be NAME=VALUE, as in a shell. Returns if there is nothing to start.
follow_through() {
  local variables=() line
  # From here on a signal ends this process, or is the training's.
  trap - INT TERM HUP USR1 USR2 TSTP
  printf -v line ' %q' "${training[@]}"
  while [ ${#training[@]} -gt 0 ] && is_assignment "${training[0]}"; do
    variables+=("${training[0]}")
    training=("${training[@]:1}")
  done
  if [ "$final_code" -ne 0 ] || [ -n "$stop" ] || [ ${#training[@]} -eq 0 ]; then
    say "the training command is not started: $(why_not_trained)"
    if [ "$final_code" -eq 0 ]; then
      if [ -n "$stop" ]; then final_code=4; else final_code=1; fi # what was asked for was not done
    fi
    return 0
  fi
  say "starting:$line"
  if [ ${#variables[@]} -eq 0 ]; then exec -- "${training[@]}"; fi
  # Not "env NAME=VALUE COMMAND": a command may have a "=" as well.
  # shellcheck disable=SC2016
  exec env "${variables[@]}" "$BASH" -c 'exec -- "$@"' "$0" "${training[@]}"
}
