#!/usr/bin/env python3
"""Kills mpirun, one rank, all of them or a host, at the start and in the run: within 25 s everything is gone or the
run goes on; then it ends well, resumed by hand if it has to be, with the records of an undisturbed run, none repeated,
none lost.

usage: kill_anything.py COUNT [--way tune|mpirun|sbatch|hosts]... [--seed N] [--jobs N]
       (environment: DSTUNE_PROGRAM, DSTUNE_SOURCE_DIR)
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

import fake_hosts
import small_slurm
from processes import kill
from support import read_log, searched
from ways import Hosts, Mpirun, Slurm, Tune

LIMIT = 25  # seconds until everything is gone or goes on
PATIENCE = 300  # seconds until a run that neither ends nor fails is a deadlock
START = 0.3  # seconds after a process appears, in which MPI_Init runs

CONFIG = {
    "train_micro_batch_size_per_gpu": [1, 2],
    "zero_optimization": {"stage": [0, 1, 3], "reduce_bucket_size": 1e5},
    "autotuning": {"enabled": True},
    "dstune": {"tuner": "fast",  # every point, so that all runs have the same records
               "model": {"model_type": "gpt2", "vocab_size": 2048, "n_positions": 64, "n_embd": 64, "n_layer": 2,
                         "n_head": 2},
               "sequence_length": 32, "memory_limit": "256MiB", "backend": "cpu", "host_overhead": "none",
               "warmup_steps": 1, "measure_steps": 10},
}


class Case:
    """Who is killed, when, and whether there is a spare worker."""

    def __init__(self, number, moments, way):
        self.spare = moments.random() < 0.5
        self.ranks = 4 if self.spare else 3
        victims = ["mpirun", *[f"rank {i}" for i in range(self.ranks)], "all ranks", *[f"host {host}" for host in way.hosts]]
        self.victim = moments.choice(victims)
        self.at_start = number % 2 == 0
        self.fraction = moments.random()

    def __str__(self):
        when = "at the start" if self.at_start else "in the run"
        return f"{self.victim} of {self.ranks} killed {when}{' (a spare)' if self.spare else ''}"

    def victims(self, processes):
        if self.victim == "mpirun":
            return processes.named("mpirun", "orterun")
        ranks = processes.ranks()
        if self.victim == "all ranks":
            complete = len(ranks) == self.ranks
            return [pid for pids in ranks.values() for pid in pids] if complete or self.at_start else []
        if self.victim.startswith("host "):
            return processes.found if ranks else []
        return list(ranks.get(int(self.victim.split()[1]), []))


def identity_of(line):
    return line["experiment"]["name"], json.dumps(line["experiment"]["ds_config"], sort_keys=True)


def measured(results):
    """Records that need not be repeated; a journal that is not there yet has none."""
    if not (results / "journal.jsonl").exists():
        return []
    return [identity_of(line) for line in searched(results)
            if "worker_lost" not in json.dumps(line["outcome"])]


def wait_until(condition, limit):
    """@returns seconds waited, or None"""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > limit:
            return None
        time.sleep(0.02)
    return time.monotonic() - began


class Trial:
    def __init__(self, way, case, directory, reference):
        self.way = way
        self.case = case
        self.directory = directory
        self.results = directory / "autotuning_results" / "latest"
        self.expected, self.duration = reference
        self.config = directory / "config.json"
        self.config.write_text(json.dumps(config_of(case.spare)), encoding="utf-8")

    def start(self, *options):
        return self.way.start(self.directory, self.case.ranks, self.config, *options)

    def kill(self, run):
        """@returns False if the run was over before"""
        if not self.case.at_start:
            wait_until(lambda: measured(self.results) or run.is_over(), PATIENCE)
            time.sleep(self.case.fraction * self.duration * 0.6)
        found = []
        def appeared():
            found[:] = self.case.victims(run.processes())
            return found or run.is_over()
        wait_until(appeared, PATIENCE)
        if self.case.at_start:
            time.sleep(self.case.fraction * START)
            if self.case.victim == "all ranks":
                found[:] = self.case.victims(run.processes())
        if found and self.case.victim.startswith("host "):
            found[:] = self.way.take_down(self.case.victim.split()[1], run.processes())
        kill(found)
        return bool(found)

    def settle(self, run):
        """@returns what happened after the kill, seconds"""
        before = len(measured(self.results))
        old = set(run.processes().found)
        verdict = []
        def settled():
            if not run.processes():
                verdict[:] = ["gone"]
            elif len(measured(self.results)) > before + 1:
                verdict[:] = ["going on"]
            elif any(pid not in old for pids in run.processes().ranks().values() for pid in pids):
                verdict[:] = ["started again"]
            return verdict
        seconds = wait_until(settled, LIMIT)
        if seconds is None:
            return f"STILL THERE: {run.processes()}", LIMIT
        return verdict[0], seconds

    def run(self):
        with self.way.lock:
            return self.run_alone()

    def run_alone(self):
        run = self.start()
        try:
            if not self.kill(run):
                return "over before", 0, self.finish(run)
            verdict, seconds = self.settle(run)
            if verdict.startswith("STILL"):
                return verdict, seconds, [verdict]
            return verdict, seconds, self.finish(run)
        finally:
            self.way.bring_up()
            run.clean_up()

    def finish(self, run):
        if wait_until(run.is_over, PATIENCE) is None:
            return [f"it did not end: {run.processes()}"]
        self.code = run.exit_code()
        if wait_until(lambda: not run.processes(), LIMIT) is None:
            return [f"left behind: {run.processes()}"]
        if self.code == 0:
            return self.faults()
        self.way.bring_up()
        had_begun = any(self.results.parent.glob("config-*"))  # else there is nothing to go on with
        resumed = self.start(*(["--resume"] if had_begun else []))
        try:
            if wait_until(resumed.is_over, PATIENCE) is None:
                return [f"the resumed run did not end: {resumed.processes()}"]
            code = resumed.exit_code()
            return self.faults() if code == 0 else [f"the resumed run failed ({code}) after {self.code}"]
        finally:
            resumed.clean_up()

    def faults(self):
        counts = collections.Counter(measured(self.results))
        faults = [f"{name} was measured {count} times" for (name, _), count in counts.items() if count > 1]
        faults += [f"{name} was lost" for name, _ in self.expected - set(counts)]
        faults += [f"{name} is not of the undisturbed run" for name, _ in set(counts) - self.expected]
        leftovers = [path.name for path in self.directory.iterdir()
                     if path.name.startswith(("dstune-run.", ".dstune-run."))]
        if self.way.name == "tune.sh":
            faults += [f"{name} was left behind" for name in leftovers]
        return faults


def config_of(spare):
    config = json.loads(json.dumps(CONFIG))
    if spare:
        config["dstune"]["ranks_per_experiment"] = 2
    return config


def undisturbed(way, root, spare):
    """The records of a whole run, and how long it takes."""
    directory = root / f"undisturbed-{way.name}-{spare}"
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(config_of(spare)), encoding="utf-8")
    began = time.monotonic()
    run = way.start(directory, 4 if spare else 3, directory / "config.json")
    ended = wait_until(run.is_over, PATIENCE)
    code = run.exit_code() if ended is not None else "no end"
    if code != 0:
        run.clean_up()
        sys.exit(f"{way.name}: the undisturbed run failed ({code}):\n{log_of(directory)}")
    return set(measured(directory / "autotuning_results" / "latest")), time.monotonic() - began


def log_of(directory):
    return read_log(directory / "stderr.log")


def make_ways(names, root):
    makers = {"tune": Tune, "mpirun": Mpirun, "sbatch": lambda: Slurm(small_slurm.start(root)),
              "hosts": lambda: Hosts(fake_hosts.start(root, 3))}
    reasons = {"sbatch": small_slurm.missing(), "hosts": fake_hosts.missing()}
    for name in names:
        if reasons.get(name):
            print(f"{name}: skipped, {reasons[name]}", flush=True)
        else:
            yield makers[name]()


class Tally:
    def __init__(self):
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.slowest = collections.defaultdict(float)
        self.failures = 0

    def add(self, way, case, trial, verdict, seconds, faults):
        with self.lock:
            kind = (way.name, "at the start" if case.at_start else "in the run", verdict.split(":")[0])
            self.counts[kind] += 1
            self.slowest[kind] = max(self.slowest[kind], seconds)
            print(f"{way.name}: {case}: {verdict} after {seconds:.1f} s, exit code {getattr(trial, 'code', None)}: "
                  f"{'; '.join(faults) or 'ok'}", flush=True)
            if faults:
                self.failures += 1
                print(log_of(trial.directory), flush=True)

    def print(self):
        for kind in sorted(self.counts):
            print(f"{' | '.join(kind)} | {self.counts[kind]} | slowest {self.slowest[kind]:.1f} s")
        print(f"{sum(self.counts.values())} kills, {self.failures} failures")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--way", action="append", choices=["tune", "mpirun", "sbatch", "hosts"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    root = pathlib.Path(tempfile.mkdtemp(prefix="dstune-kill-"))
    ways = list(make_ways(options.way or ["tune", "mpirun", "sbatch", "hosts"], root))
    tally = Tally()
    try:
        references = {(way.name, spare): undisturbed(way, root, spare) for way in ways for spare in (False, True)}
        moments = random.Random(options.seed)
        cases = [(ways[i % len(ways)], Case(i // len(ways), moments, ways[i % len(ways)])) for i in range(options.count if ways else 0)]

        def attempt(number):
            way, case = cases[number]
            directory = root / str(number)
            directory.mkdir()
            trial = Trial(way, case, directory, references[way.name, case.spare])
            tally.add(way, case, trial, *trial.run())
            shutil.rmtree(directory, ignore_errors=True)

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(attempt, range(len(cases))))
        tally.print()
    finally:
        for way in ways:
            way.close()
        shutil.rmtree(root, ignore_errors=True)
    sys.exit(1 if tally.failures else 0)


if __name__ == "__main__":
    main()
