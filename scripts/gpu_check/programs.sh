# shellcheck shell=bash
# Part of scripts/gpu_check.sh: what is run, and how its end is read. Needs $root, $output, $limit and $preset.

program=""
mpirun=mpirun
tests=()      # "RANKS PROGRAM"
benchmarks=()

# A bundle has bin/, a tree build/PRESET.
find_programs() {
  local line build=$root/build/$preset
  if [ -x "$root/bin/dstune-mpi" ]; then
    program=$root/bin/dstune-mpi
    mpirun=$root/bin/mpirun
    while read -r line; do tests+=("${line%% *} $root/${line#* }"); done < <(cat "$root/bin/tests/list" 2>/dev/null)
    benchmarks=("$root"/bin/bench/bench_gpu_*)
  elif [ -x "$build/dstune-mpi" ]; then
    program=$build/dstune-mpi
    while read -r line; do tests+=("$line"); done < <("$here/gpu_check/gpu_tests.py" "$build")
    benchmarks=("$build"/bench/bench_gpu_*)
  else
    echo "gpu_check: neither $root/bin nor $build has a dstune-mpi: scripts/build.sh $preset" >&2
    return 1
  fi
}

# run NAME COMMAND...: sets $code, $seconds and $log.
run() {
  local begin=$SECONDS
  log=$output/$1.log
  shift
  timeout --kill-after=10 "$limit" "$@" >"$log" 2>&1 </dev/null
  code=$?
  seconds=$((SECONDS - begin))
}

why_failed() {
  if [ "$code" -eq 124 ] || [ "$code" -eq 137 ]; then echo "not done after $limit s"
  else echo "exit code $code: $(grep -v '^ *$' "$log" | tail -1 | cut -c 1-120)"; fi
}

on_ranks() { # RANKS COMMAND...
  local ranks=$1
  shift
  if [ "$ranks" -eq 1 ]; then echo "$@"; else echo "$mpirun -np $ranks $*"; fi
}

# What scripts/tune.sh and a bundle's mpirun see to.
prepare_mpi() {
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
  export GTEST_COLOR=no # mpirun gives its ranks a terminal
  [ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

run_tests() {
  local test passed skipped name
  [ ${#tests[@]} -gt 0 ] || add_row "tests" "failed" "there are none: build with CUDA, or bundle --with-tests" 0
  for test in ${tests[@]+"${tests[@]}"}; do
    name=$(basename "${test#* }")
    # shellcheck disable=SC2046
    run "$name" $(on_ranks "${test%% *}" "${test#* }")
    passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log" | head -1)
    skipped=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$log" | head -1)
    if [ "$code" -eq 77 ]; then add_row "$name" "not run" "$(grep '^skipped: ' "$log" | tail -1)" "$seconds"
    elif [ "$code" -ne 0 ]; then add_row "$name" failed "$(why_failed)" "$seconds"
    elif [ "${passed:-0}" -eq 0 ]; then add_row "$name" failed "no test ran, ${skipped:-0} skipped" "$seconds"
    else add_row "$name" passed "$passed passed, ${skipped:-0} skipped" "$seconds"; fi
  done
}

run_benchmarks() {
  local benchmark name
  for benchmark in "${benchmarks[@]}"; do
    [ -f "$benchmark" ] && [ -x "$benchmark" ] || continue
    name=$(basename "$benchmark")
    run "$name" "$benchmark"
    if [ "$code" -eq 0 ]; then add_row "$name" passed "its table is below" "$seconds"
    else add_row "$name" failed "$(why_failed)" "$seconds"; fi
  done
}

sanitizer() {
  command -v compute-sanitizer ||
    compgen -G '/usr/local/cuda*/bin/compute-sanitizer' | tail -1
}

# One worker's tuning of a tiny model; rank 0 touches no GPU. mpirun's exit code says little of a rank's: the
# summary decides.
run_sanitizers() {
  local tool command tune
  tune=("$program" --backend cuda "$root/examples/tiny.json" --results-dir)
  command=$(sanitizer)
  if [ -z "$command" ]; then
    add_row "compute-sanitizer" "not run" "it is not installed" 0
    return
  fi
  for tool in memcheck racecheck synccheck; do
    run "$tool" "$mpirun" -np 1 "${tune[@]}" "$output/$tool" : \
      -np 1 "$command" --tool "$tool" "${tune[@]}" "$output/$tool"
    judge_sanitizer "$tool"
  done
}

judge_sanitizer() {
  local summaries
  summaries=$(grep -E '(ERROR|RACECHECK) SUMMARY: ' "$log" | sed 's/^=* *//' | sort -u)
  if [ "$code" -ne 0 ]; then add_row "$1" failed "$(why_failed)" "$seconds"
  elif [ -z "$summaries" ]; then add_row "$1" failed "no summary was printed" "$seconds"
  elif grep -qvE 'SUMMARY: 0 ' <<<"$summaries"; then
    add_row "$1" failed "$(grep -vE 'SUMMARY: 0 ' <<<"$summaries" | head -1)" "$seconds"
  else add_row "$1" passed "$(head -1 <<<"$summaries")" "$seconds"; fi
}
