# shellcheck shell=sh
# Sourced by the commands beside it: root becomes the bundle's folder, and Open MPI's variables point there.
root=$(readlink -f "$0" 2>/dev/null) || root=$0
root=$(cd "${root%/*}/.." && pwd -P)
export OPAL_PREFIX="$root" OPAL_SYSCONFDIR="$root/etc/openmpi"
# An Open MPI that has PMIx inside refuses to be told where other plugins lie.
if [ -d "$root/lib/pmix" ]; then export PMIX_PKGLIBDIR="$root/lib/pmix"; fi
export HOME="${HOME:-/tmp}" # PMIx dies of a user that is neither here nor in /etc/passwd
export PATH="$root/bin:${PATH:-/usr/bin:/bin}"
