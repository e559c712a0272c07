"""scripts/calibration as far as it runs without deepspeed."""

import json
import os
import pathlib
import random
import sys
import tempfile
import types
import unittest

SCRIPTS = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "scripts"
sys.path.insert(0, str(SCRIPTS / "calibration"))

import calibrate
import collectives
import estimates
import fitting
import processors
import profiles
import steps
import terminal

COST = dict(gradient_hook=27e-6, module_hook=134e-6, collective=67e-6, optimizer_tensor=48e-6,
            synchronization=113e-6)
BEYOND = dict(all_gather=240e-6, reduce_scatter=480e-6, pipelined_collective=90e-6)
LATENCY, BUS_BANDWIDTH = 300e-6, 0.5e9


def case_counts(case, collectives_of_case):
    shape = dict(tensors=12 * case.layers + 4, modules=6 * case.layers + 4)
    owned = shape["tensors"] // 2 if case.stage in (1, 2) else shape["tensors"]
    return steps.host_events(case, shape, collectives_of_case, owned)


def calls_of(case):
    """As many as DeepSpeed makes, roughly: what the fit needs is that they vary."""
    per_backward = 4 * case.layers if case.bucket == steps.SMALL else 1
    calls = [("all_reduce", 40_000)] * per_backward
    if case.stage == 3:
        gathers = {"on demand": 12 * case.layers, "ahead": 1, "kept": 0}[case.gathers]
        calls = [("reduce_scatter", 40_000)] * per_backward + [("all_gather", 4_000)] * gathers
    return calls * (case.accumulation if case.stage >= 2 else 1) + [("all_reduce", 4)]


def pipelined_of(case):
    return 12 * case.layers if case.gathers == "kept" else 0


def design():
    calls = [calls_of(case) for case in steps.CASES]
    pipelined = [pipelined_of(case) for case in steps.CASES]
    counts = [case_counts(case, len(made) + more) for case, made, more in zip(steps.CASES, calls, pipelined)]
    return estimates.Design(counts, calls, pipelined, ranks=2)


def line(kind, size):
    return LATENCY + collectives.bus_factor(kind, 2) * size / BUS_BANDWIDTH


def rounds(count=30, noise=0.0, misfit=0.0, seed=1):
    """Measurements of a machine that costs COST; misfit: a part of each case that no event explains."""
    generator, of_rows = random.Random(seed), random.Random(99)
    setting = design()
    unexplained = [1 + of_rows.gauss(0, misfit) for _ in setting.counts]

    def noisy(seconds):
        return seconds * (1 + generator.gauss(0, noise))

    def step(counts, calls, factor):
        host = fitting.predicted({**COST, **BEYOND}, counts) * factor + sum(line(*call) for call in calls)
        return noisy(host) + 0.005, 0.005

    return [{"collectives": {(kind, "fp32", size): noisy(line(kind, size))
                             for kind in collectives.KINDS for size in collectives.SIZES},
             "products": {("fp32", 1): estimates.FLOP / 30e9 * (1 + abs(generator.gauss(0, noise)))},
             "steps": [step(*row) for row in zip(setting.counts, setting.calls, unexplained)]}
            for _ in range(count)]


