# shellcheck shell=bash
# Part of scripts/supervise.sh: folders that nobody else can write to or foresee, and those that killed
# supervisors left. Reads $shared.

# Numbers of processes mean the same only within one boot of one kernel and one namespace.
own_space=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)/$(readlink /proc/self/ns/pid 2>/dev/null)

# When process $1 started, which tells it from a later one of its number.
start_of() {
  local stat fields
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  read -r -a fields <<<"${stat##*) }"
  echo "${fields[19]}"
}

is_own_folder() { [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ]; }

is_own_file() { [ -f "$1" ] && [ ! -L "$1" ] && [ -O "$1" ]; }

# Where others may write, without the sticky bit, they may put another folder in the place of ours.
is_safe_place() {
  [ -d "$1" ] && [ -w "$1" ] && [ -z "$(find "$1/." -maxdepth 0 -perm /022 ! -perm -1000 2>/dev/null)" ]
}

# make_private_folder PLACE PREFIX: prints its path.
make_private_folder() {
  local folder
  is_safe_place "$1" || return 1
  folder=$(umask 077 && mktemp -d "$1/$2.XXXXXXXXXX" 2>/dev/null) || return 1
  # Where this user's files become another's (root on NFS) nothing can be trusted.
  if is_own_folder "$folder" && echo "$own_space $$ $(start_of $$)" >"$folder/owner"; then
    echo "$folder"
  else
    rm -rf "$folder"
    return 1
  fi
}

# The supervisor that made folder $1 is seen to be no more. In another container it would not be seen.
is_left_over() {
  local space pid start
  is_own_folder "$1" && is_own_file "$1/owner" && read -r space pid start <"$1/owner" || return 1
  [ "$space" = "$own_space" ] && [ "$(start_of "$pid")" != "$start" ]
}

remove_leftovers() {
  local path
  for path in "${TMPDIR:-/tmp}"/dstune-run.* /dev/shm/dstune-run.* ${shared:+"$shared"/.dstune-run.* "${HOME:-}"/.dstune-run.*}; do
    if is_left_over "$path"; then rm -rf "$path"; fi
  done
}

run_dir=""  # of this host
segments="" # of this host: the shared memory of its ranks, which killed ones leave behind
exchange="" # where rank 0 leaves its words: the same, or a folder that its host sees as well

remove_folders() {
  local path
  for path in "$run_dir" "$segments" "$exchange"; do
    if [ -n "$path" ] && is_own_folder "$path"; then rm -rf "$path"; fi
  done
  run_dir=""
  segments=""
  exchange=""
}

# Of one start: what an earlier one left is not this one's.
make_folders() {
  remove_folders
  run_dir=$(make_private_folder "${TMPDIR:-/tmp}" dstune-run) ||
    { say "cannot create a private folder in ${TMPDIR:-/tmp}; set TMPDIR to another place"; exit 1; }
  segments="" # a user may have chosen another place, where /dev/shm is small
  [ -n "${OMPI_MCA_btl_vader_backing_directory:-}" ] ||
    segments=$(make_private_folder /dev/shm dstune-run) || segments=""
  exchange=$run_dir
  [ -n "$shared" ] || return 0
  local place
  for place in "$shared" "${HOME:-}"; do
    exchange=$(make_private_folder "$place" .dstune-run) && return 0
  done
  exchange=$run_dir
  say "cannot create a private folder in $shared or ${HOME:-your home}: rank 0 must run on this host"
}

# The first line of a file that rank 0 left; nothing if it left none.
word_of_rank_0() {
  local line=""
  is_own_folder "$exchange" && is_own_file "$exchange/$1" || return 1
  read -r line <"$exchange/$1" || return 1
  printf '%s\n' "$line"
}
