# shellcheck shell=bash
# Part of scripts/gpu_check.sh: its table, written row by row, so that a session that is cut off leaves what it has.

failures=0
rows=0

say() { printf '%s\n' "$*" | tee -a "$output/report.md"; }

begin_report() {
  : >"$output/report.md"
  say "$("$program" --version 2>/dev/null | head -1), $(date -u +%Y-%m-%d)$(commit_text)"
  gpu_names | while read -r line; do say "GPU: $line"; done
  "$program" --list-backends >"$output/backends.log" 2>&1
  say ""
  say "| check | result | detail | s |"
  say "| :---- | :----- | :----- | -: |"
}

commit_text() { sed -n 's/.*\(, commit [0-9a-f]*\)$/\1/p' "$root/MANIFEST" 2>/dev/null || true; }

# add_row CHECK RESULT DETAIL SECONDS
add_row() {
  rows=$((rows + 1))
  [ "$2" != failed ] || failures=$((failures + 1))
  say "| $1 | $2 | ${3//|/ } | $4 |"
}

# What the benchmarks printed follows the table.
end_report() {
  local log
  say ""
  if [ "$failures" -gt 0 ]; then say "$failures of $rows failed"
  else say "all $rows passed, or say why they did not run"; fi
  for log in "$output"/bench_gpu_*.log; do
    [ -e "$log" ] || continue
    printf '\n## %s\n\n' "$(basename "$log" .log)" >>"$output/report.md"
    cat "$log" >>"$output/report.md"
  done
  [ "$failures" -eq 0 ]
}
