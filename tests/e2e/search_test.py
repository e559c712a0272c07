#!/usr/bin/env python3
"""Every tuner over a space, on the simulated machine: whole, killed and resumed, and within a time budget."""

import os
import signal
import subprocess
import time
import unittest

from support import ProgramTest, events, launch_environment, mpi_command, names, read_json

RANKS = 3
WAYS = [("gridsearch", True), ("random", True), ("model_based", True), ("guided", True), ("gridsearch", False),
        ("guided", False)]


def space_config(tuner, fast=True, **dstune):
    return {
        "train_micro_batch_size_per_gpu": [1, 2],
        "zero_optimization": {"stage": [1, 2, 3], "reduce_bucket_size": 1_000_000},
        "autotuning": {"enabled": True, "fast": fast, "tuner_num_trials": 20, "tuner_early_stopping": 8},
        "dstune": {
            "model": {"model_type": "gpt2", "vocab_size": 512, "n_positions": 64, "n_embd": 64, "n_layer": 3,
                      "n_head": 2},
            "sequence_length": 32, "memory_limit": "1GiB", "backend": "sim", "tuner": tuner,
            "space": {"/zero_optimization/reduce_bucket_size": ["h*h", "4*h*h", 1_000_000],
                      "/zero_optimization/overlap_comm": [True, False]},
            **dstune,
        },
    }


class SearchTest(ProgramTest):
    def run_whole(self, config):
        self.tune_well(RANKS, self.write_config(config), "--overwrite")
        return self.outcome()

    def outcome(self):
        finished = names(events(self.results, "finished"))
        return finished, read_json(self.results / "status.json")["best"]

    def kill_after(self, path, experiments):
        """SIGKILL to mpirun once so many experiments are in the journal, or the run is over."""
        run = subprocess.Popen(mpi_command(RANKS, path, "--overwrite"), cwd=self.directory, env=launch_environment(),
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        journal = self.results / "journal.jsonl"
        while run.poll() is None:
            if journal.exists() and journal.read_text(encoding="utf-8").count('"type":"finished"') >= experiments:
                os.kill(run.pid, signal.SIGKILL)
                break
            time.sleep(0.002)
        run.wait()

    def test_killed_and_resumed_every_tuner_has_the_same_records_and_optimum(self):
        for tuner, fast in WAYS:
            with self.subTest(tuner=tuner, fast=fast):
                config = space_config(tuner, fast)
                expected, best = self.run_whole(config)
                self.assertGreater(len(expected), 5)
                for experiments in (1, len(expected) // 2, len(expected) - 2):
                    self.kill_after(self.write_config(config), experiments)
                    self.tune_well(RANKS, self.write_config(config), "--resume")
                    self.assertEqual(self.outcome(), (expected, best))

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
        finished, best = self.run_whole(space_config("gridsearch", time_budget="1s") |
                                        {"train_micro_batch_size_per_gpu": list(range(1, 40))})

        self.assertIsNotNone(best)
        self.assertTrue(finished)

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


if __name__ == "__main__":
    unittest.main()
