"""What scripts/calibration finds of a plain step's operators and modules."""
import importlib.util
import json
import os
import pathlib
import random
import statistics
import types
import unittest
import unittest.mock

from calibration_support import design, rounds

import eager
import estimates

FIXTURE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "tests/data/operator_fixture.json"
PLANTED = dict(operator_forward=2.23e-6, module_call=24e-6, operator_backward=4.2e-6, forward_once=600e-6,
               backward_once=200e-6)


def counts_of(setting):
    """As transformers' models have them, roughly."""
    per_layer = {"gpt2": (37, 72, 12), "llama": (73, 138, 13)}[setting.family]
    more = (25, 10, 0) if setting.attention == "eager" else (0, 0, 0)
    forward, backward, modules = (setting.layers * (each + extra) for each, extra in zip(per_layer, more))
    return dict(operator_forward=forward + 40, operator_backward=backward + 30, module_call=modules + 7)


COUNTS = {setting: counts_of(setting) for setting in eager.MODELS}


def seconds_of(counts, direction):
    return sum(PLANTED[term] * {**counts, f"{direction}_once": 1}[term] for term in eager.TERMS[direction])


def measured(noise=0.0, seed=1, count=20):
    generator = random.Random(seed)
    whole = rounds(count)
    for part in whole:
        part["eager"] = {(*setting, direction): seconds_of(counts, direction) * (1 + generator.gauss(0, noise))
                         for setting, counts in COUNTS.items() for direction in eager.DIRECTIONS}
    return whole


class Fit(unittest.TestCase):
    def test_what_made_the_times_comes_back_out(self):
        found = eager.numbers(measured(), COUNTS)

        self.assertEqual(set(found), {*PLANTED, eager.ONCE})
        for name, expected in PLANTED.items():
            self.assertAlmostEqual(found[name] / expected, 1, places=5, msg=name)
        self.assertLess(max(eager.standard_errors(measured(), COUNTS, found).values()), 1e-9)

    def test_what_is_taken_once_goes_to_no_operator(self):
        whole = measured()
        for part in whole:
            part["eager"] = {key: seconds + 0.01 for key, seconds in part["eager"].items()}

        found = eager.numbers(whole, COUNTS)

        self.assertAlmostEqual(found["operator_backward"] / PLANTED["operator_backward"], 1, places=5)
        self.assertAlmostEqual(found["forward_once"], PLANTED["forward_once"] + 0.01, places=7)

    def test_planted_numbers_lie_within_the_uncertainty(self):
        for seed in range(4):
            estimate = estimates.Estimate(measured(0.02, seed), design(eager_counts=COUNTS), resamples=60)

            for event in eager.EVENTS:
                planted = PLANTED.get(event, PLANTED["forward_once"] + PLANTED["backward_once"])
                off = abs(estimate.numbers[event] - planted)
                self.assertLess(off, 4 * estimate.doubt[event], f"{event}, seed {seed}")
                self.assertLess(estimate.doubt[event], 0.5 * planted, f"{event}, seed {seed}")

    def test_an_operators_doubt_counts_though_it_is_a_fraction_of_a_microsecond(self):
        estimate = estimates.Estimate(measured(), design(eager_counts=COUNTS), resamples=5)
        estimate.doubt["operator_forward"], estimate.doubt["module_call"] = 0.5e-6, 4e-6

        self.assertIn("operator_forward_us", estimate.unstable())
        self.assertNotIn("module_call_us", estimate.unstable())

    def test_a_micro_steps_doubt_counts_above_50_microseconds(self):
        estimate = estimates.Estimate(measured(), design(eager_counts=COUNTS), resamples=5)
        for doubt, is_unstable in ((49e-6, False), (51e-6, True)):
            estimate.numbers[eager.ONCE], estimate.doubt[eager.ONCE] = 100e-6, doubt
            self.assertIs("micro_step_us" in estimate.unstable(), is_unstable)


