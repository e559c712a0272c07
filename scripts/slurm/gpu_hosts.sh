#!/usr/bin/env bash
# Prints the host file of a Slurm job with GPUs: a slot per GPU, and on the first node, where rank 0
# runs and uses none, one more. Nothing in a job without GPUs.
set -euo pipefail
gpus=${SLURM_GPUS_ON_NODE:-0}
[ "$gpus" -gt 0 ] || exit 0
scontrol show hostnames "$SLURM_JOB_NODELIST" |
  awk -v gpus="$gpus" '{ print $1 " slots=" gpus + (NR == 1) }'
