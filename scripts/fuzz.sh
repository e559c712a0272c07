#!/usr/bin/env bash
# Feeds broken configurations, model files, host files, journals and plans to what reads them.
#
# usage: scripts/fuzz.sh [SECONDS]
#   SECONDS  default 60; what is found to be new is kept in build/fuzz/found for the next run
#
# Ends with another code than 0 on a crash, undefined behaviour, a leak, an exception that is no
# ConfigError, 2 s for one input, or 500 MB of memory; the input lies in build/fuzz/faults.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "usage: scripts/fuzz.sh [SECONDS]" >&2; exit 2; }

scripts/setup.sh --dev
scripts/build.sh fuzz readers_fuzz
root=$PWD
mkdir -p build/fuzz/found build/fuzz/faults
folder=$(mktemp -d) # the fuzzer's own files
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# The dictionary, and the keys of the table of knobs.
{
  cat "$root/tests/fuzz/readers.dict"
  grep -oE '\("[a-z0-9_]+"[,)]' "$root/src/core/experiment/knobs.hpp" | tr -d '(),' | sort -u
} >dict

# Freed memory waits in ASan's quarantine: it would count against the limit.
export ASAN_OPTIONS=quarantine_size_mb=16:allocator_may_return_null=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
code=0
"${DSTUNE_FUZZER:-$root/build/fuzz/tests/fuzz/readers_fuzz}" \
  -max_total_time="$seconds" -timeout=2 -rss_limit_mb=500 -max_len=16384 -print_final_stats=1 \
  -dict=dict -artifact_prefix="$root/build/fuzz/faults/" \
  "$root/build/fuzz/found" "$root/tests/fuzz/corpus" 2>log || code=$?
if [ "$code" -ne 0 ]; then
  tail -n 60 log >&2
  echo "fuzz: found a fault (code $code); its input is in build/fuzz/faults" >&2
  exit 1
fi
echo "fuzz: $(sed -n 's/^stat::number_of_executed_units: *//p' log) inputs in $seconds s," \
  "$(sed -n 's/^stat::peak_rss_mb: *//p' log) MB at most, no fault"
