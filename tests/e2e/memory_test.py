"""memory_limit is exact to the byte."""

import json
import unittest

from support import PROGRAM, ProgramTest, example, outcomes, read_json

NAME = "z2_gas1_tmbspg4"


class MemoryLimit(ProgramTest):
    def setUp(self):
        super().setUp()
        config = self.tiny(zero_optimization={"stage": 2}, train_micro_batch_size_per_gpu=[4])
        self.config = self.write_config(config)

    def run_with(self, limit):
        results = self.directory / f"limit_{limit}"
        finished = self.tune(3, self.config, "--memory-limit", limit, "--results-dir", results)
        return finished, outcomes(results).get(NAME), results

    def test_runs_at_its_peak_and_not_one_byte_below(self):
        unhindered, unlimited, _ = self.run_with("256MiB")
        self.assertEqual(unhindered.returncode, 0, unhindered.stderr)
        peak = unlimited["peak_memory_bytes"]

        at_peak, fits, _ = self.run_with(peak)
        below, does_not, results = self.run_with(peak - 1)

        self.assertEqual(at_peak.returncode, 0, at_peak.stderr)
        self.assertEqual(fits["status"], "measured")
        self.assertEqual(fits["peak_memory_bytes"], peak)
        self.assertEqual(below.returncode, 3, below.stderr)
        if does_not is not None:
            self.assertEqual(does_not["status"], "out_of_memory")
            self.assertEqual(does_not["limit_bytes"], peak - 1)
            self.assertGreater(does_not["in_use_bytes"] + does_not["requested_bytes"], peak - 1)
        self.assertFalse((results / "ds_config_optimal.json").exists())
        self.assertEqual(read_json(results / "status.json")["exit_code"], 3)

    def test_a_micro_batch_that_does_not_fit_is_an_outcome_and_the_run_goes_on(self):
        config = self.write_config(self.tiny(zero_optimization={"stage": [0, 1]},
                                             train_micro_batch_size_per_gpu=[1, 64]))

        self.tune_well(3, config, "--memory-limit", "40MiB")

        results = outcomes(self.results)
        self.assertEqual({name: outcome["status"] for name, outcome in results.items()},
                         {"z0_gas64_tmbspg1": "measured", "z0_gas1_tmbspg64": "out_of_memory",
                          "z1_gas64_tmbspg1": "measured", "z1_gas1_tmbspg64": "out_of_memory"})
        for name, outcome in results.items():
            if outcome["status"] == "out_of_memory":
                self.assertEqual(outcome["limit_bytes"], 40 << 20, name)
                self.assertGreater(outcome["in_use_bytes"] + outcome["requested_bytes"], 40 << 20)
        optimum = read_json(self.results / "ds_config_optimal.json")
        self.assertEqual(optimum["train_micro_batch_size_per_gpu"], 1)
        self.assertEqual(read_json(self.results / "status.json")["status"], "found")

    def test_a_caching_allocator_reserves_what_the_plan_says_in_whole_segments(self):
        config = self.write_config(self.tiny(zero_optimization={"stage": 2},
                                             train_micro_batch_size_per_gpu=[4],
                                             dstune={"allocator": "caching"}))
        planned = self.run_command([PROGRAM, "--explain", NAME, "--plan", "--world-size", "2",
                                    "--format", "json", str(config)])

        finished = self.tune(3, config)

        self.assertEqual(finished.returncode, 0, finished.stderr)
        outcome = outcomes(self.results)[NAME]
        self.assertEqual(outcome["peak_reserved_bytes"],
                         json.loads(planned.stdout)["peak_reserved_bytes"])
        self.assertEqual(outcome["peak_reserved_bytes"] % (2 << 20), 0)
        self.assertGreater(outcome["peak_reserved_bytes"], outcome["peak_memory_bytes"])
        self.assertIn("| reserved |", finished.stdout)

    def test_nothing_fits(self):
        finished = self.tune(3, example("tiny"), "--memory-limit", "64KiB")

        self.assertEqual(finished.returncode, 3, finished.stderr)
        self.assertIn("memory", finished.stderr)
        self.assertFalse((self.results / "ds_config_optimal.json").exists())


if __name__ == "__main__":
    unittest.main()
