"""The profile that scripts/calibration writes, and where it is kept, without deepspeed."""
import json
import os
import pathlib
import tempfile
import types
import unittest
import unittest.mock

from calibration_support import COST, design, line, rounds

import calibrate
import collectives
import eager
import estimates
import processors
import profiles
import steps
import terminal


class Profile(unittest.TestCase):
    WHERE = dict(host="a", processor="Intel(R) Xeon(R) Processor", ranks=2, deepspeed="0.19.8",
                 torch="2.15.0+cu132", transformers="5.23.0", backend="cpu", date="2026-01-31")

    def test_it_has_every_number_with_its_uncertainty_and_where_it_was_measured(self):
        estimate = estimates.Estimate(rounds(), design(), resamples=20)

        profile = json.loads(json.dumps(estimates.profile(estimate, self.WHERE, dict(seconds=100))))

        self.assertEqual(profile["gradient_hook_us"], 27)
        self.assertEqual(profile["pipelined_collective_us"], 90)
        self.assertEqual(set(profile["uncertainty"]),
                         {f"{event}_us" for event in (*COST, "pipelined_collective")})
        self.assertEqual(profile["collectives"]["all_gather"]["fp32"],
                         dict(latency_us=540, latency_uncertainty_us=0, bus_bandwidth_gb_per_s=0.5,
                              bus_bandwidth_uncertainty_gb_per_s=0))
        self.assertEqual(set(profile["collectives"]), set(collectives.KINDS))
        self.assertEqual(profile["collectives"]["all_reduce"]["fp32"]["latency_us"], 300)
        self.assertEqual(profile["about"]["beyond_events_us"], dict(all_gather=[240, 0], reduce_scatter=[480, 0]))
        self.assertEqual(profile["about"]["plain_step_ms"], 5)
        self.assertEqual(profile["measured_on"], self.WHERE)
        self.assertEqual((profile["about"]["unstable"], profile["about"]["worst_relative_error"]), ([], 0))
        self.assertEqual((profile["about"]["cases"], profile["about"]["rounds"]), (len(steps.CASES), 30))

    def test_large_messages_of_copied_kinds_have_a_bandwidth_of_their_own(self):
        measured = rounds()
        for part in measured:
            for kind, beyond in (("all_gather", 1e-9), ("reduce_scatter", -1e-9)):
                size = collectives.LARGE
                part["collectives"][kind, "fp32", size] = line(kind, size) + size * beyond

        table = estimates.profile(estimates.Estimate(measured, design(), resamples=5), self.WHERE, {})["collectives"]

        self.assertEqual(table["all_gather"]["fp32"]["bus_bandwidth_gb_per_s"], 0.5)  # of the others, as before
        self.assertEqual(table["all_gather"]["fp32"]["large"],
                         dict(above_bytes=32 << 20, bus_bandwidth_gb_per_s=0.25,
                              bus_bandwidth_uncertainty_gb_per_s=0))
        self.assertNotIn("large", table["reduce_scatter"]["fp32"])  # none that took less
        self.assertNotIn("large", table["all_reduce"]["fp32"])

    def test_one_that_does_not_explain_its_own_cases_is_vague(self):
        def profile_of(misfit):
            estimate = estimates.Estimate(rounds(count=10, misfit=misfit), design(), resamples=2)
            return estimates.profile(estimate, self.WHERE, {})

        self.assertFalse(estimates.is_vague(profile_of(0.05)))
        self.assertTrue(estimates.is_vague(profile_of(2.0)))
        self.assertTrue(estimates.is_vague({"about": {"median_relative_error": None}}))

    def test_rounds_are_written_with_all_that_was_measured(self):
        measured = rounds(count=2)
        for part in measured:
            part["products"] = {("fp32", 1): 1e-3}
        step = types.SimpleNamespace(case=steps.CASES[0], counts={}, calls=[], pipelined=0)
        counts = {eager.MODELS[0]: dict(operator_forward=1)}
        calibration = types.SimpleNamespace(ranks=2, bench=types.SimpleNamespace(steps=[step]),
                                            design=types.SimpleNamespace(eager_counts=counts))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rounds.json"
            calibrate.write_rounds(path, measured, calibration)
            whole = json.loads(path.read_text())
            written = whole["rounds"]

        self.assertEqual(whole["eager_counts"], {"gpt2/2/sdpa": dict(operator_forward=1)})
        self.assertEqual([part["products"] for part in written], [{"fp32/1": 1e-3}] * 2)
        self.assertEqual(written[0]["steps"], [list(pair) for pair in measured[0]["steps"]])
        self.assertIn("all_gather/fp32/1024", written[0]["collectives"])

    def test_its_place_in_the_cache_is_of_machine_ranks_and_versions(self):
        path = profiles.cache_path(self.WHERE, {"XDG_CACHE_HOME": "/c", "HOME": "/h"})

        self.assertEqual(str(path), "/c/dstune-mpi/profiles/cpu-intel-r-xeon-r-processor/"
                                    "2-ranks-deepspeed-0.19.8-torch-2.15.0.json")
        self.assertTrue(str(profiles.cache_path(self.WHERE, {"HOME": "/h"})).startswith("/h/.cache/dstune-mpi/"))
        self.assertEqual(profiles.cache_path({**self.WHERE, "threads": 4}, {"HOME": "/h"}).name,
                         "2-ranks-4-threads-deepspeed-0.19.8-torch-2.15.0.json")

    def test_a_key_is_lower_case_with_one_dash_for_all_else(self):
        self.assertEqual(profiles.key_of("cuda", "NVIDIA H100 80GB HBM3"), "cuda-nvidia-h100-80gb-hbm3")
        self.assertEqual(profiles.key_of("cpu", "AMD  EPYC (7)"), "cpu-amd-epyc-7-")

    def test_the_processor_is_what_the_cpu_backend_finds(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "cpuinfo"
            file.write_text("processor\t: 0\nmodel\t: 85\nmodel name\t: Some: CPU @ 2 GHz \nmodel name\t: other\n")

            self.assertEqual(processors.processor(file), "Some: CPU @ 2 GHz")
            self.assertEqual(processors.processor(pathlib.Path(folder) / "none"), "unknown CPU")

    def test_the_results_directory_has_it_where_there_is_one_or_a_configuration(self):
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            self.addCleanup(os.chdir, before)
            pathlib.Path("own.json").write_text('// "a"\n{"url": "http://x", "autotuning": {"results_dir": "mine",},}')
            pathlib.Path("plain.json").write_text("{}")

            self.assertIsNone(profiles.results_path("", ""))
            self.assertEqual(str(profiles.results_path("own.json", "")), "mine/host_overhead.json")
            self.assertEqual(str(profiles.results_path("own.json", "there")), "there/host_overhead.json")
            self.assertEqual(str(profiles.results_path("plain.json", "")),
                             "autotuning_results/host_overhead.json")
            os.mkdir("autotuning_results")
            self.assertEqual(str(profiles.results_path("", "")), "autotuning_results/host_overhead.json")
            os.chdir(before)

    def test_it_is_written_whole_into_folders_that_are_made(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a" / "b.json"

            profiles.write(path, "first")
            profiles.write(path, "second")

            self.assertEqual(path.read_text(), "second")
            self.assertEqual(os.listdir(path.parent), ["b.json"])


class Launcher(unittest.TestCase):
    def test_a_rank_of_mpirun_gets_the_names_of_torchrun(self):
        environment = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
                       "MASTER_ADDR": "there"}

        self.assertEqual(calibrate.adopt_launcher(environment), 4)
        self.assertEqual([environment[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR")],
                         ["1", "4", "1", "there"])

    def test_a_process_without_a_launcher_is_one_rank(self):
        self.assertEqual(calibrate.adopt_launcher({}), 1)


class Rounds(unittest.TestCase):
    """A calibration's rounds, with timers whose seconds say what they time, on one of two ranks."""

    def round(self, is_cpu, ranks=2):
        def timer(seconds):
            return types.SimpleNamespace(round=lambda: dict(seconds), counts={})

        def over_ranks(values, operation):
            """The other rank takes 2 s more for everything."""
            return [{"sum": 2 * value + 2, "max": value + 2}[operation] for value in values]

        calibration = object.__new__(calibrate.Calibration)
        calibration.is_cpu, calibration.ranks, calibration.rank, calibration.modules = is_cpu, ranks, 1, (None, None)
        calibration.device = calibration.accelerator = unittest.mock.Mock()
        calibration.options = types.SimpleNamespace(seconds=100)
        calibration.torch = types.SimpleNamespace(distributed=types.SimpleNamespace(
            ReduceOp=types.SimpleNamespace(SUM="sum", MAX="max")))
        calibration.over_ranks = over_ranks
        bench = types.SimpleNamespace(steps=[], round=lambda number: [(7.0 + number, 6.0), (9.0, 8.0)])
        with unittest.mock.patch.multiple(
                calibrate, EagerTimer=lambda *_: timer({("gpt2", 2, "sdpa", "forward"): 2.0}), gc=unittest.mock.Mock(),
                Timer=lambda *_: timer({("all_gather", "fp32", 8): 1.0, ("reduce", "fp32", 8): 1.5}),
                ProductTimer=lambda *_: timer({("fp32", 1): 3.0}), AttentionTimer=lambda *_: timer(
                    {("fp32", 1, "forward"): 5.0}), OperationTimer=lambda *_: timer({("dropout", "fp32"): 6.0})), \
                unittest.mock.patch.object(steps, "Bench", lambda *_: bench):
            calibration.prepare()
            return calibration.round(10)

    def test_each_timer_has_its_name_the_mean_over_ranks_and_steps_the_slowest_ranks(self):
        everywhere = {"collectives": {("all_gather", "fp32", 8): 2.0, ("reduce", "fp32", 8): 2.5},
                      "eager": {("gpt2", 2, "sdpa", "forward"): 3.0}, "steps": [(19.0, 8.0), (11.0, 10.0)]}
        on_cpu = {"products": {("fp32", 1): 4.0},
                  "attention": {("fp32", 1, "forward"): 6.0}, "operations": {("dropout", "fp32"): 7.0}}

        self.assertEqual(self.round(is_cpu=True), {**everywhere, **on_cpu})
        self.assertEqual(self.round(is_cpu=False), everywhere)

    def test_one_gpu_has_no_collectives_to_time(self):
        self.assertEqual(list(self.round(is_cpu=False, ranks=1)), ["eager", "steps"])


class Collectives(unittest.TestCase):
    def test_a_call_takes_the_mean_of_its_tries_since_a_step_of_many_has_the_slow_ones_too(self):
        clock = [0.0]
        waits = iter([1.0] * (collectives.TRIES - 1) + [6.0])

        def call():
            clock[0] += next(waits)

        timer = collectives.Timer.__new__(collectives.Timer)
        timer.prepared, timer.work, timer.synchronize = lambda *_: call, lambda: None, lambda: None
        with unittest.mock.patch.object(collectives.time, "perf_counter", lambda: clock[0]):
            self.assertAlmostEqual(timer.seconds("all_reduce", "bf16", 1024), 2.0)


class Terminals(unittest.TestCase):
    def test_what_they_would_obey_is_shown(self):
        self.assertEqual(terminal.shown("a\n\u00e4\u001b[31m\u009b\u202e"),
                         "a\n\u00e4\\x1B[31m\\xC2\\x9B\\xE2\\x80\\xAE")


if __name__ == "__main__":
    unittest.main()
