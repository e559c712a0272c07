#!/usr/bin/env bash
# clang-tidy over src, with the checks of .clang-tidy; needs a configured build/default.
#
# usage: scripts/lint.sh [--changed [COMMIT] | FILE...]
#   --changed  only sources that differ from COMMIT (default: HEAD~1) or are not committed
set -euo pipefail
cd "$(dirname "$0")/.."

[ -e build/default/compile_commands.json ] || CMAKE_GENERATOR=Ninja cmake --preset default >/dev/null

sources() {
  if [ "${1:-}" = --changed ]; then
    { git diff --name-only --diff-filter=d "${2:-HEAD~1}" -- src
      git ls-files --others --exclude-standard -- src; } | grep '\.cpp$' | sort -u || true
  elif [ $# -gt 0 ]; then
    printf '%s\n' "$@"
  else
    find src -name '*.cpp' | sort
  fi
}

# Only what this build compiles has a command: the stand-ins of other builds are left out.
compiled() { while read -r file; do grep -qF "/$file\"" build/default/compile_commands.json && echo "$file"; done || true; }

# -clang-diagnostic-*: warnings are the compiler's matter, and its flags are g++'s.
sources "$@" | compiled |
  xargs -r -P "$(nproc)" -n 1 clang-tidy -p build/default --quiet \
    --extra-arg=-Wno-unknown-warning-option 2> >(grep -v 'warnings generated\|^Suppressed\|^Use -header-filter' >&2)
