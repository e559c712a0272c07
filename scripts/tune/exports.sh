# shellcheck shell=bash
# Part of scripts/tune.sh: what ranks on other hosts get of this shell's environment. DeepSpeed's launcher hands on
# variables that begin with NCCL, PYTHON, UCX, MV2 and MLFLOW, and what .deepspeed_env says; the others here are of
# the Python that trains and of this program.

is_handed_on() { # NAME
  case "$1" in
    NCCL_HOSTID) false ;; # a host's own
    NCCL_IB_HCA | UCX_NET_DEVICES) [ -z "${AISC_JOB_NAME:-}" ] ;; # as DeepSpeed, in a cluster of that kind
    NCCL* | PYTHON* | UCX* | MV2* | MLFLOW* | DSTUNE_*) ;;
    LD_LIBRARY_PATH | VIRTUAL_ENV | CONDA_PREFIX) ;;
    # Places among GPUs are the same everywhere; none at all is of a host without, an id of this one.
    CUDA_VISIBLE_DEVICES) [[ ${CUDA_VISIBLE_DEVICES:-} =~ ^[0-9]+(,[0-9]+)*$ ]] ;;
    *) false ;;
  esac
}

trimmed() { local text=$1; text=${text#"${text%%[![:space:]]*}"}; printf '%s' "${text%"${text##*[![:space:]]}"}"; }

# The variables of .deepspeed_env, or the file that DS_ENV_FILE names, in the user's home and here, NAME=VALUE each,
# without blanks around the two, as DeepSpeed takes them. Empty lines and comments, at which its launcher ends, are
# passed over with a warning; another line is an error.
deepspeed_env() {
  local folder file line number name faults=0
  local folders=("${HOME:-.}")
  [ "${HOME:-.}" -ef . ] || folders+=(.)
  for folder in "${folders[@]}"; do
    file=$folder/${DS_ENV_FILE:-.deepspeed_env}
    [[ ${DS_ENV_FILE:-} != /* ]] || file=$DS_ENV_FILE
    [ -f "$file" ] || continue
    number=0
    while IFS= read -r line || [ -n "$line" ]; do
      number=$((number + 1))
      line=$(trimmed "$line")
      if [[ -z $line || $line == \#* ]]; then
        say "warning: $file line $number is not a variable: DeepSpeed's launcher ends there"
        continue
      fi
      name=$(trimmed "${line%%=*}")
      if [[ $line != *=* || ! $name =~ ^[A-Za-z_][A-Za-z_0-9]*$ ]]; then
        echo "error: $(printable "$file") line $number: $(printable "$line"); accepted: NAME=VALUE" >&2
        faults=1
        continue
      fi
      printf '%s=%s\n' "$name" "$(trimmed "${line#*=}")"
    done <"$file"
    if [ "$file" = "${DS_ENV_FILE:-}" ]; then break; fi # a path of its own, not a name in both folders
  done
  return "$faults"
}

# Other launchers than Open MPI's hand on all of their own environment. mpi: the launcher and its options.
export_to_ranks() {
  if [ "${kind:-openmpi}" = openmpi ]; then mpi+=(-x "$1")
  elif [[ $1 == *=* ]]; then options+=(--set "$1"); fi
}

# hand_on EXPORT: calls EXPORT NAME=VALUE for the variables of .deepspeed_env, of two with one name for the last, and
# EXPORT NAME for the others that ranks get; exit code 2 for a file that cannot be read.
hand_on() {
  local export=$1 lines line name
  declare -A values=()
  lines=$(deepspeed_env) || exit 2
  if [ -n "${OMPI_MCA_mca_base_env_list:-}" ]; then # which mpirun refuses beside -x
    say "OMPI_MCA_mca_base_env_list says what ranks on other hosts get, and nothing else is passed on"
    return
  fi
  while IFS= read -r line; do
    [ -z "$line" ] || values[${line%%=*}]=${line#*=}
  done <<<"$lines"
  for name in "${!values[@]}"; do "$export" "$name=${values[$name]}"; done
  while IFS= read -r name; do
    if [ -z "${values[$name]+set}" ] && is_handed_on "$name"; then "$export" "$name"; fi
  done < <(compgen -e | sort)
}
