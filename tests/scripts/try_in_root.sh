#!/usr/bin/env bash
# Tries a bundle or a wheel on another distribution: in a root directory of it, as a user without rights. Needs root.
#
# usage: tests/scripts/try_in_root.sh BUNDLE.tar.gz|WHEEL.whl ROOT
#   DSTUNE_PIP_WHEEL   a wheel of pip, where the distribution's is older than 20.3, which knows no manylinux_2_N
# ROOT is made by debootstrap --variant=minbase, with --include=python3-venv for a wheel, of suite focal, jammy, bullseye ...
# Prints what it runs and what comes of it; the exit code is 0 if all of it worked.
set -euo pipefail
[ $# -eq 2 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
given=$(realpath "$1")
root=$(realpath "$2")

work=$root/tmp/dstune-try
rm -rf "$work"
mkdir -m 777 "$work"
cp "$given" ${DSTUNE_PIP_WHEEL:+"$DSTUNE_PIP_WHEEL"} "$work/"
cat >"$work/try.sh" <<'TEXT'
set -euo pipefail
cd "${0%/*}"
run() { echo "+ $*"; "$@"; }
sed -n 's/^PRETTY_NAME=//p' /etc/os-release
case "$1" in
  *.whl)
    run python3 -m venv venv
    [ -z "${2:-}" ] || run venv/bin/pip install -q --no-index "./$2"
    run venv/bin/pip install -q --no-index --no-deps "./$1"
    bundle=$(venv/bin/python -c 'import dstune_mpi; print(dstune_mpi.__path__[0])')
    program=venv/bin/dstune-mpi tune=venv/bin/dstune ;;
  *)
    run mkdir bundle
    run tar --strip-components 1 -C bundle -xzf "$1"
    bundle=$PWD/bundle
    program=bundle/bin/dstune-mpi tune=bundle/scripts/tune.sh ;;
esac
run "$program" --version
run "$program" --plan --gpus 8 --model Qwen/Qwen2.5-7B-Instruct --sequence-length 2048
run "$bundle/bin/mpirun" -np 3 "$program" --results-dir by-mpirun "$bundle/examples/sim.json"
run "$tune" "$bundle/examples/tiny.json" -n 3 --results-dir by-tune # on cores
grep -q train_batch_size by-mpirun/ds_config_optimal.json by-tune/ds_config_optimal.json
echo "all of it worked"
TEXT
pip_wheel=""
[ -z "${DSTUNE_PIP_WHEEL:-}" ] || pip_wheel=$(basename "$DSTUNE_PIP_WHEEL")
# shellcheck disable=SC2016 # the inner shell's
exec unshare --mount sh -c '
  root=$1 && shift
  mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" && mount --rbind /dev "$root/dev" &&
    exec env -i PATH=/usr/bin:/bin HOME=/tmp/dstune-try "$(command -v chroot)" --userspec 65534:65534 "$root" "$@"
' sh "$root" bash /tmp/dstune-try/try.sh "$(basename "$given")" "$pip_wheel"
