#!/usr/bin/env python3
"""Searches of a space on the simulated machine: how they end, and what is said of them."""

import unittest

from small_space import RANKS, space_config
from support import ProgramTest, events, read_json


class SearchTest(ProgramTest):
    def run_whole(self, config):
        self.tune_well(RANKS, self.write_config(config), "--overwrite")

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
        self.run_whole(space_config("gridsearch", time_budget="1s") |
                       {"train_micro_batch_size_per_gpu": list(range(1, 40))})

        self.assertIsNotNone(read_json(self.results / "status.json")["best"])
        self.assertTrue(events(self.results, "finished"))

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
