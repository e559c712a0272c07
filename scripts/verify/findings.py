"""What is good, wrong, or cannot be told of the tuned results, each with its reason."""
import dataclasses
import math

GOOD, WRONG, CANNOT_TELL = "good", "wrong", "cannot tell"
LARGEST_REGRET = 0.02
COARSE = 0.1                   # noise, beyond which no pick is said to be good
LEAST_PAIRS = 3                # told apart, to say something of an order
LARGEST_SHARE_OTHERWISE = 0.1  # of the pairs that are told apart; one pair alone may be chance
TIME_BAND = 1.1                # the median ratio of a stage's times is within 1 / 1.1 and 1.1,
ROW_BAND = 1.5                 # that of each configuration within 1 / 1.5 and 1.5
PEAK_BAND = 0.02               # of a peak, as a share of ours; or in bytes, for scratch of kernels:
PEAK_ALLOWANCE = {"cpu": 2**20, "cuda": 4 * 2**20}
TOLERANCE = {"fp32": 1e-3, "bf16": 2e-2, "fp16": 2e-2}       # of losses, relative to stage 0's
NORM_TOLERANCE = {"fp32": 1e-3, "bf16": 0.1, "fp16": 0.1}    # of gradients' norms, likewise: of the median over steps,
NORM_OF_A_STEP = 5             # and so many times that of each step
LEAST_FALL = {"fp32": 0.0, "bf16": 1e-3, "fp16": 1e-3}       # of losses: less is rounding
TIMING = ("pick", "order", "time")

MORE_VISITS = "an idle machine, or more visits (--passes, --steps)"


# By what is not known.
NEEDED = {"peak": "a C++ compiler where DeepSpeed runs, which counts torch's memory", "memory limit": "new results",
          "communication": "new runs", "fall of the losses": "more --loss-steps"}


@dataclasses.dataclass
class Finding:
    what: str
    outcome: str
    text: str
    needs: str = ""  # cannot tell: what would be needed


def verdict_of(findings):
    outcomes = [finding.outcome for finding in findings]
    return next((outcome for outcome in (WRONG, CANNOT_TELL) if outcome in outcomes), GOOD)


def findings_of(rows, result, baselines_failed=()):
    """All findings: of each subject at least one."""
    return [*of_runs(rows, result, baselines_failed), of_pick(rows, result), of_order(result),
            *of_times(rows, result), *of_rows("peaks", rows, peak), *of_rows("limit", rows, limit),
            *of_rows("communication", rows, communication), *of_rows("losses", rows, losses),
            *of_rows("learning", rows, learning), *of_rows("norms", rows, norms)]


def of_runs(rows, result, baselines_failed):
    found = [Finding("runs", WRONG, f"{name} failed in DeepSpeed: {reason}")
             for name, reason in result["failed"].items() if name not in baselines_failed]
    found += [Finding("runs", CANNOT_TELL, f"{name} failed in DeepSpeed: {result['failed'][name]}",
                      "a batch whose stage 0 runs, to compare losses with")
              for name in baselines_failed if name in result["failed"]]
    if not rows:
        found.append(Finding("runs", CANNOT_TELL, "no configuration was timed twice", "a run that completes"))
    return found or [Finding("runs", GOOD, f"{len(rows)} configurations ran")]


def of_pick(rows, result):
    noise, regret, pick = result["noise"]["not_told_apart_below"], result["regret"], result["pick"]
    if regret is None:
        return Finding("pick", CANNOT_TELL, f"{pick} was not timed twice", f"two runs of {pick}")
    text = (f"{pick} is the fastest" if pick == result["fastest"] else
            f"{pick} is {regret:.1%} slower than {result['fastest']}")
    if len(rows) < 2:
        return Finding("pick", CANNOT_TELL, f"{pick} is the only one that was timed", "more configurations (--configs)")
    if noise is None:
        return Finding("pick", CANNOT_TELL, f"{text}, with noise that is not known", "more visits (--passes)")
    if regret > max(LARGEST_REGRET, noise):
        return Finding("pick", WRONG, f"{text}, more than noise or {LARGEST_REGRET:.0%}")
    if regret > LARGEST_REGRET or noise > COARSE:
        return Finding("pick", CANNOT_TELL, f"{text}, below {noise:.1%} nothing is distinguishable", MORE_VISITS)
    return Finding("pick", GOOD, f"{text}, {LARGEST_REGRET:.0%} are allowed")


def of_order(result):
    pairs = result["pairs"]
    text = f"{pairs['ordered_otherwise']:g} of {pairs['told_apart']} distinguishable pairs are ordered differently here"
    is_much = pairs["ordered_otherwise"] > LARGEST_SHARE_OTHERWISE * pairs["told_apart"]
    if is_much and pairs["ordered_otherwise"] > 1:
        return Finding("order", WRONG, f"{text}, more than {LARGEST_SHARE_OTHERWISE:.0%}")
    if is_much or pairs["told_apart"] < LEAST_PAIRS:
        return Finding("order", CANNOT_TELL, text, "more configurations that differ (--configs), or less noise")
    return Finding("order", GOOD, text)


