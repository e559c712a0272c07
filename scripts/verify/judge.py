"""The runs in DeepSpeed beside the tuned results, in numbers; what they say is in verify/findings.py."""
import dataclasses
import itertools
import math
import statistics

from verify import ranking
from verify.choice import distinct
from verify.drift import Pace, spread_of_pairs
from verify.schedule import CHECK, REFERENCE, TIME


@dataclasses.dataclass
class Row:
    """A configuration on both sides. Seconds are those of a step; `passes` are without the drift."""
    configuration: object
    cost: float = 0.0       # ours, as the metric has it
    real_cost: float = 0.0
    passes: tuple = ()
    losses: list = None
    loss_cycle: int = None  # after so many steps the data of the losses come again
    norms: list = None      # of the gradients, None where there is no number
    baseline: dict = None   # the check of stage 0
    peak_bytes: int = None
    collectives: dict = None

    @property
    def name(self):
        return self.configuration.name

    @property
    def real_s(self):
        return math.exp(sum(map(math.log, self.passes)) / len(self.passes))

    @property
    def ratio(self):
        return self.configuration.step_s / self.real_s

    def deviation(self):
        """The largest of the losses from stage 0's, relative; None where there is nothing to compare."""
        return largest_deviation(self.losses, (self.baseline or {}).get("losses"))

    def norm_deviation(self):
        """(the median, the largest) over the steps in which stage 0 has a norm of how far this one's is off, relative;
        None each where there is nothing to compare. A norm follows from all updates before it, so that those of single steps
        part where losses do not."""
        theirs = (self.baseline or {}).get("norms") or []
        pairs = [(mine, its) for mine, its in zip(self.norms or [], theirs) if its]
        if not pairs:
            return None, None
        if any(mine is None for mine, _ in pairs):
            return math.inf, math.inf
        each = [largest_deviation([mine], [its]) for mine, its in pairs]
        return statistics.median(each), max(each)

    def fall(self):
        """(how much lower the losses are when the same data come for the last time than the first time, as a share,
        its standard error), or None."""
        cycle, losses = self.loss_cycle, self.losses
        if not losses or not cycle or cycle < 2 or len(losses) < 2 * cycle or not all(map(math.isfinite, losses)):
            return None
        begin = (len(losses) // cycle - 1) * cycle
        falls = [first - last for first, last in zip(losses[:cycle], losses[begin:begin + cycle])]
        mean = statistics.fmean(map(abs, losses[:cycle]))
        if mean == 0:
            return None
        return statistics.fmean(falls) / mean, statistics.stdev(falls) / math.sqrt(cycle) / mean

    def sends_alike(self):
        return None if self.collectives is None else self.collectives == self.configuration.collectives


def largest_deviation(mine, theirs):
    if not mine or not theirs:
        return None
    if not all(map(math.isfinite, mine)):
        return math.inf
    if not all(map(math.isfinite, theirs)):
        return None
    return max(0.0 if a == b else abs(a - b) / abs(b) if b else math.inf for a, b in zip(mine, theirs))


def rows_of(configurations, events, metric):
    """(rows, Pace, checks by name): those timed twice, in the order of `configurations`."""
    visits = [event for event in events if event["event"] == "visit"]
    pace = Pace([(visit["at_s"], visit["step_s"]) for visit in visits if visit["kind"] == REFERENCE])
    times = {}
    for visit in visits:
        if visit["kind"] == TIME:
            times.setdefault(visit["name"], []).append(visit["step_s"] / pace.at(visit["at_s"]))
    checks = {visit["name"]: visit for visit in visits if visit["kind"] == CHECK}
    rows = []
    for each in distinct(configurations):
        if len(times.get(each.name, ())) < 2:
            continue
        check = checks.get(each.name, {})
        row = Row(each, passes=tuple(times[each.name]), **{
            key: check.get(key) for key in ("losses", "loss_cycle", "norms", "peak_bytes", "collectives")})
        row.cost, row.real_cost = each.cost(each.step_s, metric), each.cost(row.real_s, metric)
        rows.append(row)
    return rows, pace, checks


def give_baselines(rows, baselines, checks):
    """baselines: batch: the name of its stage 0."""
    for row in rows:
        row.baseline = checks.get(baselines.get(row.configuration.batch))


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
                      "ceiling": ranking.spearman(*zip(*(row.passes[:2] for row in group))),
                      "regret": ranking.regret(ours, theirs)})
    return lines


