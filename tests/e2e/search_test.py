#!/usr/bin/env python3
"""Searches of a space on the simulated machine: how they end, and what is said of them."""

import json
import re
import unittest

from small_space import RANKS, space_config
from support import ProgramTest, events, read_json, unwrapped


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

    def test_a_batch_that_is_given_is_kept_by_every_tuner(self):
        sizes = set()
        for tuner in ["guided", "fast", "gridsearch", "random", "model_based"]:
            with self.subTest(tuner=tuner):
                config = space_config(tuner, objective={"memory_headroom": "100MiB"})
                config |= {"train_batch_size": 16, "train_micro_batch_size_per_gpu": "auto"}
                self.run_whole(config)

                for experiment in self.tried():
                    self.assertEqual(self.batch(experiment["ds_config"]), 16)
                    sizes.add(experiment["ds_config"]["train_micro_batch_size_per_gpu"])
                self.assertEqual(self.batch(read_json(self.results / "ds_config_optimal.json")), 16)
                self.assertNotIn("the batch was free", (self.results / "summary.txt").read_text(encoding="utf-8"))
        self.assertEqual(sizes, {1, 2, 4, 8})

    def tried(self):
        """The experiments that train, in the order in which they finished."""
        finished = [line["experiment"] for line in events(self.results, "finished")]
        return [each for each in finished if not each.get("measures_machine") and each["name"] != "preflight"]

    def batch(self, ds_config):
        """What DeepSpeed asserts of the three sizes on the workers, and the size."""
        total = ds_config["train_batch_size"]
        self.assertEqual(ds_config["train_micro_batch_size_per_gpu"] * ds_config["gradient_accumulation_steps"] *
                         (RANKS - 1), total)
        return total

    def test_a_free_batch_is_the_first_note(self):
        done = self.tune_well(RANKS, self.write_config(space_config("fast")), "--overwrite")

        notes = [unwrapped(note) for note in done.stdout.split("Note: ")[1:]]
        said = [note for note in notes if not note.startswith(("* is", "+- is"))]  # what the table's signs are
        self.assertRegex(said[0], r"the batch was free: the optimum trains \d+ samples a step; give train_batch_size")
        self.assertIn("the global batch is free", done.stderr)

    def test_the_users_own_configuration_is_compared_with_the_optimum(self):
        for tuner in ["guided", "fast"]:
            with self.subTest(tuner=tuner):
                config = space_config(tuner)
                config["zero_optimization"]["stage"] = 3
                config |= {"train_batch_size": 16, "train_micro_batch_size_per_gpu": 1}

                done = self.tune_well(RANKS, self.write_config(config), "--overwrite", "--format", "json")

                records = {each["name"]: each for each in json.loads(done.stdout)}
                own = self.tried()[0]["name"]
                self.assertEqual(own, "z3_gas8_tmbspg1")
                self.assertTrue(records[own]["is_baseline"])
                optimum = next(each for each in records.values() if each["optimum"])
                self.assertNotEqual(optimum["name"], own)
                self.assertGreater(optimum["speedup_over_baseline"], 1)
                self.assertIn("speedup_over_baseline_interval_percent", optimum)
                self.assertGreaterEqual(records[own]["announced"]["runs"], 2)
                self.assertGreaterEqual(optimum["announced"]["runs"], 2)
                ratio = f"{optimum['speedup_over_baseline']:.2f}"
                self.assertRegex((self.results / "summary.txt").read_text(encoding="utf-8"),
                                 rf"Note: the optimum, {re.escape(optimum['name'])}, is {ratio} \+- \d\.\d\d times your "
                                 rf"configuration, {own} \(95 %\)")

    def test_a_precision_that_would_be_a_guess_is_asked_for(self):
        config = space_config("fast")
        config["bf16"] = {"enabled": "auto"}
        path = self.write_config(config)
        config["dstune"]["backend"] = "cpu"
        on_cpu = self.write_config(config, "cpu.json")

        simulated = self.tune_well(RANKS, path, "--overwrite")
        asked = self.tune(RANKS, on_cpu, "--overwrite")

        self.assertRegex(simulated.stderr, r"^dstune-mpi: tuning .*\n  in bf16, assumed since no precision is set")
        self.assertIn("Note: tuned in bf16, assumed since", (self.results / "summary.txt").read_text(encoding="utf-8"))
        self.assertEqual(read_json(self.results / "ds_config_optimal.json")["bf16"]["enabled"], True)
        self.assertEqual(asked.returncode, 2)
        self.assertIn("give --precision bf16 if you train with --bf16", asked.stderr)
        self.tune_well(RANKS, on_cpu, "--overwrite", "--precision", "fp32")

    def test_faults_of_the_keys_are_said(self):
        config = space_config("guided", time_budget="soon", stop_at_chance=7)

        done = self.tune(RANKS, self.write_config(config))

        self.assertEqual(done.returncode, 2)
        self.assertIn("/dstune/time_budget", done.stderr)
        self.assertIn("/dstune/stop_at_chance", done.stderr)


if __name__ == "__main__":
    unittest.main()
