#!/usr/bin/env python3
"""A worker at a quarter of a core is named, in groups of one and two, on one and three hosts; and nobody where none is.

usage: slow_rank.py COUNT [--groups 1,2] [--hosts 1,3] [--alone]
  COUNT    runs of each kind with a slow worker, and as many without
  --alone  before all that else the machine has to do (root), which makes it quiet

The quarter is a cgroup's limit (v1 or v2) where this is root and may make one, else the worker is stopped for 75 of
100 ms. Three hosts are namespaces (root). Exits with 1 if a slow worker was not named, or any other was.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import fake_hosts
from processes import MARK, Processes, new_mark
from support import MPIEXEC, PROGRAM, SURVIVE, events, launch_environment, read_json, tiny

PERIOD = 100_000  # us
PATIENCE = 300  # seconds
WORKERS = {1: 2, 3: 3}  # by hosts


class CpuGroup:
    """A cgroup that is served before others, up to `share` of a core; who writes itself into `procs` is in it."""

    def __init__(self, name, share=None):
        root = pathlib.Path("/sys/fs/cgroup")
        is_v2 = (root / "cgroup.controllers").exists()
        self.folder = (root if is_v2 else root / "cpu") / f"dstune-{name}-{os.getpid()}"
        self.folder.mkdir()
        quota = int(PERIOD * share) if share else None
        if is_v2:
            limits = {"cpu.weight": 10_000} | ({"cpu.max": f"{quota} {PERIOD}"} if share else {})
        else:
            limits = {"cpu.shares": 262_144} | ({"cpu.cfs_quota_us": quota} if share else {})
        try:
            for file, value in limits.items():
                (self.folder / file).write_text(str(value), encoding="ascii")
        except OSError:
            self.close()
            raise
        self.procs = self.folder / "cgroup.procs"

    def close(self):
        self.folder.rmdir()


@contextlib.contextmanager
def cpu_groups(alone):
    """The group of a slow worker, or none; with `alone` this process and its children are in one, too."""
    with contextlib.ExitStack() as groups:
        try:
            slow = groups.enter_context(contextlib.closing(CpuGroup("slow", 0.25)))
        except OSError as reason:
            print(f"no cgroup ({reason}): the slow worker is stopped again and again")
            yield None
            return
        if alone:
            own = groups.enter_context(contextlib.closing(CpuGroup("alone")))
            groups.callback((own.folder.parent / "cgroup.procs").write_text, str(os.getpid()), encoding="ascii")
            own.procs.write_text(str(os.getpid()), encoding="ascii")
        yield slow


class Stopping(threading.Thread):
    """Stops the worker `rank` of the run `mark` for three quarters of the time, until it is gone."""

    def __init__(self, mark, rank):
        super().__init__(daemon=True)
        self.mark, self.rank = mark, rank
        self.over = threading.Event()

    def run(self):
        pids = []
        while not pids and not self.over.wait(0.05):
            pids = Processes(self.mark).ranks().get(self.rank, [])
        try:
            while not self.over.is_set():
                for stop, seconds in ((signal.SIGSTOP, 0.75), (signal.SIGCONT, 0.25)):
                    os.kill(pids[0], stop)
                    time.sleep(seconds * PERIOD / 1e6)
        except ProcessLookupError:
            pass


def config_of(group):
    return tiny(train_micro_batch_size_per_gpu=[1, 2], zero_optimization={"stage": [0, 1]},
                dstune={"ranks_per_experiment": group, "measure_steps": 20})


def wrapper(directory, slow, limit):
    """A script that runs its arguments, as a member of the limit's group in the rank `slow`."""
    path = directory / "rank.sh"
    join = f'[ "$OMPI_COMM_WORLD_RANK" != "{slow}" ] || echo $$ >{limit.procs}\n' if limit and slow else ""
    path.write_text(f'#!/bin/sh\n{join}exec "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path


def command_of(hosts, options, script, config):
    """mpirun with a worker per host, or two on this one, and rank 0."""
    where = ["--oversubscribe"]
    if hosts:
        slots = ",".join(f"{name}:{2 if i == 0 else 1}" for i, name in enumerate(hosts.names))
        where = ["--mca", "plm_rsh_agent", hosts.agent, "-host", slots]
    workers = WORKERS[len(hosts.names) if hosts else 1]
    run = [MPIEXEC, *SURVIVE, *where, "--bind-to", "none", "-n", workers + 1, script, PROGRAM, config]
    inside = hosts.enter(hosts.names[0], config.parent) if hosts else []
    temporary = ["env", f"TMPDIR={hosts.temporary(hosts.names[0])}"] if hosts else []
    return [str(word) for word in (*inside, *temporary, *run)]


def tune(hosts, group, slow, limit, options):
    """@returns the ranks that status.json names as slow, and how many records the slow one had a part in"""
    with tempfile.TemporaryDirectory(prefix="dstune-slow-", ignore_cleanup_errors=True) as folder:
        directory = pathlib.Path(folder)
        config = directory / "config.json"
        config.write_text(json.dumps(config_of(group)), encoding="utf-8")
        mark = new_mark()
        stopping = Stopping(mark, slow) if slow and not limit else None
        if stopping:
            stopping.start()
        done = subprocess.run(command_of(hosts, options, wrapper(directory, slow, limit), config), cwd=directory,
                              env=launch_environment() | {MARK: mark}, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PATIENCE, check=False)
        if stopping:
            stopping.over.set()
        results = directory / "autotuning_results" / "latest"
        status = read_json(results / "status.json") if (results / "status.json").exists() else {}
        if status.get("exit_code") != 0:
            sys.exit(f"a run failed:\n{done.stderr}")
        named = {int(line.split()[1]) for line in status.get("slow_workers", [])}
        records = [line for line in events(results, "finished") if not line["experiment"].get("measures_machine")]
        if options.verbose:
            print(done.stderr)
        return named, sum(slow in line["ranks"] for line in records), len(records)


def measure(hosts, group, limit, options):
    """@returns whether all went as it should"""
    count = collections.Counter()
    parts = [0, 0]
    for turn in range(options.count):
        slow = 1 + turn % 2
        named, with_it, records = tune(hosts, group, slow, limit, options)
        count["named"] += slow in named
        count["falsely named"] += bool(named - {slow})
        parts = [parts[0] + with_it, parts[1] + records]
        named, _, _ = tune(hosts, group, 0, limit, options)
        count["named on a quiet machine"] += bool(named)
    print(f"groups of {group}, {len(hosts.names) if hosts else 1} hosts: named {count['named']} of {options.count}, "
          f"another in {count['falsely named']}, without a slow one in {count['named on a quiet machine']}; the slow one "
          f"had a part in {parts[0]} of {parts[1]} records", flush=True)
    return count["named"] == options.count and not count["falsely named"] and not count["named on a quiet machine"]


def numbers(text):
    return [int(number) for number in text.split(",")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--groups", type=numbers, default=[1, 2])
    parser.add_argument("--hosts", type=numbers, default=[1, 3])
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    root = tempfile.mkdtemp(prefix="dstune-slow-hosts-")
    well = True
    with cpu_groups(options.alone) as limit:
        for count in options.hosts:
            missing = fake_hosts.missing() if count > 1 else ""
            if missing:
                print(f"{count} hosts are left out: {missing}")
                continue
            with contextlib.closing(fake_hosts.start(root, count)) if count > 1 else contextlib.nullcontext() as hosts:
                for group in options.groups:
                    well = measure(hosts, group, limit, options) and well
    shutil.rmtree(root, ignore_errors=True)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
