# shellcheck shell=bash
# Part of scripts/supervise.sh: what the results folder says. Reads $arguments and changes them.

results_dir="" # of this run, as rank 0 said when it had begun its journal there
had_begun=false # the last start came as far as its journal

# Rank 0 alone knows: the configuration may name the folder, in any of JSON's ways.
take_results_dir() {
  is_own_folder "$exchange" && is_own_file "$exchange/results" || return 1
  IFS= read -r -d '' results_dir <"$exchange/results" || true # no zero byte ends it
}

records() {
  local journal=$results_dir/journal.jsonl count=0
  if [ -n "$results_dir" ] && [ -f "$journal" ]; then
    count=$(grep -c '"type":[[:space:]]*"finished"' "$journal" 2>/dev/null) || count=0
  fi
  echo "$count"
}

# has_option PATTERN...: among the program's own arguments
has_option() {
  local argument pattern
  for argument in "${arguments[@]}"; do
    [ "$argument" != -- ] || return 1
    # shellcheck disable=SC2053 # a pattern
    for pattern in "$@"; do [[ $argument != $pattern ]] || return 0; done
  done
  return 1
}

names_results_dir() {
  local argument
  for argument in "${arguments[@]}"; do
    case $argument in
      --) return 1 ;;
      --results-dir | --results-dir=*) return 0 ;;
    esac
  done
  return 1
}

is_journal_ours() { [ -n "$results_dir" ] && [ -s "$results_dir/journal.jsonl" ]; }

can_be_resumed() { is_journal_ours || has_option --resume --force-resume; }

resume_arguments() {
  local argument own=true kept=(--resume)
  # By itself --resume goes on with the run that was begun last, which may be another by now.
  if is_journal_ours && ! names_results_dir; then kept+=(--results-dir "$results_dir"); fi
  for argument in "${arguments[@]}"; do
    case $own$argument in
      true--) own=false ;;
      # What this run has written down as failed it does not try for ever.
      true--overwrite | true--resume | true--requeued | true--retry-failed) continue ;;
    esac
    kept+=("$argument")
  done
  arguments=("${kept[@]}")
}

lost_a_worker() {
  [ -f "$results_dir/status.json" ] &&
    grep -q '"restart":[[:space:]]*"worker_lost"' "$results_dir/status.json" 2>/dev/null
}

# The system ended it for want of memory: the last record says so, and the next start goes on behind it.
lost_to_memory() {
  grep '"type":[[:space:]]*"finished"' "$results_dir/journal.jsonl" 2>/dev/null | tail -n 1 | grep -q '"refusal":'
}

# The records at the last start, and how many starts since then brought none.
last_records=-1
fruitless=0

# Beside the job's log, or at home where that folder is not to be written to. A file of another user is not ours.
starts_file() {
  local place name=dstune-$SLURM_JOB_ID.starts
  for place in "$PWD" "${HOME:-}"; do
    if is_own_file "$place/$name"; then echo "$place/$name"; return 0; fi
  done
  for place in "$PWD" "${HOME:-}"; do
    if [ -d "$place" ] && [ -w "$place" ] && [ ! -e "$place/$name" ] && [ ! -L "$place/$name" ]; then
      echo "$place/$name"
      return 0
    fi
  done
  return 1
}

is_number() { [[ $1 =~ ^-?[0-9]{1,9}$ ]]; }

recall_starts() {
  local file words=()
  [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] || return 0
  file=$(starts_file) && [ -f "$file" ] && mapfile -d '' -t words <"$file"
  [ ${#words[@]} -eq 3 ] && is_number "${words[0]}" && is_number "${words[1]}" || return 0
  last_records=${words[0]}
  fruitless=${words[1]}
  results_dir=${words[2]}
}

# What a requeued job goes on from. One that died before its journal was known finds it all the same where its folder
# has a name of the user's; else it begins anew, since the last run may be another job's.
resume_requeued() {
  [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] || return 0
  if is_journal_ours; then
    resume_arguments
  elif ! has_option --overwrite; then
    arguments=(--requeued "${arguments[@]}")
  fi
}

remember_starts() {
  local file new
  if file=$(starts_file) && new=$(mktemp "$file.XXXXXX" 2>/dev/null); then
    printf '%s\0' "$last_records" "$fruitless" "$results_dir" >"$new" && mv -fT "$new" "$file" && return 0
    rm -f "$new"
  fi
  say "neither $PWD nor your home keeps dstune-$SLURM_JOB_ID.starts: requeues without a new record are not counted"
}

# A job that is requeued while it trains resumes, finds its answer in the journal and trains again.
remember_answer() {
  last_records=-1
  fruitless=0
  remember_starts
}

forget_starts() {
  local file
  if file=$(starts_file) && [ -f "$file" ]; then rm -f "$file"; fi
}

is_worth_a_start() {
  local now
  now=$(records)
  if [ "$now" -gt "$last_records" ]; then fruitless=0; else fruitless=$((fruitless + 1)); fi
  last_records=$now
  if $requeue; then remember_starts; fi
  [ "$fruitless" -lt 2 ]
}
