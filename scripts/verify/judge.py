"""What the runs in DeepSpeed say of the tuned results."""
import dataclasses
import itertools
import math

from verify import ranking
from verify.drift import Pace, spread_of_pairs
from verify.schedule import CHECK, REFERENCE, TIME

TOLERANCE = {"fp32": 1e-3, "bf16": 2e-2, "fp16": 2e-2}  # of losses, relative to stage 0's
LARGEST_REGRET = 0.02


@dataclasses.dataclass
class Row:
    """A configuration on both sides. Seconds are those of a step; `passes` are without the drift."""
    configuration: object
    cost: float = 0.0       # ours, as the metric has it
    real_cost: float = 0.0
    passes: tuple = ()
    losses: list = None
    baseline: list = None   # stage 0's losses
    peak_bytes: int = None
    collectives: dict = None

    @property
    def real_s(self):
        return math.exp(sum(map(math.log, self.passes)) / len(self.passes))

    @property
    def ratio(self):
        return self.configuration.step_s / self.real_s

    def deviation(self):
        """The largest of the losses from stage 0's, relative; None where there is nothing to compare."""
        if not self.losses or not self.baseline:
            return None
        if not all(map(math.isfinite, self.losses)):
            return math.inf
        return max(abs(mine - its) / abs(its) for mine, its in zip(self.losses, self.baseline))

    def trains(self):
        deviation = self.deviation()
        return None if deviation is None else deviation <= TOLERANCE[self.configuration.precision]

    def sends_alike(self):
        return None if self.collectives is None else self.collectives == self.configuration.collectives


def rows_of(configurations, events, metric):
    """(rows, Pace): those timed twice, in the order of `configurations`."""
    visits = [event for event in events if event["event"] == "visit"]
    pace = Pace([(visit["at_s"], visit["step_s"]) for visit in visits if visit["kind"] == REFERENCE])
    times = {}
    for visit in visits:
        if visit["kind"] == TIME:
            times.setdefault(visit["name"], []).append(visit["step_s"] / pace.at(visit["at_s"]))
    checks = {visit["name"]: visit for visit in visits if visit["kind"] == CHECK}
    rows = []
    for each in configurations:
        if len(times.get(each.name, ())) < 2:
            continue
        row, check = Row(each, passes=tuple(times[each.name])), checks.get(each.name, {})
        row.cost, row.real_cost = each.cost(each.step_s, metric), each.cost(row.real_s, metric)
        row.losses, row.peak_bytes = check.get("losses"), check.get("peak_bytes")
        row.collectives = check.get("collectives")
        rows.append(row)
    return rows, pace, checks


def give_baselines(rows, baselines, checks):
    """baselines: batch: the name of its stage 0."""
    for row in rows:
        row.baseline = checks.get(baselines.get(row.configuration.batch), {}).get("losses")


def groups_of(rows):
    groups = {}
    for row in rows:
        groups.setdefault(row.configuration.batch, []).append(row)
    return {batch: group for batch, group in groups.items() if len(group) >= 2}


def agreement(rows, ours, theirs):
    """Rank correlations of two functions of rows, over all and within the batches."""
    pairs = [([ours(row) for row in group], [theirs(row) for row in group]) for group in groups_of(rows).values()]
    everything = [ours(row) for row in rows], [theirs(row) for row in rows]
    return {"spearman": ranking.spearman(*everything), "kendall": ranking.kendall(*everything),
            "spearman_within": ranking.spearman_within(pairs), "kendall_within": ranking.kendall_within(pairs)}


def batch_lines(rows):
    lines = []
    for batch, group in groups_of(rows).items():
        ours, theirs = [row.cost for row in group], [row.real_cost for row in group]
        lines.append({"micro_batch": batch[0], "accumulation": batch[1], "precision": batch[2],
                      "sequence_length": batch[3], "configurations": len(group),
                      "spearman": ranking.spearman(ours, theirs), "kendall": ranking.kendall(ours, theirs),
                      "ceiling": ranking.spearman(*zip(*(row.passes for row in group))),
                      "regret": ranking.regret(ours, theirs)})
    return lines


def noise_of(rows, pace):
    """Of one visit, as a share: the larger of what the reference and the two passes say, and the difference below which
    two configurations, each the mean of two visits, are not told apart: two standard deviations of it."""
    spreads = [pace.spread(), spread_of_pairs([row.passes[0] for row in rows], [row.passes[1] for row in rows])]
    known = [spread for spread in spreads if spread is not None]
    visit = max(known) if known else None
    return {"reference_spread": spreads[0], "pass_spread": spreads[1], "visit_spread": visit,
            "not_told_apart_below": None if visit is None else 2 * visit}


def pairs_told_apart(rows, limit):
    """Of the pairs within batches: how many differ by more than `limit` in reality, and how many of those ours has in
    the other order."""
    counts = {"pairs": 0, "told_apart": 0, "ordered_otherwise": 0}
    for group in groups_of(rows).values():
        for a, b in itertools.combinations(group, 2):
            counts["pairs"] += 1
            if limit is None or abs(math.log(a.real_cost / b.real_cost)) <= limit:
                continue
            counts["told_apart"] += 1
            counts["ordered_otherwise"] += (a.cost < b.cost) != (a.real_cost < b.real_cost)
    return counts


def pick_of(rows, name):
    """How much slower than the fastest of all is the tuner's pick, and which that is."""
    picked = next(row for row in rows if row.configuration.name == name)
    fastest = min(rows, key=lambda row: row.real_cost)
    return {"pick": name, "fastest": fastest.configuration.name, "regret": picked.real_cost / fastest.real_cost - 1}


def judge(rows, pace, pick, failed):
    """Everything but the rows themselves; "faults" is empty if the verdict is good."""
    noise = noise_of(rows, pace)
    result = {
        "ours_and_real": agreement(rows, lambda row: row.cost, lambda row: row.real_cost),
        "ceiling": agreement(rows, lambda row: row.passes[0] / row.real_s * row.real_cost,
                             lambda row: row.passes[1] / row.real_s * row.real_cost),
        "batches": batch_lines(rows), "noise": noise, "pace": pace.extremes(),
        "pairs": pairs_told_apart(rows, noise["not_told_apart_below"]), **pick_of(rows, pick), "failed": failed}
    result["faults"] = faults_of(rows, result)
    return result


def faults_of(rows, result):
    faults = []
    noise = result["noise"]["not_told_apart_below"]
    if noise is not None and result["regret"] > max(LARGEST_REGRET, noise):
        faults.append(f"{result['pick']} is {result['regret']:.1%} slower than {result['fastest']}, more than noise "
                      f"or {LARGEST_REGRET:.0%}")
    for row in rows:
        if row.trains() is False:
            faults.append(f"{row.configuration.name} does not train as stage 0 does: its loss is off by "
                          f"{row.deviation():.1e}")
        if row.sends_alike() is False:
            faults.append(f"{row.configuration.name} sends otherwise: {difference(row)}")
    faults += [f"{name} failed in DeepSpeed: {reason}" for name, reason in result["failed"].items()]
    return faults


def difference(row):
    ours, real = row.configuration.collectives, row.collectives
    return "; ".join(f"{kind} {calls_and_bytes(ours.get(kind))} here, {calls_and_bytes(real.get(kind))} in DeepSpeed"
                     for kind in sorted({*ours, *real}) if ours.get(kind) != real.get(kind))


def calls_and_bytes(sums):
    return "none" if sums is None else f"{sums[0]} calls of {sums[1]} bytes"