class Profile(unittest.TestCase):
    def profile(self, whole, setting):
        return estimates.profile(estimates.Estimate(whole, setting, resamples=10), {}, {})

    def test_it_has_all_of_them_with_their_uncertainty(self):
        for is_cpu in (True, False):
            profile = self.profile(measured(), design(is_cpu, COUNTS))

            self.assertEqual([profile[f"{event}_us"] for event in eager.EVENTS], [2.23, 4.2, 24, 800])
            self.assertEqual([profile["uncertainty"][f"{event}_us"] for event in eager.EVENTS], [0, 0, 0, 0])
            self.assertEqual(profile["about"]["plain_once_us"], dict(forward=[600, 0], backward=[200, 0]))

    def test_one_of_a_single_gpu_has_no_collectives(self):
        whole = [{key: part for key, part in each.items() if key != "collectives"} for each in measured()]

        profile = self.profile(whole, design(False, COUNTS))

        self.assertNotIn("collectives", profile)
        self.assertGreater(profile["optimizer_tensor_us"], 0)
        self.assertEqual(profile["operator_forward_us"], 2.23)

    def test_one_without_plain_steps_has_none_of_them(self):
        profile = self.profile(rounds(3), design())

        self.assertFalse({f"{event}_us" for event in eager.EVENTS} & {*profile, *profile["uncertainty"]})
        self.assertNotIn("plain_once_us", profile["about"])


class Module:
    """As much of torch's modules as counting their calls needs."""

    def __init__(self, *parts):
        self.parts, self.hooks = parts, []

    def modules(self):
        """Each once, as torch has them."""
        return list(dict.fromkeys([self, *(module for part in self.parts for module in part.modules())]))

    def register_forward_pre_hook(self, hook):
        self.hooks.append(hook)
        return types.SimpleNamespace(remove=lambda: self.hooks.remove(hook))

    def __call__(self):
        for hook in self.hooks:
            hook(self, ())
        for part in self.parts:
            part()
        return "done"


