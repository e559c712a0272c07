"""Measurements of a simulated machine, for tests of scripts/calibration."""
import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "scripts" / "calibration"))

import collectives
import estimates
import fitting
import steps
from gathers import GATHERED

COST = dict(gradient_hook=27e-6, sub_module_hook=134e-6, collective=67e-6, optimizer_tensor=48e-6,
            synchronization=113e-6)
BEYOND = dict(all_gather=240e-6, reduce_scatter=480e-6, pipelined_collective=90e-6)
LATENCY, BUS_BANDWIDTH = 300e-6, 0.5e9


def case_counts(case, collectives_of_case):
    tensors = 12 * case.layers + 4
    hooks = case.accumulation * (48 * case.layers + 24)
    owned = tensors // 2 if case.stage in (1, 2) else tensors
    return steps.host_events(case, tensors, collectives_of_case, owned, hooks, gathered_of(case))


def gathered_of(case):
    """Of the tensors of a GPT-2, on demand each in forward and in backward, and the tied one once more each."""
    tensors = 12 * case.layers + 4
    of_a_micro_step = {"on demand": 2 * tensors + 2, "ahead": tensors}.get(case.gathers, 0)
    return case.accumulation * of_a_micro_step


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


def design(is_cpu=True, eager_counts=None):
    calls = [calls_of(case) for case in steps.CASES]
    pipelined = [pipelined_of(case) for case in steps.CASES]
    counts = [case_counts(case, len(made) + more) for case, made, more in zip(steps.CASES, calls, pipelined)]
    return estimates.Design(counts, calls, pipelined, 2, is_cpu, eager_counts)


def line(kind, size):
    return LATENCY + collectives.bus_factor(kind, 2) * size / BUS_BANDWIDTH


def rounds(count=30, noise=0.0, misfit=0.0, seed=1, **costs):
    """Measurements of a machine that costs COST, or `costs`; misfit: a part of each case that no event explains."""
    generator, of_rows = random.Random(seed), random.Random(99)
    setting = design().with_gathered()
    planted = {**COST, **BEYOND, GATHERED: 0.0, **costs}
    unexplained = [1 + of_rows.gauss(0, misfit) for _ in setting.counts]

    def noisy(seconds):
        return seconds * (1 + generator.gauss(0, noise))

    def step(counts, calls, factor):
        host = fitting.predicted(planted, counts) * factor + sum(line(*call) for call in calls)
        return noisy(host) + 0.005, 0.005

    return [{"collectives": {(kind, "fp32", size): noisy(line(kind, size))
                             for kind in collectives.KINDS for size in collectives.SIZES},
             "steps": [step(*row) for row in zip(setting.counts, setting.calls, unexplained)]}
            for _ in range(count)]
