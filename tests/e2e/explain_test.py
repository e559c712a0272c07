"""--explain: an experiment of a finished run, and one that is only planned."""

import json
import unittest

from support import ProgramTest, PROGRAM, example, outcomes

TIMES = ("exposed_s", "overlapped_s", "time_s")


def without_times(ledger):
    for lines in ledger.values():
        for line in lines if isinstance(lines, list) else []:
            for key in TIMES:
                line.pop(key, None)
    return ledger


class Explain(ProgramTest):
    def explain(self, *arguments):
        return self.run_command([PROGRAM, "--explain", *map(str, arguments)])

    def test_accounts_for_an_experiment_and_names_the_difference_to_the_best(self):
        self.tune_well(3, self.quick_tiny())
        results = outcomes(self.results)
        worst = min((name for name in results if name.startswith("z3")),
                    key=lambda name: results[name]["samples_per_s"])

        finished = self.explain(worst, example("tiny"))

        self.assertEqual(finished.returncode, 0, finished.stderr)
        for expected in (f"{worst}: ", "| forward ", "| parameters ", "| update ",
                         "peak live elements", "Prediction: predicted ", "Against the best", "| whole step (ms) "):
            self.assertIn(expected, finished.stdout)

        (self.results / "status.json").write_text("{", encoding="utf-8")  # then the best so far is the best
        self.assertEqual(self.explain(worst, example("tiny")).returncode, 0)

    def test_best_is_what_the_run_chose_by_whatever_metric(self):
        config = self.write_config(self.tiny(autotuning={"metric": "latency"}))
        self.tune_well(3, config)
        best = json.loads((self.results / "status.json").read_text(encoding="utf-8"))["best"]
        other = next(name for name in outcomes(self.results) if name != best)

        self.assertIn(f"Against the best, {best}: ", self.explain(other, config).stdout)
        self.assertNotIn("Against the best", self.explain(best, config).stdout)

    def test_planned_ledger_is_the_measured_one(self):
        self.tune_well(3, self.quick_tiny())

        for name, outcome in outcomes(self.results).items():
            planned = self.explain(name, "--plan", "--world-size", 2, "--format", "json",
                                   example("tiny"))
            self.assertEqual(planned.returncode, 0, planned.stderr)
            self.assertEqual(without_times(json.loads(planned.stdout)["ledger"]),
                             without_times(outcome["ledger"]), name)

    def test_plan_predicts_what_a_run_before_it_did_not_measure(self):
        self.tune_well(3, self.quick_tiny())
        path = self.write_config(self.tiny(zero_optimization={"stage": 3, "stage3_prefetch_bucket_size": 20_000}))

        planned = self.run_command([PROGRAM, "--plan", "--world-size", "2", "--format", "json", str(path)])
        self.assertEqual(planned.returncode, 0, planned.stderr)
        experiment = json.loads(planned.stdout)["experiments"][0]
        low, high = experiment["predicted_interval_90_s"]
        self.assertLess(low, experiment["predicted_step_time_s"])
        self.assertLess(experiment["predicted_step_time_s"], high)
        explained = self.explain(experiment["name"], "--plan", "--world-size", 2, path)
        self.assertRegex(explained.stdout, r"Prediction: .* ms, with 90 % between .* and .* measurements in ")

    def test_plan_explains_without_times_and_writes_nothing(self):
        finished = self.explain("z3_gas1_tmbspg4", "--plan", "--world-size", 2, example("tiny"))

        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertIn("computed without running", finished.stdout)
        self.assertNotIn("(ms)", finished.stdout)
        self.assertEqual(self.listing(), [])

    def test_stage_that_cannot_run_says_why(self):
        config = self.tiny(zero_optimization={"stage": [0, 3], "enable_sanity_checks": True})

        finished = self.explain("z3_gas1_tmbspg4", "--plan", "--world-size", 2,
                                self.write_config(config))

        self.assertEqual(finished.returncode, 2)
        self.assertIn("stage 3 cannot run: not modelled: zero_optimization.enable_sanity_checks",
                      finished.stderr)

    def test_unknown_name_is_wrong_input_and_lists_the_known(self):
        finished = self.explain("z3_gas1_tmbspg5", "--plan", "--world-size", 2, example("tiny"))

        self.assertEqual(finished.returncode, 2)
        self.assertIn("z3_gas1_tmbspg4", finished.stderr)

    def test_a_name_that_was_cut_short_is_completed(self):
        finished = self.explain("z1_gas1", "--plan", "--world-size", 2, example("tiny"))

        self.assertEqual(finished.returncode, 2)
        self.assertIn('did you mean "z1_gas1_tmbspg4"?', finished.stderr)

    def test_no_results_is_wrong_input(self):
        finished = self.explain("z3_gas1_tmbspg4", example("tiny"))

        self.assertEqual(finished.returncode, 2, finished.stderr)
        self.assertIn("autotuning_results", finished.stderr)


if __name__ == "__main__":
    unittest.main()
