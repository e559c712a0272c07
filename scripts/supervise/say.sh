# shellcheck shell=bash
# What scripts say on a terminal: nothing of a path, a command or a host's name that the terminal would obey.

# The text with each byte that is not plain ASCII as \x1B: control characters, and what turns the reading direction.
printable() {
  local LC_ALL=C text=$* shown="" letter
  case $text in *[!\ -~]*) ;; *) printf '%s' "$text"; return ;; esac
  while [ -n "$text" ]; do
    letter=${text:0:1}
    text=${text:1}
    case $letter in
      [\ -~]) ;;
      *) printf -v letter '\\x%02X' $(($(printf '%d' "'$letter") & 255)) ;;
    esac
    shown+=$letter
  done
  printf '%s' "$shown"
}

# allow_root COMMAND...: for root, COMMAND is given the variables that let Open MPI run, which it refuses by itself.
allow_root() {
  [ "$(id -u)" -eq 0 ] || return 0
  say "runs as root, which mpirun is told to allow (OMPI_ALLOW_RUN_AS_ROOT)"
  "$@" OMPI_ALLOW_RUN_AS_ROOT=1
  "$@" OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

say() { printf 'dstune-mpi: %s\n' "$(printable "$@")" >&2; }
