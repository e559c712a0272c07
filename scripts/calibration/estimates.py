"""From rounds of measurements to microseconds per event and lines of the collectives.

A round is {"steps": [(seconds with DeepSpeed, without)]}, and may have "eager", of several ranks "collectives" ({(kind,
type, bytes): seconds}), on a CPU "products", "attention" and "operations": what the round() of their timers returns.
"""
import math
import statistics

import attention
import eager
import fitting
import operations
import products
from collectives import LARGE, LARGE_ABOVE, bus_factor
from fitting import EVENTS
from gathers import GATHERED
from hooks import HOOK

GOOD = 0.15  # of a number: how far it may be off
SETTLED = 0.05  # of a number: what its rounds leave open, beside what the model cannot explain
VAGUE = 0.25  # median error of the fit: on a quiet machine it is 0.03 to 0.08
LEAST_US = 5.0  # an event below is next to nothing, however uncertain,
LEAST_OPERATOR_US = 0.05  # but a step has a hundred times as many operators,
LEAST_ONCE_US = 50.0  # and a micro-step takes milliseconds
TOLD_APART = 2.0  # standard errors of the fit: by so much both of two like events must be more than nothing

# What stage 3 does around a call of these kinds, which all_reduce has no part of: in their latency.
EXTRA_KINDS = ("all_gather", "reduce_scatter")
PIPELINED = "pipelined_collective"  # begun before the one before it was waited for


class Design:
    """What was measured: per case the events and collectives of a step.

    counts: by event; calls: [(kind, bytes)] of those that are waited for at once; pipelined: how many others.
    On a GPU (not is_cpu) collectives hide behind the host code of such small steps: none is taken away, and a
    call is a `collective` like any other. eager_counts: those of plain steps by model, if they were measured.
    has_gathered: a tensor that stage 3 gathers is an event; else `sub_module_hook` has what it takes, too.
    """

    def __init__(self, counts, calls, pipelined, ranks, is_cpu=True, eager_counts=None, has_gathered=False):
        self.calls, self.ranks, self.is_cpu, self.eager_counts = calls, ranks, is_cpu, eager_counts or {}
        of_deepspeed = (*EVENTS, *((PIPELINED,) if is_cpu else ()), *((GATHERED,) if has_gathered else ()))
        self.terms = (*of_deepspeed, *EXTRA_KINDS) if is_cpu else of_deepspeed
        self.events = (*of_deepspeed, *(eager.EVENTS if self.eager_counts else ()))
        self.rows = counts, calls, pipelined
        self.counts = [self.with_terms(*row) for row in zip(counts, calls, pipelined)]

    def with_gathered(self):
        return Design(*self.rows, self.ranks, self.is_cpu, self.eager_counts, has_gathered=True)

    def with_terms(self, counts, calls, pipelined):
        if self.is_cpu:
            kinds = [kind for kind, _ in calls]
            counts = {**counts, "collective": counts["collective"] - pipelined, PIPELINED: pipelined,
                      **{kind: kinds.count(kind) for kind in EXTRA_KINDS}}
        return {term: counts.get(term, 0) for term in self.terms}


def median_call(rounds, key):
    return statistics.median(part["collectives"][key] for part in rounds)


def beyond_lines(rounds, of_lines):
    """{kind: seconds a byte that a large message takes beside its line's}, of any type: copies are of bytes."""
    found = {}
    for kind, name, size in rounds[0].get("collectives", ()):
        if size == LARGE:
            latency, per_byte = of_lines[kind, name][0]
            found[kind] = max(0.0, (median_call(rounds, (kind, name, size)) - latency) / size - per_byte)
    return found


def lines(rounds):
    """{(kind, type): ((seconds a call, seconds a byte), their standard errors)}"""
    points = {}
    for kind, name, size in rounds[0].get("collectives", ()):
        if size <= LARGE_ABOVE:
            points.setdefault((kind, name), {})[size] = median_call(rounds, (kind, name, size))
    return {key: fitting.fit_line(sizes) for key, sizes in points.items()}


def alone(calls, of_lines):
    """Seconds of these collectives without DeepSpeed around them."""
    total = 0.0
    for kind, size in calls:
        latency, per_byte = of_lines[kind, "fp32"][0]
        total += latency + size * per_byte
    return total


def samples(rounds, design, of_lines):
    """[(counts, seconds of host code)] of the cases."""
    found = []
    for k, (counts, calls) in enumerate(zip(design.counts, design.calls)):
        seconds = statistics.median(part["steps"][k][0] - part["steps"][k][1] for part in rounds)
        found.append((counts, seconds - (alone(calls, of_lines) if design.is_cpu else 0.0)))
    return found


def told_apart(rounds, design):
    """`design` with an event for gathered tensors, if the rounds tell what one takes from what a module's hook does.

    Both have to be there whenever a module is fetched that was released, so that the steps' times say their sum well
    and each by itself only where gathers differ enough beside all else that does. The standard errors say whether: of
    two numbers that are not told apart both are large. Then `sub_module_hook` has the sum.
    """
    wider = design.with_gathered()
    measured = samples(rounds, wider, lines(rounds))
    found = fitting.fit(measured, wider.terms)
    errors = fitting.errors_of(found, measured, wider.terms)
    return wider if all(found[event] > TOLD_APART * errors[event] for event in (GATHERED, HOOK)) else design


def numbers(rounds, design):
    """All that a profile has with its doubt, seconds, by names: an event, or (kind, type, which of the line's two)."""
    of_lines = lines(rounds)
    found = fitting.fit(samples(rounds, design, of_lines), design.terms)
    found.update(eager.numbers(rounds, design.eager_counts))
    for key, (line, _) in of_lines.items():
        found.update({(*key, i): value for i, value in enumerate(line)})
    found.update({(kind, "large", 2): value for kind, value in beyond_lines(rounds, of_lines).items()})
    return found


