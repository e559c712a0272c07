"""dstune.lengths: a list is an axis with its traces everywhere; lengths that vary have mean and P95."""

import csv
import unittest

from support import ProgramTest, outcomes, read_json

ONE_STAGE = {"zero_optimization": {"stage": 0}, "train_micro_batch_size_per_gpu": [2]}


class Lengths(ProgramTest):
    def lengths(self, lengths, **dstune):
        config = self.tiny(dstune={"lengths": lengths, "backend": "sim", "tuner": "gridsearch", **dstune})
        del config["dstune"]["sequence_length"]
        config.update(ONE_STAGE, autotuning={"enabled": True,
                                             "arg_mappings": {"sequence_length": "--max_length"}})
        return self.write_config(config)

    def test_a_list_is_tuned_over_and_the_optimum_says_its_length(self):
        config = self.lengths([16, 32])

        self.tune_well(3, config, "--", "train.py", "--max_length", "8")

        self.assertLessEqual({"z0_sl16_tmbspg2_gas1", "z0_sl32_tmbspg2_gas1"}, set(outcomes(self.results)))
        self.assertNotIn("dstune", read_json(self.results / "ds_config_optimal.json"))
        summary = (self.results / "summary.txt").read_text(encoding="utf-8")
        self.assertRegex(summary, "best_metric_val is tokens_per_s")
        self.assertRegex(summary, r"gradient accumulation steps 1, sequence length (16|32)\)")
        command = (self.results / "cmd_optimal.txt").read_text(encoding="utf-8")
        self.assertRegex(command, "--max_length (16|32)")

    def test_lengths_that_vary_have_mean_and_p95(self):
        config = self.lengths({"distribution": "lognormal", "mean": 20, "sigma": 0.8, "max": 64})

        self.tune_well(3, config)

        measured = outcomes(self.results)["z0_gas1_tmbspg2"]
        steps = measured["varying_steps"]
        self.assertGreaterEqual(measured["steps"], 8)
        self.assertLess(steps["mean_real_tokens"], steps["mean_padded_tokens"])
        self.assertLess(steps["mean_step_time_s"], steps["p95_step_time_s"])
        self.assertAlmostEqual(measured["tokens_per_s"] * steps["mean_step_time_s"],
                               steps["mean_real_tokens"])
        self.assertRegex((self.results / "summary.txt").read_text(encoding="utf-8"),
                         "Lengths: lognormal, mean 20.*, 2 to 64, padded to the longest.\nOf .* P95 ")
        with open(self.results / "results.csv", encoding="utf-8", newline="") as file:
            rows = {row["name"]: row for row in csv.DictReader(file)}
        self.assertEqual(float(rows["z0_gas1_tmbspg2"]["p95_step_time_s"]), steps["p95_step_time_s"])


if __name__ == "__main__":
    unittest.main()