class LeastSquares(unittest.TestCase):
    def test_finds_the_costs_that_made_the_times(self):
        setting = design()

        planted = {**COST, **BEYOND}

        cost = fitting.fit([(counts, fitting.predicted(planted, counts)) for counts in setting.counts],
                           setting.terms)

        self.assertEqual(set(cost), set(planted))
        for term, expected in planted.items():
            self.assertAlmostEqual(cost[term] / expected, 1, places=6, msg=term)

    def test_no_cost_is_negative_and_the_rest_is_fitted_without_it(self):
        samples = [(dict(gradient_hook=10, collective=1), 1e-3), (dict(gradient_hook=20, collective=9), 2e-3),
                   (dict(gradient_hook=30, collective=20), 2.9e-3)]

        cost = fitting.fit(samples)

        self.assertEqual(cost["collective"], 0)
        self.assertAlmostEqual(cost["gradient_hook"], 1e-4, delta=5e-6)

    def test_events_that_never_happened_cost_nothing(self):
        cost = fitting.fit([(dict(gradient_hook=10), 1e-3)])

        self.assertEqual(cost["module_hook"], 0)

    def test_steps_faster_than_without_deepspeed_are_left_out(self):
        cost = fitting.fit([(dict(gradient_hook=10), 1e-3), (dict(gradient_hook=10), -1e-3)])

        self.assertAlmostEqual(cost["gradient_hook"], 1e-4)

    def test_a_line_is_a_latency_and_seconds_per_byte(self):
        points = {size: 3e-4 + size * 2e-9 for size in collectives.SIZES}

        (latency, per_byte), errors = fitting.fit_line(points)

        self.assertAlmostEqual(latency / 3e-4, 1, places=6)
        self.assertAlmostEqual(per_byte / 2e-9, 1, places=6)
        self.assertLess(errors[0], 1e-9)

    def test_what_the_samples_cannot_tell_has_no_bound(self):
        samples = [(dict(gradient_hook=k, collective=2 * k), 1e-3 * k) for k in (1, 2, 3, 4)]

        errors = fitting.errors_of(fitting.fit(samples), samples)

        self.assertEqual([errors[event] for event in ("gradient_hook", "collective", "module_hook")],
                         [float("inf")] * 3)


class Uncertainty(unittest.TestCase):
    def test_planted_numbers_lie_within_it(self):
        for seed in range(5):
            estimate = estimates.Estimate(rounds(noise=0.05, seed=seed), design(), resamples=60)

            for event, expected in COST.items():
                off = abs(estimate.numbers[event] - expected)
                self.assertLess(off, 4 * estimate.doubt[event], f"{event}, seed {seed}")
                self.assertLess(estimate.doubt[event], 0.5 * expected, f"{event}, seed {seed}")

    def test_noise_fades_with_more_rounds(self):
        def noise(count):
            drawn = [estimates.Estimate(rounds(count, noise=0.1, seed=seed), design(), resamples=60)
                     for seed in range(3)]
            return sum(estimate.noise["gradient_hook"] for estimate in drawn)

        self.assertLess(noise(90), 0.6 * noise(10))

    def test_what_no_event_explains_is_doubt_that_rounds_do_not_remove(self):
        estimate = estimates.Estimate(rounds(40, noise=0.001, misfit=0.2), design(), resamples=60)

        self.assertGreater(estimate.doubt["gradient_hook"], 5 * estimate.noise["gradient_hook"])
        self.assertTrue(estimate.is_settled())
        self.assertIn("collective_us", estimate.unstable())

    def test_on_gpus_nothing_is_taken_away_and_a_call_is_a_call(self):
        setting = estimates.Design([dict(collective=5)], [[("all_gather", 8)] * 3], [2], ranks=2, is_cpu=False)

        cost = estimates.numbers([{"collectives": {("all_gather", "fp32", 8): 1.0}, "steps": [(3.0, 2.5)]}], setting)

        self.assertAlmostEqual(cost["collective"], 0.1)

    def test_exact_measurements_are_stable_and_settled(self):
        estimate = estimates.Estimate(rounds(10), design(), resamples=20)

        self.assertEqual(estimate.unstable(), [])
        self.assertTrue(estimate.is_settled())

    def test_neighbouring_rounds_are_drawn_together(self):
        drawn = fitting.resampled(list(range(27)), random.Random(1))

        steps_to_next = [(b - a) % 27 for a, b in zip(drawn, drawn[1:])]
        self.assertEqual(len(drawn), 27)
        self.assertGreaterEqual(steps_to_next.count(1), 18)


