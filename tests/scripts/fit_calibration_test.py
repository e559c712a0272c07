"""What scripts/calibration counts, and how it fits what was measured, without deepspeed."""
import json
import os
import pathlib
import random
import statistics
import types
import unittest

from calibration_support import BEYOND, COST, design, rounds

import collectives
import estimates
import fitting
import steps
from gathers import GATHERED, GatherCounter
from hooks import HOOK, HOOKS, HookCounter

ROOT = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])


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

        self.assertEqual(cost[HOOK], 0)

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

        self.assertEqual([errors[event] for event in ("gradient_hook", "collective", HOOK)],
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


class ToldApart(unittest.TestCase):
    """What a gathered tensor takes from what a module's hook does."""

    def test_where_both_are_more_than_they_are_uncertain_both_are_numbers(self):
        estimate = estimates.Estimate(rounds(noise=0.02, gathered_tensor=200e-6), design(), resamples=20)

        self.assertIn(GATHERED, estimate.design.events)
        for event, expected in ((GATHERED, 200e-6), (HOOK, COST[HOOK])):
            self.assertAlmostEqual(estimate.numbers[event], expected, delta=4 * estimate.doubt[event], msg=event)
        profile = estimates.profile(estimate, {}, {})
        self.assertGreater(profile["gathered_tensor_us"], 100)
        self.assertGreater(profile["uncertainty"]["gathered_tensor_us"], 0)

    def test_where_noise_hides_it_the_hook_has_both_as_before(self):
        measured = rounds(count=10, misfit=0.1, gathered_tensor=100e-6)
        wider = design().with_gathered()
        self.assertGreater(estimates.numbers(measured, wider)[GATHERED], 50e-6)  # +- 61e-6

        estimate = estimates.Estimate(measured, design(), resamples=5)

        self.assertEqual(estimate.numbers, estimates.numbers(measured, design()))
        self.assertNotIn("gathered_tensor_us", estimates.profile(estimate, {}, {}))

    def test_where_tensors_take_all_and_hooks_nothing_they_are_not(self):
        estimate = estimates.Estimate(rounds(noise=0.02, sub_module_hook=0.0, gathered_tensor=200e-6), design(),
                                      resamples=2)

        self.assertNotIn(GATHERED, estimate.design.events)

    def test_counts_of_earlier_rounds_have_no_such_event(self):
        setting = design()
        for counts in setting.rows[0]:
            del counts[GATHERED]

        estimate = estimates.Estimate(rounds(noise=0.02, gathered_tensor=200e-6), setting, resamples=2)

        self.assertNotIn(GATHERED, estimate.design.events)


class OfAnH200(unittest.TestCase):
    """The figures in docs/host-overhead.md, of two machines."""
    FIXTURE = json.loads((ROOT / "tests/data/calibrated_steps.json").read_text(encoding="utf-8"))

    def estimate(self, machine, without=()):
        cases = self.FIXTURE["cases"]
        counts = [{event: count for event, count in case["counts"].items() if event not in without} for case in cases]
        setting = estimates.Design(counts, [[]] * len(cases), [0] * len(cases), ranks=1, is_cpu=False)
        seconds = [(case["beyond_plain_ms"][machine] / 1e3, 0.0) for case in cases]
        return estimates.Estimate([{"steps": seconds}], setting, resamples=2)

    def test_gathered_tensors_explain_part_of_what_hooks_did(self):
        for machine, (hook, alone, gathered, error, before) in enumerate(((185, 146, 214, 0.043, 0.101),
                                                                          (234, 196, 191, 0.063, 0.086))):
            earlier, now = self.estimate(machine, without=(GATHERED,)), self.estimate(machine)

            self.assertAlmostEqual(earlier.numbers[HOOK] * 1e6, hook, delta=1)
            self.assertAlmostEqual(now.numbers[HOOK] * 1e6, alone, delta=1)
            self.assertAlmostEqual(now.numbers[GATHERED] * 1e6, gathered, delta=1)
            self.assertAlmostEqual(statistics.median(earlier.errors()), before, delta=0.001)
            self.assertAlmostEqual(statistics.median(now.errors()), error, delta=0.001)

    def test_they_are_told_apart_whichever_case_is_left_out(self):
        for machine in range(2):
            whole = self.estimate(machine)
            for left_out in range(len(self.FIXTURE["cases"])):
                rows = [row for k, row in enumerate(zip(*whole.design.rows)) if k != left_out]
                setting = estimates.Design(*map(list, zip(*rows)), ranks=1, is_cpu=False)
                seconds = [pair for k, pair in enumerate(whole.rounds[0]["steps"]) if k != left_out]

                self.assertIn(GATHERED, estimates.told_apart([{"steps": seconds}], setting).events, (machine, left_out))


class Events(unittest.TestCase):
    def events(self, stage):
        case = steps.Case(stage, 8, 4, steps.LARGE, None)
        return steps.host_events(case, 100, 7, 100, hooks=800, gathered=30)

    def test_only_stage_3_gathers_tensors_for_modules(self):
        self.assertEqual([self.events(stage)[GATHERED] for stage in range(4)], [0, 0, 0, 30])

    def test_gradients_are_handled_once_in_stage_1_and_in_every_micro_step_later(self):
        self.assertEqual([self.events(stage)["gradient_hook"] for stage in range(4)], [0, 100, 400, 400])

    def test_only_stage_3_has_module_hooks(self):
        self.assertEqual([self.events(stage)[HOOK] for stage in range(4)], [0, 0, 0, 800])

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

    def test_tensors_are_counted_whichever_of_them_is_asked_and_only_while_it_is_active(self):
        class Parameter:
            def __init__(self, asked):
                self.asked, self.all_gather_coalesced = asked, self.gather

            def gather(self, tensors, quantize=False):
                self.asked.append((tensors, quantize))
                return "handle"

        asked = []
        parameters = [Parameter(asked) for _ in range(3)]
        before = [tensor.all_gather_coalesced for tensor in parameters]

        with GatherCounter([*parameters, object()]) as gathered:
            handle = parameters[0].all_gather_coalesced({parameters[0], parameters[1]})
            parameters[2].all_gather_coalesced(parameters[2:], quantize=True)
        parameters[0].all_gather_coalesced(parameters)

        self.assertEqual((gathered.tensors, handle), (3, "handle"))
        self.assertEqual([(len(tensors), quantize) for tensors, quantize in asked], [(2, False), (1, True), (3, False)])
        self.assertEqual([tensor.all_gather_coalesced for tensor in parameters], before)

    def test_hooks_are_counted_where_deepspeed_looks_them_up(self):
        class Offload:
            def hook(self, module):
                return module

        for name in HOOKS:
            setattr(Offload, name, Offload.hook)
        optimizer = types.SimpleNamespace(parameter_offload=Offload())

        with HookCounter(optimizer) as hooks, HookCounter(types.SimpleNamespace()) as none:
            said = [getattr(optimizer.parameter_offload, name)(7) for name in (*HOOKS, HOOKS[0])]
        optimizer.parameter_offload.pre_sub_module_forward_function(7)

        self.assertEqual((list(hooks.calls.values()), hooks.total, none.total, said), ([2, 1, 1, 1], 5, 0, [7] * 5))
        self.assertEqual(vars(optimizer.parameter_offload), {})

    def test_bus_factors_are_those_of_nccl_tests(self):
        factors = {kind: collectives.bus_factor(kind, 4) for kind in collectives.KINDS}

        self.assertEqual(factors, dict(all_gather=0.75, reduce_scatter=0.75, all_to_all=0.75, all_reduce=1.5,
                                       reduce=1.0, broadcast=1.0))


if __name__ == "__main__":
    unittest.main()
