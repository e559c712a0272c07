#!/usr/bin/env python3
"""Kills mpirun, rank 0 or all workers at random moments and resumes: the records must be those of an undisturbed run, none
repeated, none lost.

usage: kill_resume.py COUNT [SEED]    (environment: DSTUNE_PROGRAM, DSTUNE_SOURCE_DIR)
"""

import collections
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from support import events, journal, launch_environment, mpi_command, names, ranks_of, read_log, searched, tiny

RANKS = 3
PATIENCE = 120  # seconds until a run that neither ends nor fails is a deadlock


def start(directory, *options):
    with open(directory / "stderr.log", "ab") as log:
        config = directory / "quick_tiny.json"
        config.write_text(json.dumps(tiny()), encoding="utf-8")
        return subprocess.Popen(mpi_command(RANKS, config, *options), cwd=directory,
                                env=launch_environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=log)


def identity_of(line):
    return line["experiment"]["name"], json.dumps(line["experiment"]["ds_config"], sort_keys=True)


def undisturbed(directory):
    """The records of a whole run, and how long it takes."""
    began = time.monotonic()
    code = start(directory).wait(PATIENCE)
    duration = time.monotonic() - began
    if code != 0:
        sys.exit(f"the undisturbed run failed ({code}):\n" + log_of(directory))
    return {identity_of(line) for line in searched(directory / "autotuning_results")}, duration


def log_of(directory):
    return read_log(directory / "stderr.log")


def faults_of(results, expected, done_before):
    finished = searched(results)
    counts = collections.Counter(identity_of(line) for line in finished)
    faults = [f"{name} was measured {count} times"
              for (name, _), count in counts.items() if count > 1]
    faults += [f"{name} was lost" for name, _ in expected - set(counts)]
    faults += [f"{name} is not of the undisturbed run" for name, _ in set(counts) - expected]
    last_run = max(i for i, line in enumerate(journal(results)) if line["type"] == "run")
    restarted = set(names(line for line in journal(results)[last_run:] if line["type"] == "started"))
    faults += [f"{name} was started again" for name in restarted & done_before]
    return faults


def kill(run, whom):
    """kill -9, of what there is of it at this moment"""
    ranks = ranks_of(run.pid)
    victims = {"mpirun": [run.pid],
               "rank 0": [pid for rank, pid in ranks.items() if rank == 0],
               "all workers": [pid for rank, pid in ranks.items() if rank > 0]}[whom]
    for pid in victims or [run.pid]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def kill_and_resume(directory, expected, delay, whom):
    """@returns what is wrong, and how many records the killed run had"""
    results = directory / "autotuning_results"
    victim = start(directory)
    time.sleep(delay)
    kill(victim, whom)
    victim.wait(PATIENCE)
    has_journal = (results / "journal.jsonl").exists()
    done_before = set(names(events(results, "finished"))) if has_journal else set()
    done = len(done_before & {name for name, _ in expected})
    code = start(directory, "--resume").wait(PATIENCE)
    if code != 0:
        return [f"the resumed run failed ({code})"], done
    return faults_of(results, expected, done_before), done


def main():
    count = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    moments = random.Random(seed)
    root = pathlib.Path(tempfile.mkdtemp(prefix="dstune-kill-"))
    reference = root / "undisturbed"
    reference.mkdir()
    expected, duration = undisturbed(reference)
    failures = 0
    for attempt in range(count):
        directory = root / str(attempt)
        directory.mkdir()
        delay = moments.uniform(0, duration)
        whom = moments.choice(["mpirun", "rank 0", "all workers"])
        faults, done = kill_and_resume(directory, expected, delay, whom)
        verdict = "; ".join(faults) or "ok"
        print(f"{attempt + 1}/{count}: {whom} killed after {delay:.2f} s with {done} of {len(expected)} "
              f"records: {verdict}", flush=True)
        if faults:
            failures += 1
            print(log_of(directory), flush=True)
        shutil.rmtree(directory, ignore_errors=True)
    shutil.rmtree(root, ignore_errors=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
