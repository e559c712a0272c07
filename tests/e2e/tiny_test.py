"""examples/tiny.json from its configuration to its optimum, on CPU ranks."""

import csv
import json
import unittest

from support import ProgramTest, example, outcomes, read_json, unwrapped

# The micro-batches of the list fill the same batch: 4 samples per rank and optimizer step.
EXPERIMENTS = {f"z{stage}_gas{4 // size}_tmbspg{size}" for stage in range(4) for size in (1, 2, 4)}


class TinyExample(ProgramTest):
    def test_measures_every_stage_and_micro_batch_and_writes_the_best(self):
        finished = self.tune_well(3, example("tiny"))

        results = outcomes(self.results)
        self.assertEqual(set(results), EXPERIMENTS)
        self.assertEqual({outcome["status"] for outcome in results.values()}, {"measured"})
        self.assert_files()
        self.assert_optimum(results)
        rows = [line for line in finished.stdout.splitlines() if line.startswith("|")]
        self.assertGreaterEqual(len(rows), 3 + len(EXPERIMENTS), finished.stdout)
        self.assertNotIn("|", finished.stderr)
        self.assert_preset(finished)
        for name in EXPERIMENTS:
            self.assertEqual(finished.stderr.count(f"{name} ->"), 1, finished.stderr)

    def assert_preset(self, finished):
        """The CPU backend's, in force without being asked for: said in the log, under the table and
        in the summary."""
        said = "host overhead: preset cpu-gloo, not measured on this machine"
        self.assertIn("host overhead: preset cpu-gloo", finished.stderr)
        cost = "its picks were 10 and 18 % slower in DeepSpeed"
        summary = (self.results / "summary.txt").read_text(encoding="utf-8")
        self.assertIn(f"Note: {said}: {cost}", unwrapped(finished.stdout))
        self.assertIn(f"Note: {said}: {cost}", summary)
        self.assertIn(f" It was chosen by preset cpu-gloo: {cost}", summary)
        self.assertIn(f"it was chosen by preset cpu-gloo: {cost}", finished.stderr)

    def assert_files(self):
        files = set(self.listing())
        expected = {f"autotuning_results/{name}" for name in
                    ("journal.jsonl", "results.csv", "status.json", "summary.txt",
                     "ds_config_optimal.json", "profile_model_info/model_info.json")}
        for name in EXPERIMENTS:
            expected |= {f"autotuning_results/{name}/{file}" for file in
                         ("ds_config.json", "exp.json", "metrics.json")}
            expected.add(f"autotuning_results/exps/{name}.json")
        self.assertEqual(expected - files, set())
        self.assertNotIn("autotuning_results/cmd_optimal.txt", files)

    def assert_optimum(self, results):
        optimum = read_json(self.results / "ds_config_optimal.json")
        stage = optimum["zero_optimization"]["stage"]
        size = optimum["train_micro_batch_size_per_gpu"]
        best = max(EXPERIMENTS, key=lambda name: results[name]["samples_per_s"])
        steps = optimum["gradient_accumulation_steps"]
        chosen = f"z{stage}_gas{steps}_tmbspg{size}"
        ratio = results[chosen]["samples_per_s"] / results[best]["samples_per_s"]
        self.assertGreater(ratio, 0.8)
        self.assertEqual(optimum["train_batch_size"], 2 * size * steps)
        self.assertEqual(optimum["zero_optimization"]["reduce_bucket_size"], 100000)
        self.assertNotIn("autotuning", optimum)
        self.assertNotIn("dstune", optimum)
        self.assertEqual(read_json(self.results / "status.json")["exit_code"], 0)

    def test_stages_start_alike_and_learn(self):
        self.tune_well(3, self.quick_tiny())

        results = outcomes(self.results)
        losses = [results[name]["first_loss"] for name in EXPERIMENTS]
        self.assertLess(max(losses) - min(losses), 1e-5 * losses[0], losses)
        for name in EXPERIMENTS:
            self.assertNotEqual(results[name]["last_loss"], results[name]["first_loss"], name)

    def test_table_csv_and_json_say_the_same(self):
        finished = self.tune_well(3, self.quick_tiny(), "--format", "json")

        table = json.loads(finished.stdout)
        with open(self.results / "results.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["name"] for row in table}, EXPERIMENTS)
        self.assertEqual({row["name"] for row in rows}, EXPERIMENTS)
        self.assertEqual(set(outcomes(self.results)), {row["name"] for row in rows})

    def test_training_command_gets_the_optimum(self):
        config = self.write_config(self.tiny(autotuning={
            "arg_mappings": {"train_micro_batch_size_per_gpu": "--batch"}}))

        self.tune_well(3, config, "--", "deepspeed", "train.py", "--batch", "99",
                       "--deepspeed_config", "config.json")

        command = (self.results / "cmd_optimal.txt").read_text(encoding="utf-8").split()
        optimum = read_json(self.results / "ds_config_optimal.json")
        self.assertEqual(command[command.index("--batch") + 1],
                         str(optimum["train_micro_batch_size_per_gpu"]))
        self.assertTrue(command[command.index("--deepspeed_config") + 1]
                        .endswith("ds_config_optimal.json"))


if __name__ == "__main__":
    unittest.main()
