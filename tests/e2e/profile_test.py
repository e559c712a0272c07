"""A calibrated profile is found, used and named; a broken one is left aside."""

import json
import pathlib
import re
import unittest

import support
from support import PROGRAM, ProgramTest, outcomes, tiny, unwrapped

LATENCY = 0.004  # seconds, of the library that a profile is of

PROFILE = {"gradient_hook_us": 1, "sub_module_hook_us": 2, "collective_us": 3, "optimizer_tensor_us": 4,
           "synchronization_us": 5,
           "uncertainty": {"gradient_hook_us": 1, "sub_module_hook_us": 1, "collective_us": 1,
                           "optimizer_tensor_us": 1, "synchronization_us": 1},
           "collectives": {"all_reduce": {"fp32": {
               "latency_us": LATENCY * 1e6, "latency_uncertainty_us": 10,
               "bus_bandwidth_gb_per_s": 0.5, "bus_bandwidth_uncertainty_gb_per_s": 0.1}}},
           "measured_on": {"host": "node7", "ranks": 2, "backend": "cpu", "communication": "gloo",
                           "deepspeed": "0.19.8", "torch": "2.15.0", "date": "2026-11-23"}}
MEASURED = "measured on node7, 2 ranks, gloo, DeepSpeed 0.19.8, torch 2.15.0, 2026-11-23"


def machine_key():
    """As the CPU backend names its device (src/kernels/cpu/describe_device.cpp)."""
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip() in ("model name", "cpu model", "cpu"):
            return "cpu-" + re.sub("[^a-z0-9]+", "-", value.strip().lower())
    return "cpu-unknown-cpu"


class FoundProfile(ProgramTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, support, "CACHE", support.CACHE)
        support.CACHE = str(self.directory / "cache")

    def config(self):
        config = tiny(autotuning={"enabled": True}, dstune={"host_overhead": "default"})
        return self.write_config({**config, "zero_optimization": {"stage": 0},
                                  "train_micro_batch_size_per_gpu": 1})

    def keep(self, text, folder):
        folder.mkdir(parents=True)
        path = folder / "host_overhead.json"
        path.write_text(text, encoding="utf-8")
        return path

    def plan(self):
        finished = self.run_command([PROGRAM, "--plan", "--world-size", "2", str(self.config())])
        self.assertEqual(finished.returncode, 0, finished.stderr)
        return finished

    def test_a_profile_of_the_users_cache_is_spent_and_named(self):
        path = self.keep(json.dumps(PROFILE),
                         self.directory / "cache" / "dstune-mpi" / "profiles" / machine_key())

        finished = self.tune_well(3, self.config())

        said = f"host overhead: profile {path}, {MEASURED}"
        self.assertIn(said, finished.stderr)
        noted = (f"Note: {said}; it lacks all or part of the time of eager PyTorch's own calls, which a new "
                 "calibration measures.")
        self.assertIn(noted, unwrapped(finished.stdout))
        self.assertIn(noted, (self.results / "summary.txt").read_text(encoding="utf-8"))
        for outcome in outcomes(self.results).values():
            sums = [line for line in outcome["ledger"]["collectives"]
                    if line["kind"] == "all_reduce"]
            self.assertTrue(sums)
            for line in sums:
                self.assertGreaterEqual(line["exposed_s"] + line["added_s"],
                                        LATENCY * line["calls"])

    def test_a_plan_names_that_of_the_results(self):
        self.keep(json.dumps(PROFILE), self.results)

        self.assertIn(f"host overhead: profile autotuning_results/host_overhead.json, {MEASURED}",
                      self.plan().stderr)

    def test_a_broken_one_is_a_warning(self):
        self.keep("{", self.results)

        planned = self.plan()

        self.assertIn("host overhead: preset cpu-gloo", planned.stderr)
        self.assertIn("autotuning_results/host_overhead.json", planned.stderr)


if __name__ == "__main__":
    unittest.main()