class Events(unittest.TestCase):
    def events(self, stage):
        case = steps.Case(stage, 8, 4, steps.LARGE, None)
        return steps.host_events(case, dict(tensors=100, modules=50), 7, 100)

    def test_gradients_are_handled_once_in_stage_1_and_in_every_micro_step_later(self):
        self.assertEqual([self.events(stage)["gradient_hook"] for stage in range(4)], [0, 100, 400, 400])

    def test_only_stage_3_has_module_hooks(self):
        self.assertEqual([self.events(stage)["module_hook"] for stage in range(4)], [0, 0, 0, 4 * (4 * 50 - 2)])

    def test_stage_3_waits_after_every_backward_too(self):
        self.assertEqual([self.events(stage)["synchronization"] for stage in range(4)], [8, 8, 8, 12])


class Tensor:
    """As much of a tensor as counting its bytes needs."""

    def __init__(self, count):
        self.count = count

    def numel(self):
        return self.count

    def element_size(self):
        return 4


class Recording(unittest.TestCase):
    class Backend:
        def all_reduce(self, tensor, op=None):
            return tensor

        def all_gather_into_tensor(self, output_tensor, input_tensor):
            return output_tensor

    def test_calls_are_kept_with_the_bytes_of_all_ranks(self):
        backend = self.Backend()

        with collectives.Recorder(backend) as recorder:
            backend.all_reduce(Tensor(3), op="sum")
            backend.all_gather_into_tensor(output_tensor=Tensor(8), input_tensor=Tensor(4))
        backend.all_reduce(Tensor(5))

        self.assertEqual(recorder.alone(), [("all_reduce", 12), ("all_gather", 32)])

    def test_what_begins_before_another_was_waited_for_is_pipelined(self):
        class Work:
            def wait(self):
                return "done"

        class Backend:
            def all_gather_into_tensor(self, output, mine, async_op):
                return Work()

        backend = Backend()

        with collectives.Recorder(backend) as recorder:
            backend.all_gather_into_tensor(Tensor(1), None, True).wait()
            pair = [backend.all_gather_into_tensor(Tensor(2), None, True) for _ in range(2)]
            answers = [work.wait() for work in pair]
            backend.all_gather_into_tensor(Tensor(4), None, True)

        self.assertEqual(answers, ["done", "done"])
        self.assertEqual(recorder.alone(), [("all_gather", 4), ("all_gather", 16)])
        self.assertEqual(recorder.pipelined(), 2)

    def test_bus_factors_are_those_of_nccl_tests(self):
        factors = {kind: collectives.bus_factor(kind, 4) for kind in collectives.KINDS}

        self.assertEqual(factors, dict(all_gather=0.75, reduce_scatter=0.75, all_to_all=0.75, all_reduce=1.5,
                                       reduce=1.0, broadcast=1.0))


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

    def test_products_have_the_best_rate_of_all_rounds(self):
        measured = rounds(noise=0.1)
        measured[3]["products"]["fp32", 1] = estimates.FLOP / 40e9

        profile = estimates.profile(estimates.Estimate(measured, design(), resamples=5), self.WHERE, {})

        self.assertEqual(profile["products"], {"fp32": dict(threads=1, gflop_per_s=40)})
        for part in measured:
            del part["products"]
        self.assertNotIn("products", estimates.profile(estimates.Estimate(measured, design(), 5), self.WHERE, {}))

    def test_rounds_are_written_with_all_that_was_measured(self):
        measured = rounds(count=2)
        step = types.SimpleNamespace(case=steps.CASES[0], counts={}, calls=[], pipelined=0)
        calibration = types.SimpleNamespace(ranks=2, bench=types.SimpleNamespace(steps=[step]))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rounds.json"
            calibrate.write_rounds(path, measured, calibration)
            written = json.loads(path.read_text())["rounds"]

        self.assertEqual([part["products"] for part in written], [{"fp32/1": estimates.FLOP / 30e9}] * 2)
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


class Terminals(unittest.TestCase):
    def test_what_they_would_obey_is_shown(self):
        self.assertEqual(terminal.shown("a\n\u00e4\u001b[31m\u009b\u202e"), "a\n\u00e4\\x1B[31m\\xC2\\x9B\\xE2\\x80\\xAE")


if __name__ == "__main__":
    unittest.main()
