#!/usr/bin/env python3
"""Every tuner killed in each phase and resumed: the records and the optimum are those of an undisturbed run.

usage: search_kills_test.py                the test
       search_kills_test.py --matrix N     every tuner with every victim, N runs each, killed at two random moments
"""

import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

from small_space import RANKS, space_config
from support import ProgramTest, events, launch_environment, mpi_command, ranks_of, read_json

WAYS = [(None, True), ("fast", True), ("gridsearch", True), ("random", True), ("model_based", True), ("guided", False),
        ("gridsearch", False), ("random", False), ("model_based", False)]
VICTIMS = ["mpirun", 0, 2]  # or the rank of the world


def records_of(results):
    """name, configuration and time of all that was measured, in order; a lost worker's is run again"""
    return [(line["experiment"]["name"], json.dumps(line["experiment"]["ds_config"], sort_keys=True),
             line["outcome"].get("step_time_s", {}).get("median"))
            for line in events(results, "finished") if "worker_lost" not in json.dumps(line["outcome"])]


class SearchKills(ProgramTest):
    def run_whole(self, config):
        self.tune_well(RANKS, self.write_config(config), "--overwrite")
        return self.outcome()

    def outcome(self):
        return records_of(self.results), read_json(self.results / "status.json")["best"]

    def kill_and_resume(self, kills):
        """`kills`: for each run after the other its victim, and how many records there are when SIGKILL comes."""
        shutil.rmtree(self.results)
        self.ended = [self.kill(victim, experiments) for victim, experiments in kills]
        self.tune_well(RANKS, self.directory / "config.json", "--resume")
        return self.outcome()

    def kill(self, victim, experiments):
        """@returns the exit code, which is 0 where the run was over before"""
        resumed = ["--resume"] if self.results.exists() else []
        run = subprocess.Popen(mpi_command(RANKS, self.directory / "config.json", *resumed), cwd=self.directory,
                               env=launch_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        journal = self.results / "journal.jsonl"
        while run.poll() is None:
            if journal.exists() and journal.read_text(encoding="utf-8").count('"type":"finished"') >= experiments:
                os.kill(run.pid if victim == "mpirun" else ranks_of(run.pid).get(victim, run.pid), signal.SIGKILL)
                break
            time.sleep(0.002)
        return run.wait()

    def test_killed_again_and_again_every_tuner_has_the_same_records_and_optimum(self):
        """While the machine is measured, in the search, in the confirmation."""
        for number, (tuner, fast) in enumerate(WAYS):
            with self.subTest(tuner=tuner, fast=fast):
                expected = self.run_whole(space_config(tuner, fast))
                count = len(expected[0])
                self.assertGreater(count, 5)
                kills = [(VICTIMS[(number + turn) % len(VICTIMS)], experiments)
                         for turn, experiments in enumerate((0, count // 2, count - 2))]
                self.assertEqual(self.kill_and_resume(kills), expected)
                self.assertNotEqual(self.ended[0], 0)


class Matrix(SearchKills):
    """Not a test of its own: what --matrix runs."""

    def runTest(self):
        kills = collections.Counter()
        moments = random.Random(1)
        for tuner, fast in WAYS:
            expected = self.run_whole(space_config(tuner, fast))
            for victim in VICTIMS:
                for _ in range(self.count):
                    before = sorted(moments.sample(range(len(expected[0])), 2))
                    same = self.kill_and_resume([(victim, experiments) for experiments in before]) == expected
                    kills[same] += len(before) - self.ended.count(0)
                    print(f"{tuner}, fast {fast}: {victim} killed after {before} of {len(expected[0])} records: "
                          f"{'same' if same else 'OTHER'} records and optimum", flush=True)
        print(f"{kills[True] + kills[False]} kills, {kills[False]} of them in runs that ended otherwise")
        self.assertEqual(kills[False], 0)


def load_tests(loader, tests, pattern):
    """All but the matrix."""
    return loader.loadTestsFromTestCase(SearchKills)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--matrix"]:
        Matrix.count = int(sys.argv[2])
        sys.exit(not unittest.TextTestRunner().run(Matrix()).wasSuccessful())
    unittest.main()
