# shellcheck shell=bash
# Part of scripts/bundle.sh: test programs and benchmarks that need a GPU, for scripts/gpu_check.sh, and what compares
# them with PyTorch.

copy_tests() {
  local ranks program
  scripts/build.sh "$preset" gpu_tests gpu_benchmarks >&2
  mkdir -p "$bundle/bin/tests" "$bundle/bin/bench"
  scripts/gpu_check/gpu_tests.py "build/$preset" | while read -r ranks program; do
    cp "$program" "$bundle/bin/tests/"
    echo "$ranks bin/tests/$(basename "$program")"
  done >"$bundle/bin/tests/list"
  find "build/$preset/bench" -maxdepth 1 -type f -executable \( -name 'bench_gpu_*' -o -name kernels_on_request \) \
    -exec cp {} "$bundle/bin/bench/" \;
  mkdir -p "$bundle/bench/gpu"
  find bench/gpu -maxdepth 1 -name '*.py' -exec cp {} "$bundle/bench/gpu/" \;
}