def of_times(rows, result):
    found = [of_median(line) for line in result["times"]]
    spread, (low, high) = result["noise"]["visit_spread"], result["pace"]
    for row in rows if spread is not None else []:
        allowed = math.log(ROW_BAND * math.sqrt(high / low)) + 2 * (spread + row.configuration.error)
        if abs(math.log(row.ratio)) > allowed:
            found.append(Finding("time", WRONG, f"{row.name} takes {row.ratio:.2f} of DeepSpeed's time, beyond "
                                                f"{1 / ROW_BAND:.2f} to {ROW_BAND} and noise"))
    return found or [Finding("time", CANNOT_TELL, "no time is known", "a run that completes")]


def of_median(line):
    where = "all stages" if line["stage"] is None else f"stage {line['stage']}"
    text = f"median of ours over DeepSpeed's time in {where}: {line['ratio']:.2f}"
    if line["uncertainty"] is None:
        return Finding("time", CANNOT_TELL, f"{text}, with noise that is not known", "more visits (--passes)")
    text += f", uncertain by {line['uncertainty']:.1%} (spread {line['spread']:.1%})"
    off, band = abs(math.log(line["ratio"])), math.log(TIME_BAND)
    if off > band + line["uncertainty"]:
        return Finding("time", WRONG, f"{text}, beyond {1 / TIME_BAND:.2f} to {TIME_BAND}")
    if off > band or line["uncertainty"] > COARSE:
        return Finding("time", CANNOT_TELL, text, MORE_VISITS + ", of ours as well")
    return Finding("time", GOOD, text)


def of_rows(what, rows, judged):
    """What is not good of each row, with equal words for several said once; or that all are."""
    found, good = {}, 0
    for row in rows:
        outcome, text, needs = judged(row)
        if outcome == GOOD:
            good += 1
        elif outcome == CANNOT_TELL:
            found.setdefault((outcome, text, needs), []).append(row.name)
        else:
            found[outcome, f"{row.name} {text}", needs] = []
    lines = [Finding(what, outcome, text if not names else f"{text}: {', '.join(names)}", needs)
             for (outcome, text, needs), names in found.items()]
    if good and not lines:
        return [Finding(what, GOOD, f"as it should be in all {good}")]
    return lines or [Finding(what, CANNOT_TELL, "nothing is known", "a run that completes")]


def unknown(what):
    return CANNOT_TELL, f"{what} not known", NEEDED.get(what, "runs of a stage 0 of that batch")


def peak(row):
    ours, real = row.configuration.peak_bytes, row.peak_bytes
    if not real or not ours:
        return unknown("peak")
    allowance = PEAK_ALLOWANCE.get(row.configuration.settings["backend"], 0)
    if abs(real - ours) > max(PEAK_BAND * ours, allowance):
        return WRONG, f"needs {mib(real)} in DeepSpeed, {mib(ours)} here", ""
    return GOOD, "", ""


def limit(row):
    bound = row.configuration.memory_limit
    if not row.peak_bytes or not bound:
        return unknown("peak" if bound else "memory limit")
    if row.peak_bytes > bound:
        return WRONG, f"does not fit: it needs {mib(row.peak_bytes)} in DeepSpeed, the limit is {mib(bound)}", ""
    return GOOD, "", ""


def mib(size):
    return f"{size / 2**20:.1f} MiB"


def communication(row):
    if row.collectives is None:
        return unknown("communication")
    return (GOOD, "", "") if row.sends_alike() else (WRONG, f"sends something else: {difference(row)}", "")


def difference(row):
    ours, real = row.configuration.collectives, row.collectives
    return "; ".join(f"{kind} {sums_text(ours.get(kind))} here, {sums_text(real.get(kind))} in DeepSpeed"
                     for kind in sorted({*ours, *real}) if ours.get(kind) != real.get(kind))


def sums_text(sums):
    return "none" if sums is None else f"{sums[0]} calls of {sums[1]} elements, {sums[2]} bytes"


def beside_stage_0(deviation, tolerance, what, fault):
    """Of a relative deviation from stage 0; what: that is not known otherwise, fault: but for its size."""
    if deviation is None:
        return unknown(f"{what} beside stage 0's")
    return (WRONG, f"{fault} by {deviation:.1e}", "") if deviation > tolerance else (GOOD, "", "")


def losses(row):
    return beside_stage_0(row.deviation(), TOLERANCE[row.configuration.precision], "losses",
                          "does not train as stage 0 does: its loss is off")


def learning(row):
    if row.losses and not all(map(math.isfinite, row.losses)):
        return WRONG, "does not learn: its losses are not finite", ""
    fall = row.fall()
    if fall is None:
        return unknown("fall of the losses")
    mean, error = fall
    if mean - 2 * error > LEAST_FALL[row.configuration.precision]:
        return GOOD, "", ""
    if mean + 2 * error <= 0:
        return WRONG, f"does not learn: its losses on the same data change by {-mean:+.1%}", ""
    return CANNOT_TELL, "whether the losses fall is within their noise", "more --loss-steps"


def norms(row):
    (median, largest), tolerance = row.norm_deviation(), NORM_TOLERANCE[row.configuration.precision]
    fault = "has gradients whose norm is off stage 0's"
    found = beside_stage_0(median, tolerance, "gradients' norms", fault)
    if found[0] == GOOD:
        found = beside_stage_0(largest, NORM_OF_A_STEP * tolerance, "gradients' norms", f"{fault} in a step")
    return found