def standard_errors(rounds, design, found):
    of_lines = lines(rounds)
    errors = fitting.errors_of(found, samples(rounds, design, of_lines), design.terms)
    errors.update(eager.standard_errors(rounds, design.eager_counts, found))
    for key, (_, line_errors) in of_lines.items():
        errors.update({(*key, i): value for i, value in enumerate(line_errors)})
    return errors


def least_us(event):
    if event == eager.ONCE:
        return LEAST_ONCE_US
    return LEAST_OPERATOR_US if event.startswith("operator_") else LEAST_US


class Estimate:
    """The numbers with two kinds of doubt: `noise` over rounds, and `doubt`, with what the model leaves
    unexplained if that is more."""

    def __init__(self, rounds, design, resamples=100):
        self.rounds, self.design = rounds, told_apart(rounds, design)
        self.numbers = numbers(rounds, self.design)
        self.noise = fitting.bootstrap(rounds, lambda drawn: numbers(drawn, self.design), resamples)
        errors = standard_errors(rounds, self.design, self.numbers)
        self.doubt = {name: max(self.noise[name], errors.get(name, 0.0)) for name in self.numbers}

    def exceeding(self, doubt, share):
        """Events whose `doubt` is more than a share of them and more than next to nothing."""
        return [event for event in self.design.events
                if doubt[event] > max(share * self.numbers[event], least_us(event) * 1e-6)]

    def is_settled(self):
        """Further rounds would not change much."""
        return not self.exceeding(self.noise, SETTLED)

    def unstable(self):
        return [f"{event}_us" for event in self.exceeding(self.doubt, GOOD)]

    def errors(self):
        return fitting.relative_errors(self.numbers, samples(self.rounds, self.design, lines(self.rounds)))


def plain_seconds(rounds):
    """The quickest case's forward and backward without DeepSpeed: the pace of the machine meanwhile."""
    return min(statistics.median(part["steps"][k][1] for part in rounds) for k in range(len(rounds[0]["steps"])))


def is_vague(profile):
    """Whether it does not even explain what it was made of: the machine was too busy."""
    error = profile["about"]["median_relative_error"]
    return error is None or error > VAGUE


def microseconds(seconds, digits=1):
    """At most a tenth of a second, which is what nobody could tell."""
    return round(min(seconds, 0.1) * 1e6, digits)


def of_events(events, seconds):
    """Profile's entries; an operator takes some 2 us, so its second digit counts."""
    def digits(event):
        return 2 if event.startswith(("operator_", "module_")) else 1
    return {f"{event}_us": microseconds(seconds[event], digits(event)) for event in events}


def bandwidth_entry(kind, ranks, per_byte, per_byte_off):
    bandwidth = bus_factor(kind, ranks) / per_byte / 1e9 if per_byte > 0 else 1e4
    share = per_byte_off / per_byte if per_byte > 0 else 1.0
    return {"bus_bandwidth_gb_per_s": round(bandwidth, 4),
            "bus_bandwidth_uncertainty_gb_per_s": round(bandwidth * share, 4)}


def collective_entry(kind, name, estimate):
    numbers, doubt, ranks = estimate.numbers, estimate.doubt, estimate.design.ranks
    per_byte, per_byte_off = numbers[kind, name, 1], doubt[kind, name, 1]
    entry = {"latency_us": microseconds(numbers[kind, name, 0] + numbers.get(kind, 0.0)),
             "latency_uncertainty_us": microseconds(math.hypot(doubt[kind, name, 0], doubt.get(kind, 0.0))),
             **bandwidth_entry(kind, ranks, per_byte, per_byte_off)}
    beyond = kind, "large", 2
    if numbers.get(beyond, 0.0) > 0:
        entry["large"] = {"above_bytes": LARGE_ABOVE,
                          **bandwidth_entry(kind, ranks, per_byte + numbers[beyond],
                                            math.hypot(per_byte_off, doubt[beyond]))}
    return entry


def once_a_micro_step(estimate):
    """What a plain forward and a plain backward take beside their operators and modules."""
    if not estimate.design.eager_counts:
        return {}
    numbers, doubt = estimate.numbers, estimate.doubt
    return {"plain_once_us": {direction: [microseconds(seconds[f"{direction}_once"]) for seconds in (numbers, doubt)]
                              for direction in eager.DIRECTIONS}}


def profile(estimate, measured_on, about):
    """What dstune.host_overhead reads."""
    events = estimate.design.events
    found = of_events(events, estimate.numbers)
    found["uncertainty"] = of_events(events, estimate.doubt)
    table = {}
    for key in estimate.numbers:
        if isinstance(key, tuple) and key[2] == 0:
            table.setdefault(key[0], {})[key[1]] = collective_entry(key[0], key[1], estimate)
    errors = estimate.errors()
    if table:
        found["collectives"] = table
    for name, entries in (("products", products.entries), ("attention", attention.entries),
                          ("operations", operations.entries)):
        if name in estimate.rounds[0]:
            found[name] = entries(estimate.rounds)
    found["measured_on"] = measured_on
    found["about"] = dict(
        made_by="scripts/tune.sh --calibrate", cases=len(errors), rounds=len(estimate.rounds),
        median_relative_error=round(statistics.median(errors), 3) if errors else None,
        worst_relative_error=round(max(errors), 3) if errors else None,
        unstable=estimate.unstable(), plain_step_ms=round(plain_seconds(estimate.rounds) * 1e3, 2),
        beyond_events_us={term: [microseconds(estimate.numbers[term]), microseconds(estimate.doubt[term])]
                          for term in estimate.design.terms if term not in events},
        **once_a_micro_step(estimate), **about)
    return found
