"""What scripts/calibration counts, and how it fits what was measured, without deepspeed."""
import random
import unittest

from calibration_support import BEYOND, COST, design, rounds

import collectives
import estimates
import fitting
import steps


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


if __name__ == "__main__":
    unittest.main()
