"""examples/sim.json: virtual time, so every run gives the same numbers."""

import unittest

from support import ProgramTest, example, outcomes, read_json

TIMED_BY_THE_HOST = ("setup_time_s",)


class SimExample(ProgramTest):
    def comparable(self):
        results = outcomes(self.results)
        for outcome in results.values():
            for key in TIMED_BY_THE_HOST:
                outcome.pop(key, None)
        return results

    def test_two_runs_give_the_same_results_and_optimum(self):
        self.tune_well(3, example("sim"))
        first = self.comparable()
        first_optimum = read_json(self.results / "ds_config_optimal.json")

        self.tune_well(3, example("sim"), "--overwrite")

        self.assertEqual(self.comparable(), first)
        self.assertEqual(read_json(self.results / "ds_config_optimal.json"), first_optimum)
        self.assertEqual(len(first), 12)

    def test_optimum_is_the_largest_throughput(self):
        self.tune_well(3, example("sim"))

        results = outcomes(self.results)
        optimum = read_json(self.results / "ds_config_optimal.json")
        name = "z{}_gas1_tmbspg{}".format(optimum["zero_optimization"]["stage"],
                                          optimum["train_micro_batch_size_per_gpu"])
        best = max(outcome["samples_per_s"] for outcome in results.values())
        self.assertGreater(results[name]["samples_per_s"], 0.9 * best)


if __name__ == "__main__":
    unittest.main()
