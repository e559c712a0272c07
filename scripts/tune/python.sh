# shellcheck shell=bash
# Part of scripts/tune.sh: the Python that has DeepSpeed.

# That which PYTHON names, else the active environment's, else python3.
find_python() {
  local environment
  if [ -n "${PYTHON:-}" ]; then echo "$PYTHON"; return; fi
  for environment in "${VIRTUAL_ENV:-}" "${CONDA_PREFIX:-}"; do
    if [ -n "$environment" ] && [ -x "$environment/bin/python3" ]; then
      echo "$environment/bin/python3"
      return
    fi
  done
  echo python3
}