class Counting(unittest.TestCase):
    def test_every_call_of_a_module_counts_and_no_hook_is_left(self):
        shared = Module()
        model = Module(shared, Module(Module()))
        model.parts += (model.parts[1],)  # called twice

        self.assertEqual(eager.count_module_calls(model, model), (6, "done"))
        self.assertEqual(shared.hooks, [])

    @unittest.skipUnless(importlib.util.find_spec("torch"), "needs PyTorch")
    def test_operators_are_those_that_torch_dispatches_views_too_and_no_copy_of_what_autograd_saves(self):
        import torch
        x = torch.ones(2, 3, requires_grad=True)

        forward, loss = eager.count_operators(lambda: x.t().tanh().sum())
        backward, _ = eager.count_operators(loss.backward)

        self.assertEqual(forward, 3)
        self.assertEqual(backward, 4)  # ones_like, expand, tanh_backward, t

    @unittest.skipUnless(importlib.util.find_spec("torch"), "needs PyTorch")
    def test_a_backward_has_an_operator_more_for_each_tensor_that_gets_a_gradient(self):
        import torch

        class Model(torch.nn.Linear):
            def forward(self, tokens, labels):
                return types.SimpleNamespace(loss=super().forward(tokens).tanh().sum())

        for frozen, expected in (((), 9 + 2), (("bias",), 7 + 1)):
            model = Model(4, 4)
            for name in frozen:
                model.get_parameter(name).requires_grad_(False)
            counts = eager.PlainStep(model, torch.ones(1, 4), lambda: None).counts

            # t, addmm, tanh, sum; ones_like, expand, tanh_backward, t, mm, t, t, and of the bias sum, view
            self.assertEqual((counts["operator_forward"], counts["operator_backward"]), (4, expected), frozen)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "needs torch and transformers")
    def test_a_layer_has_as_many_operators_as_the_fixture_has(self):
        import torch
        import transformers
        rows = {(row["name"], row["layers"]): row["fp32"] for row in json.loads(FIXTURE.read_text())["rows"]}

        def of_layer(counts):
            return {name: (counts[6][name] - counts[2][name]) / 4 for name in counts[2]}

        for family, name in (("gpt2", "gpt2_gelu_new"), ("llama", "llama_plain")):
            tokens = torch.zeros((1, 8), dtype=torch.int64)
            counts = {layers: eager.PlainStep(eager.make(transformers, eager.Model(family, layers, "sdpa")), tokens,
                                              lambda: None).counts for layers in (2, 6)}

            self.assertEqual(of_layer(counts), {event: (rows[name, 3][key] - rows[name, 1][key]) / 2
                                                for event, key in (("operator_forward", "forward"),
                                                                   ("operator_backward", "backward"),
                                                                   ("module_call", "modules"))}, family)

    def test_what_is_typical_of_each_direction_counts_and_no_first_try(self):
        for typical, expected in ((min, [2.0, 4.0]), (statistics.median, [5.0, 5.0])):
            step = object.__new__(eager.PlainStep)
            step.run = iter([(0.5, 0.5), (2.0, 6.0), (3.0, 4.0), *[(5.0, 5.0)] * (eager.TRIES - 2)]).__next__
            step.typical = typical

            self.assertEqual(step.seconds(), expected)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "needs PyTorch")
    def test_a_cpus_least_is_typical_and_another_devices_median(self):
        import torch
        model = types.SimpleNamespace(modules=lambda: (), parameters=lambda: ())
        for device, typical in (("cpu", min), ("meta", statistics.median)):
            with unittest.mock.patch.multiple(eager.PlainStep, run=lambda self: None, forward=lambda self: torch.ones(
                    1, requires_grad=True).sum()):
                self.assertIs(eager.PlainStep(model, torch.ones(1, device=device), lambda: None).typical, typical)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "needs PyTorch")
    def test_a_plain_step_leaves_no_gradients_and_waits_for_the_device_around_both(self):
        import torch

        class Model(torch.nn.Linear):
            def forward(self, tokens, labels):
                return types.SimpleNamespace(loss=super().forward(tokens).sum())

        waits, model = [], Model(4, 4)
        step = eager.PlainStep(model, torch.ones(1, 4), lambda: waits.append(None))
        before = len(waits)

        seconds = step.seconds()

        self.assertEqual(step.counts["module_call"], 1)
        self.assertGreater(step.counts["operator_forward"], 0)
        self.assertGreater(min(seconds), 0)
        self.assertEqual(len(waits) - before, 3 * (eager.TRIES + 1))
        self.assertEqual([parameter.grad for parameter in model.parameters()], [None, None])

    def test_a_round_has_all_models_with_torchs_linear_and_begins_with_another_one_each_time(self):
        begun = []

        class Step:
            def __init__(self, model, *_):
                self.model, self.counts = model, {}

            def seconds(self):
                begun.append((self.model, functional.linear))
                return [1.0, 2.0]

        def made(_, setting):
            return types.SimpleNamespace(to=lambda device: setting)

        functional = types.SimpleNamespace(linear="torch's")
        torch = types.SimpleNamespace(nn=types.SimpleNamespace(functional=functional), randint=lambda *_, device: None)
        with unittest.mock.patch.object(eager, "PlainStep", Step), unittest.mock.patch.object(eager, "make", made):
            timer = eager.EagerTimer(torch, None, "cpu", None)
            functional.linear = "stage 3's"
            found = [timer.round() for _ in range(2)]

        self.assertEqual(found[0], {(*setting, direction): seconds for setting in eager.MODELS
                                    for direction, seconds in (("forward", 1.0), ("backward", 2.0))})
        self.assertEqual(found[1], found[0])
        self.assertNotEqual(begun[0], begun[len(eager.MODELS)])
        self.assertEqual({linear for _, linear in begun}, {"torch's"})
        self.assertEqual(functional.linear, "stage 3's")  # which DeepSpeed's steps are to have


if __name__ == "__main__":
    unittest.main()
