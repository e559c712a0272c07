#!/usr/bin/env python3
"""What a preflight finds: a worker that shares its core with a busy process, wrong sums, and nothing where nothing is.

usage: watch_machine.py COUNT [--alone]
  COUNT    runs of each kind
  --alone  before all that else the machine has to do (root), which makes it quiet

Each of the two workers is pinned to a core of its own; the busy process is pinned to that of worker 1 and 2 in turn.
Wrong sums are those of tests/e2e/sick_rank.cpp (DSTUNE_SICK_RANK_LIBRARY). Prints a table, and exits with 1 if
something was not found or somebody was accused.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from slow_rank import cpu_groups
from support import MPIEXEC, PROGRAM, SURVIVE, launch_environment, read_json, tiny

PATIENCE = 120  # seconds
KINDS = ("quiet", "busy core", "wrong sums")


def pinned(directory, cores):
    """A script that runs its arguments on the core of its rank; rank 0 may run on any."""
    path = directory / "rank.sh"
    path.write_text(f'''#!/bin/sh
case $OMPI_COMM_WORLD_RANK in
  1) exec taskset -c {cores[0]} "$@" ;;
  2) exec taskset -c {cores[1]} "$@" ;;
esac
exec "$@"
''', encoding="utf-8")
    path.chmod(0o755)
    return path


def check(kind, rank):
    """@returns the ranks that the preflight names"""
    cores = sorted(os.sched_getaffinity(0))[:2]
    with tempfile.TemporaryDirectory(prefix="dstune-watch-", ignore_cleanup_errors=True) as folder:
        directory = pathlib.Path(folder)
        config = directory / "config.json"
        config.write_text(json.dumps(tiny(dstune={"preflight": "only"})), encoding="utf-8")
        environment = launch_environment() | {"DSTUNE_CPU_PRODUCTS": "blas"}
        if kind == "wrong sums":
            environment |= {"LD_PRELOAD": os.environ["DSTUNE_SICK_RANK_LIBRARY"], "DSTUNE_SICK_RANK": str(rank),
                            "DSTUNE_SICKNESS": "miscounts"}
        command = [MPIEXEC, *SURVIVE, "--oversubscribe", "--bind-to", "none", "-n", "3", pinned(directory, cores),
                   PROGRAM, config]
        busy = None
        if kind == "busy core":
            busy = subprocess.Popen(["taskset", "-c", str(cores[rank - 1]), sys.executable, "-c", "while True: pass"])
        try:
            done = subprocess.run([str(word) for word in command], cwd=directory, env=environment,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
                                  check=False)
        finally:
            if busy:
                busy.kill()
                busy.wait()
        status = directory / "autotuning_results" / "latest" / "status.json"
        if not status.exists():
            sys.exit(f"a run failed:\n{done.stderr}")
        status = read_json(status)
        if status["exit_code"] == 1 and "wrong sums" in status["message"]:
            return {int(status["message"].split("rank ", 1)[1].split()[0])}
        return {int(line.split("rank ", 1)[1].split()[0]) for line in status.get("slow_workers", [])}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--alone", action="store_true")
    options = parser.parse_args()
    found, accused = collections.Counter(), collections.Counter()
    with cpu_groups(options.alone):
        for turn in range(options.count):
            rank = 1 + turn % 2
            for kind in KINDS:
                named = check(kind, rank)
                found[kind] += rank in named and kind != "quiet"
                accused[kind] += bool(named - ({rank} if kind != "quiet" else set()))
    print("| fault | runs | found | accused wrongly |\n| ----- | ---: | ----: | --------------: |")
    for kind in KINDS:
        print(f"| {kind} | {options.count} | {'' if kind == 'quiet' else found[kind]} | {accused[kind]} |")
    well = all(found[kind] == options.count for kind in KINDS[1:]) and not sum(accused.values())
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
