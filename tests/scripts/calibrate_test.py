"""scripts/calibrate_host_overhead.py as far as it runs without deepspeed."""

import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "scripts" / "calibrate_host_overhead.py"


def load():
    spec = importlib.util.spec_from_file_location("calibrate", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


calibrate = load()

COST = dict(gradient_hook=55e-6, module_hook=38e-6, collective=120e-6, optimizer_tensor=71e-6,
            synchronization=15e-6)


def counts_of_a_grid():
    for stage in (0, 1, 2, 3):
        for layers in (2, 6, 12):
            for accumulation in (1, 4):
                for collectives in (1, 5, 11):
                    shape = dict(accumulation=accumulation, tensors=12 * layers + 4,
                                 modules=6 * layers + 4)
                    yield calibrate.host_events(stage, shape, collectives * accumulation,
                                                shape["tensors"])


def synthetic(noise=0.0, seed=1):
    generator = random.Random(seed)
    return [(counts, calibrate.predicted(COST, counts) * (1 + generator.gauss(0, noise)))
            for counts in counts_of_a_grid()]


class Fit(unittest.TestCase):
    def test_finds_the_costs_that_made_the_times(self):
        cost = calibrate.fit(synthetic())

        for event, expected in COST.items():
            self.assertAlmostEqual(cost[event] / expected, 1, places=2, msg=event)

    def test_noise_of_the_times_stays_noise_of_the_costs(self):
        cost = calibrate.fit(synthetic(noise=0.01))

        for event in ("gradient_hook", "module_hook", "optimizer_tensor"):
            self.assertAlmostEqual(cost[event] / COST[event], 1, delta=0.15, msg=event)

    def test_no_cost_is_negative(self):
        samples = [(dict(gradient_hook=10, collective=1), 1e-3),
                   (dict(gradient_hook=20, collective=9), 2e-3),
                   (dict(gradient_hook=30, collective=20), 2.9e-3)]

        cost = calibrate.fit(samples)

        self.assertEqual(cost["collective"], 0)
        self.assertAlmostEqual(cost["gradient_hook"], 1e-4, delta=5e-6)

    def test_events_that_never_happened_cost_nothing(self):
        cost = calibrate.fit([(dict(gradient_hook=10), 1e-3)])

        self.assertEqual(cost["module_hook"], 0)

    def test_steps_faster_than_without_deepspeed_are_left_out(self):
        cost = calibrate.fit([(dict(gradient_hook=10), 1e-3), (dict(gradient_hook=10), -1e-3)])

        self.assertAlmostEqual(cost["gradient_hook"], 1e-4)


class Events(unittest.TestCase):
    SHAPE = dict(accumulation=4, tensors=100, modules=50)

    def events(self, stage):
        return calibrate.host_events(stage, self.SHAPE, 7, 100)

    def test_gradients_are_handled_once_in_stage_1_and_in_every_micro_step_later(self):
        self.assertEqual([self.events(stage)["gradient_hook"] for stage in range(4)],
                         [0, 100, 400, 400])

    def test_only_stage_3_has_module_hooks(self):
        self.assertEqual([self.events(stage)["module_hook"] for stage in range(4)],
                         [0, 0, 0, 4 * (4 * 50 - 2)])

    def test_stage_3_waits_after_every_backward_too(self):
        self.assertEqual([self.events(stage)["synchronization"] for stage in range(4)],
                         [8, 8, 8, 12])


class Profile(unittest.TestCase):
    def test_file_has_microseconds_per_event_and_where_they_come_from(self):
        samples = synthetic()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "profile.json"

            calibrate.write_profile(path, calibrate.profile_of(COST, samples, dict(ranks=2)))

            profile = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual(profile["gradient_hook_us"], 55)
        self.assertEqual(set(profile), {f"{event}_us" for event in COST} | {"about"})
        self.assertEqual(profile["about"]["samples"], len(samples))
        self.assertEqual(profile["about"]["median_relative_error"], 0)


class WithoutDeepSpeed(unittest.TestCase):
    def run_script(self, *arguments, **environment):
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder) / "deepspeed.py"
            broken.write_text("raise ImportError('not here')\n", encoding="utf-8")
            (pathlib.Path(folder) / "torch.py").write_text("", encoding="utf-8")
            return subprocess.run([sys.executable, "-B", str(SCRIPT), *arguments], text=True,
                                  env=dict(os.environ, PYTHONPATH=folder, **environment), capture_output=True,
                                  check=False)

    def test_help_works(self):
        finished = self.run_script("--help")

        self.assertEqual(finished.returncode, 0)
        self.assertIn("dstune.host_overhead", finished.stdout)

    def test_a_run_says_what_is_missing(self):
        finished = self.run_script("profile.json", WORLD_SIZE="2")

        self.assertEqual(finished.returncode, 1)
        self.assertIn("needs deepspeed, torch and transformers on this machine: not here",
                      " ".join(finished.stderr.split()))

    def test_one_process_is_refused_since_it_has_no_partner(self):
        for environment in ({"WORLD_SIZE": "1"}, {"OMPI_COMM_WORLD_SIZE": "1"}, {}):
            finished = self.run_script("profile.json", **environment)

            self.assertEqual(finished.returncode, 2, environment)
            self.assertIn("needs two processes or more", finished.stderr)
            self.assertNotIn("Traceback", finished.stderr)


if __name__ == "__main__":
    unittest.main()
