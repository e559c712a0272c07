# shellcheck shell=bash
# Part of scripts/supervise.sh: what the results folder says. Reads $arguments and changes them.

# The results folder, as the program finds it: --results-dir, autotuning.results_dir, or the default.
results_dir() {
  local argument previous="" found=""
  for argument in "${arguments[@]}"; do
    [ "$argument" != -- ] || break
    [ "$previous" != --results-dir ] || { echo "$argument"; return; }
    case $argument in --results-dir=*) echo "${argument#*=}"; return ;; esac
    previous=$argument
    [ -z "$found" ] && [ -f "$argument" ] || continue
    found=$(sed -n 's/^\([^/]\|\/[^/]\)*"results_dir"[[:space:]]*:[[:space:]]*"\([^"]*\)".*/\2/p' \
      "$argument" | tail -n 1)
  done
  echo "${found:-autotuning_results}"
}

journal() { echo "$(results_dir)/journal.jsonl"; }

records() {
  local count
  count=$(grep -c '"type":[[:space:]]*"finished"' "$(journal)" 2>/dev/null) || count=0
  echo "$count"
}

journal_identity() { stat -c '%i %s %y' "$(journal)" 2>/dev/null; }

# A journal that is as it was before the first start is another run's.
note_journal() {
  journal_before=$(journal_identity)
  case " ${arguments[*]} " in
    *" --resume "* | *" --force-resume "*) journal_before="to be resumed" ;;
  esac
}

is_journal_ours() {
  [ -s "$(journal)" ] && [ "$(journal_identity)" != "$journal_before" ]
}

# The next start goes on where this one was, if it had begun.
resume_arguments() {
  is_journal_ours || return 0
  local argument own=true kept=(--resume)
  for argument in "${arguments[@]}"; do
    case $own$argument in
      true--) own=false ;;
      true--overwrite | true--resume) continue ;;
    esac
    kept+=("$argument")
  done
  arguments=("${kept[@]}")
}

# Whether the last start came as far as its journal.
had_begun() { [ "$(journal_identity)" != "$journal_at_start" ]; }

lost_a_worker() {
  grep -q '"restart":[[:space:]]*"worker_lost"' "$(results_dir)/status.json" 2>/dev/null
}

# The system ended it for want of memory: the last record says so, and the next start goes on behind it.
lost_to_memory() {
  grep '"type":[[:space:]]*"finished"' "$(journal)" 2>/dev/null | tail -n 1 | grep -q '"refusal":'
}

# The records at the last start, and how many starts since then brought none.
last_records=-1
fruitless=0

starts_file() { echo "dstune-$SLURM_JOB_ID.starts"; }

recall_starts() {
  [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] || return 0
  { read -r last_records fruitless && read -r journal_before; } 2>/dev/null <"$(starts_file)" ||
    { last_records=-1; fruitless=0; }
}

remember_starts() {
  printf '%s %s\n%s\n' "$last_records" "$fruitless" "$journal_before" >"$(starts_file)"
}

# A job that is requeued while it trains resumes, finds its answer in the journal and trains again.
remember_answer() {
  last_records=-1
  fruitless=0
  remember_starts
}

forget_starts() { rm -f "$(starts_file)"; }

is_worth_a_start() {
  local now
  now=$(records)
  if [ "$now" -gt "$last_records" ]; then fruitless=0; else fruitless=$((fruitless + 1)); fi
  last_records=$now
  journal_at_start=$(journal_identity)
  if $requeue; then remember_starts; fi
  [ "$fruitless" -lt 2 ]
}
