#!/usr/bin/env bash
# clang-tidy over src, with the checks of .clang-tidy, each source by itself, and each header compiled alone.
#
# usage: scripts/lint.sh [--changed [COMMIT] | --list [COMMIT] | --all | FILE...]
#   --changed  sources that differ from COMMIT, or whose header does, without the static analyzer
#              (the default), but not those that were only moved, or include headers that were, or
#              got other comments on lines of their own.
#              COMMIT defaults to the merge base with the main branch; on that branch
#              itself to what it was four hours before its newest commit
#   --list     names the sources that --changed takes, and checks nothing
#   --all      every source, with the analyzer; takes long
set -euo pipefail
cd "$(dirname "$0")/.."

base_commit() {
  local main base=""
  for main in origin/main main; do
    [ -n "$base" ] || base=$(git merge-base HEAD "$main" 2>/dev/null || true)
  done
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
    base=$(git rev-list -1 --before=$(($(git log -1 --format=%ct) - 4 * 3600)) HEAD)
  fi
  # A history of a few hours, or a shallow one: all of it is new.
  echo "${base:-$(git hash-object -t tree /dev/null)}"
}

mode=${1:---changed}
base=${2:-}
case "$mode" in --changed | --list) base=${base:-$(base_commit)} ;; esac

# A header is seen through its own source, or through the first one that includes it.
sources_of() {
  local file=$1 source=${1%.hpp}.cpp
  case "$file" in
    *.cpp) echo "$file" ;;
    *.hpp) if [ -e "$source" ]; then echo "$source"; else
             git grep -l --max-count 1 -F "\"${file#src/}\"" -- 'src/*.cpp' | head -1 || true
           fi ;;
  esac
}

# Files of src that differ from the base in more than their place, their comments and the headers of src that
# they include: every compiler sees whether those are there, with a precompiled header, too.
changed_files() {
  git diff --find-renames -l0 --unified=0 --no-color --no-ext-diff --dst-prefix=b/ --diff-filter=d "$base" -- src |
    awk '/^diff --git / { in_code = 0 }
      /^@@ / { in_code = 1 }
      !in_code && /^\+\+\+ b\// { file = substr($0, 7) }
      /^[-+] *\/\// && !/NOLINT/ { next }
      in_code && /^[-+]/ && !/^[-+](#include ".*")?$/ { print file }'
  git ls-files --others --exclude-standard -- src
}

sources() {
  case "$mode" in
    --all) find src -name '*.cpp' ;;
    --changed | --list)
      changed_files | sort -u |
        while read -r file; do sources_of "$file"; done ;;
    *) printf '%s\n' "$@" ;;
  esac | sort -u
}

if [ "$mode" = --list ]; then
  sources
  exit
fi

# Configured and never built: its commands compile each source alone.
database=build/lint/compile_commands.json
cmake --preset default -B build/lint -DDSTUNE_TOGETHER=OFF -DDSTUNE_TESTS=OFF -DDSTUNE_BENCH=OFF >/dev/null

# Only what this build compiles has a command: the stand-ins of other builds are left out.
compiled() { while read -r file; do grep -qF "/$file\"" "$database" && echo "$file"; done || true; }

# The commands without what clang does not know, above all g++'s precompiled header: what a source or header
# forgot to include is an error here.
commands=$(mktemp -d)
trap 'rm -rf "$commands"' EXIT
sed -E 's/ (-Winvalid-pch|-fpch-preprocess|-fno-reorder-blocks-and-partition|-include [^ ]*cmake_pch\.hxx)//g' \
  "$database" >"$commands/compile_commands.json"

options=()
[ "$mode" != --changed ] || options=(--checks=-clang-analyzer-*)

# -clang-diagnostic-*: warnings are the compiler's matter, and its flags are g++'s.
sources "$@" | compiled |
  xargs -r -P "$(nproc)" -n 1 clang-tidy -p "$commands" --quiet "${options[@]}" \
    --extra-arg=-Wno-unknown-warning-option 2> >(grep -v 'warnings generated\|^Suppressed\|^Use -header-filter' >&2)
case "$mode" in --changed | --all) scripts/build.sh default all_verify_interface_header_sets ;; esac