def noise_of(rows, pace):
    """Of one visit, as a share: the larger of what the reference and the two passes say, and the difference below which
    two configurations, each the mean of its visits, are not told apart: two standard deviations of it."""
    spreads = [pace.spread(), spread_of_pairs([row.passes[0] for row in rows], [row.passes[1] for row in rows])]
    known = [spread for spread in spreads if spread is not None]
    visit = max(known) if known and rows else None
    passes = min((len(row.passes) for row in rows), default=0)
    return {"reference_spread": spreads[0], "pass_spread": spreads[1], "visit_spread": visit, "passes": passes,
            "not_told_apart_below": None if visit is None else 2 * visit * math.sqrt(2 / passes)}


def pairs_told_apart(rows, limit):
    """Of the pairs within batches: how many differ by more than `limit` in reality, and how many of those ours has in
    the other order: one that ours has as a tie is half of one, and so is one within two standard errors of ours."""
    counts = {"pairs": 0, "told_apart": 0, "ordered_otherwise": 0}
    for group in groups_of(rows).values():
        for a, b in itertools.combinations(group, 2):
            counts["pairs"] += 1
            if limit is None or abs(math.log(a.real_cost / b.real_cost)) <= limit:
                continue
            counts["told_apart"] += 1
            if a.cost != b.cost and (a.cost < b.cost) == (a.real_cost < b.real_cost):
                continue
            ours = 2 * math.hypot(a.configuration.error, b.configuration.error)
            counts["ordered_otherwise"] += 0.5 if abs(math.log(a.cost / b.cost)) <= ours else 1
    return counts


def pick_of(rows, name):
    """How much slower than the fastest of all is the tuner's pick (None: it was not timed), and which that is."""
    picked = next((row for row in rows if row.name == name), None)
    fastest = min(rows, key=lambda row: row.real_cost, default=None)
    return {"pick": name, "fastest": fastest and fastest.name,
            "regret": None if picked is None else picked.real_cost / fastest.real_cost - 1}


def times_by_stage(rows, noise, pace):
    """A line per stage and one of all ("stage" None): the median of ours over real, how much the ratios differ among
    themselves, and what the median is uncertain by (None: not known): two standard errors of both sides' noise, and how
    far the machine's pace moved while DeepSpeed ran, since it may have been as far off while ours did."""
    lines = []
    stages = sorted({row.configuration.stage for row in rows})
    for stage in [*stages, None] if stages else []:
        mine = [row for row in rows if stage in (None, row.configuration.stage)]
        logs = [math.log(row.ratio) for row in mine]
        middle, uncertainty = statistics.median(logs), None
        if noise["visit_spread"] is not None:
            # A median is uncertain by a quarter more than a mean.
            ours = statistics.fmean(row.configuration.error for row in mine)
            visits = 1.25 * math.sqrt((noise["visit_spread"] ** 2 / noise["passes"] + ours ** 2) / len(mine))
            low, high = pace.extremes()
            uncertainty = 2 * visits + math.log(high / low) / 2
        lines.append({"stage": stage, "configurations": len(mine), "ratio": math.exp(middle),
                      "spread": 1.4826 * statistics.median(abs(each - middle) for each in logs),
                      "uncertainty": uncertainty})
    return lines


def judge(rows, pace, pick, failed):
    """Everything but the rows themselves and what follows."""
    noise = noise_of(rows, pace)
    return {
        "ours_and_real": agreement(rows, lambda row: row.cost, lambda row: row.real_cost),
        "ceiling": agreement(rows, lambda row: row.passes[0] / row.real_s * row.real_cost,
                             lambda row: row.passes[1] / row.real_s * row.real_cost),
        "batches": batch_lines(rows), "noise": noise, "pace": pace.extremes(),
        "times": times_by_stage(rows, noise, pace),
        "pairs": pairs_told_apart(rows, noise["not_told_apart_below"]), **pick_of(rows, pick), "failed": failed}
