#!/usr/bin/env python3
"""Every tuner over a space, on the simulated machine: whole, killed and resumed, and within a time budget.

usage: search_test.py                the tests
       search_test.py --matrix N     every tuner with every victim, killed N times at random moments of a run each
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

from support import ProgramTest, events, launch_environment, mpi_command, ranks_of, read_json

RANKS = 3
WAYS = [(None, True), ("fast", True), ("gridsearch", True), ("random", True), ("model_based", True), ("guided", False),
        ("gridsearch", False), ("random", False), ("model_based", False)]
VICTIMS = ["mpirun", 0, 2]  # or the rank of the world


def space_config(tuner, fast=True, **dstune):
    return {
        "train_micro_batch_size_per_gpu": [1, 2],
        "zero_optimization": {"stage": [1, 2, 3], "reduce_bucket_size": 1_000_000},
        "autotuning": {"enabled": True, "fast": fast, "tuner_num_trials": 20, "tuner_early_stopping": 8},
        "dstune": {
            "model": {"model_type": "gpt2", "vocab_size": 512, "n_positions": 64, "n_embd": 64, "n_layer": 3,
                      "n_head": 2},
            "sequence_length": 32, "memory_limit": "1GiB", "backend": "sim", **({"tuner": tuner} if tuner else {}),
            "space": {"/zero_optimization/reduce_bucket_size": ["h*h", "4*h*h", 1_000_000],
                      "/zero_optimization/overlap_comm": [True, False]},
            **dstune,
        },
    }


def records_of(results):
    """name, configuration and time of all that was measured, in order; a lost worker's is run again"""
    return [(line["experiment"]["name"], json.dumps(line["experiment"]["ds_config"], sort_keys=True),
             line["outcome"].get("step_time_s", {}).get("median"))
            for line in events(results, "finished") if "worker_lost" not in json.dumps(line["outcome"])]


class SearchTest(ProgramTest):
    def run_whole(self, config):
        self.tune_well(RANKS, self.write_config(config), "--overwrite")
        return self.outcome()

    def outcome(self):
        return records_of(self.results), read_json(self.results / "status.json")["best"]

    def kill_and_resume(self, kills):
        """`kills`: for each run after the other its victim, and how many records there are when SIGKILL comes."""
        shutil.rmtree(self.results)
        for victim, experiments in kills:
            self.kill(victim, experiments)
        self.tune_well(RANKS, self.directory / "config.json", "--resume")
        return self.outcome()

    def kill(self, victim, experiments):
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
        run.wait()

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

    def test_the_summary_says_how_the_search_ended_and_was_confirmed(self):
        self.run_whole(space_config("guided"))

        summary = (self.results / "summary.txt").read_text(encoding="utf-8")

        self.assertRegex(summary, r"Note: guided tried \d+ of \d+ configurations")
        self.assertIn("with a chance of", summary)
        self.assertRegex(summary, r"was confirmed by \d+ repetitions? against")

    def test_the_summary_shows_the_front_of_speed_and_memory(self):
        config = space_config("gridsearch")
        config["autotuning"]["tuner_early_stopping"] = 100  # so that both micro-batches are among them

        self.run_whole(config)

        summary = (self.results / "summary.txt").read_text(encoding="utf-8")
        self.assertIn("pareto_exp_name", summary)

    def test_a_time_budget_ends_the_run_with_the_best_so_far(self):
        records, best = self.run_whole(space_config("gridsearch", time_budget="1s") |
                                        {"train_micro_batch_size_per_gpu": list(range(1, 40))})

        self.assertIsNotNone(best)
        self.assertTrue(records)

    def test_a_fixed_batch_is_kept(self):
        config = space_config("guided", objective={"fixed_batch": True, "memory_headroom": "100MiB"})
        config |= {"train_batch_size": 16, "train_micro_batch_size_per_gpu": "auto"}
        self.run_whole(config)

        for line in events(self.results, "finished"):
            if line["experiment"]["name"] != "machine":
                self.assertEqual(line["experiment"]["ds_config"]["train_batch_size"], 16)
        self.assertEqual(read_json(self.results / "ds_config_optimal.json")["train_batch_size"], 16)

    def test_faults_of_the_keys_are_said(self):
        config = space_config("guided", time_budget="soon", stop_at_chance=7)

        done = self.tune(RANKS, self.write_config(config))

        self.assertEqual(done.returncode, 2)
        self.assertIn("/dstune/time_budget", done.stderr)
        self.assertIn("/dstune/stop_at_chance", done.stderr)


class Matrix(SearchTest):
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
                    kills[same] += len(before)
                    print(f"{tuner}, fast {fast}: {victim} killed after {before} of {len(expected[0])} records: "
                          f"{'same' if same else 'OTHER'} records and optimum", flush=True)
        print(f"{kills[True] + kills[False]} kills, {kills[False]} of them in runs that ended otherwise")
        self.assertEqual(kills[False], 0)


def load_tests(loader, tests, pattern):
    """All but the matrix."""
    return loader.loadTestsFromTestCase(SearchTest)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--matrix"]:
        Matrix.count = int(sys.argv[2])
        sys.exit(not unittest.TextTestRunner().run(Matrix()).wasSuccessful())
    unittest.main()
