"""The verdict as Markdown and as JSON."""
import dataclasses

from verify import findings
from verify.findings import TOLERANCE
from verify.ranking import ranks

MIB = 2.0 ** 20


def number(value, digits=2):
    return "n/a" if value is None else f"{value:.{digits}f}"


def percent(value, digits=1):
    return "n/a" if value is None else f"{value * 100:.{digits}f} %"


def table(header, right, lines):
    rules = [":--" if i not in right else "--:" for i in range(len(header))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rules, *lines])


def rows_table(rows):
    """By the real cost."""
    ours, real = ranks([row.cost for row in rows]), ranks([row.real_cost for row in rows])
    lines = []
    for i in sorted(range(len(rows)), key=lambda place: rows[place].real_cost):
        row, each = rows[i], rows[i].configuration
        peak = "n/a" if row.peak_bytes is None else f"{row.peak_bytes / MIB:.1f}"
        memory = "n/a" if row.peak_bytes is None else f"{each.peak_bytes / row.peak_bytes:.3f}"
        sends = {None: "n/a", True: "same", False: "differs"}[row.sends_alike()]
        lines.append([f"{real[i]:g}", f"{ours[i]:g}", each.name, str(each.stage),
                      f"{each.micro_batch} x {each.accumulation}", each.precision, f"{each.step_s * 1e3:.1f}",
                      f"{row.real_s * 1e3:.1f}", f"{row.ratio:.2f}", loss_text(row), sends,
                      f"{each.peak_bytes / MIB:.1f}", peak, memory])
    return table(["rank", "ours", "configuration", "stage", "batch", "type", "ours (ms)", "real (ms)", "ratio",
                  "loss off by", "sends", "peak, ours (MiB)", "real (MiB)", "ratio"],
                 {0, 1, 3, 6, 7, 8, 9, 11, 12, 13}, lines)


def loss_text(row):
    deviation = row.deviation()
    if deviation is None:
        return "n/a"
    return f"{deviation:.0e}" + ("" if findings.losses(row)[0] == findings.GOOD else " (!)")


def times_table(result):
    return table(["stage", "configurations", "ours over real, median", "spread", "uncertain by"], {1, 2, 3, 4},
                 [["all" if line["stage"] is None else str(line["stage"]), str(line["configurations"]),
                   number(line["ratio"]), percent(line["spread"]), percent(line["uncertainty"])]
                  for line in result["times"]])


def correlations_table(result):
    ours, ceiling = result["ours_and_real"], result["ceiling"]
    keys = {"all": ("spearman", "kendall"), "within a batch": ("spearman_within", "kendall_within")}
    lines = [[name, *(number(side[key]) for side in (ours, ceiling) for key in both)] for name, both in keys.items()]
    return table(["", "Spearman", "Kendall", "Spearman, real against real", "Kendall, real against real"],
                 {1, 2, 3, 4}, lines)


def batches_table(result):
    return table(["batch", "type", "sequence", "configurations", "Spearman", "real against real", "Kendall", "regret"],
                 {2, 3, 4, 5, 6, 7},
                 [[f"{line['micro_batch']} x {line['accumulation']}", line["precision"], str(line["sequence_length"]),
                   str(line["configurations"]), number(line["spearman"]), number(line["ceiling"]),
                   number(line["kendall"]), percent(line["regret"])] for line in result["batches"]])


def noise_text(result):
    noise, pairs, pace = result["noise"], result["pairs"], result["pace"]
    if noise["visit_spread"] is None:
        return "Too few visits to tell the noise: no difference can be distinguished from it."
    close = pairs["pairs"] - pairs["told_apart"]
    return (f"Noise: one visit is within {percent(noise['visit_spread'])} (standard deviation; "
            f"{percent(noise['reference_spread'])} of the repeated reference, {percent(noise['pass_spread'])} between "
            f"the two passes), after a drift of the machine's pace from {pace[0]:.2f} to {pace[1]:.2f}. So real steps "
            f"closer than {percent(noise['not_told_apart_below'])} are not distinguishable: {close} of the "
            f"{pairs['pairs']} pairs within a batch. Of the {pairs['told_apart']} others {pairs['ordered_otherwise']:g} are the other "
            "way round here.")


def findings_table(found):
    return table(["", "", "what was found", "what would tell"], set(),
                 [[each.what, each.outcome, each.text.replace("|", "/"), each.needs] for each in found])


def advice(found, about):
    """What mends wrong times, where they are wrong: it does not mend noise."""
    timing = [each for each in found if each.what in findings.TIMING and each.outcome == findings.WRONG]
    return [f"What may mend it: {line}" for line in about["advice"]] if timing else []


def markdown(rows, result, about, found):
    tolerances = ", ".join(f"{percent(value)} in {name}" for name, value in TOLERANCE.items() if name != "fp16")
    parts = [about["line"], rows_table(rows),
             f"Ranks are by {about['metric']}; ratio is ours over DeepSpeed's. Losses are those of "
             f"{about['loss_steps']} steps beside stage 0's of the same batch, type and data ({tolerances} are "
             "allowed). Peaks are the fullest rank's.",
             correlations_table(result), batches_table(result), times_table(result), noise_text(result),
             *about["notes"], findings_table(found), *advice(found, about)]
    return "\n\n".join([*parts, f"Verdict: {findings.verdict_of(found)}."]) + "\n"


def as_json(rows, result, about, found):
    lines = []
    for row in rows:
        each = row.configuration
        lines.append({"name": each.name, "stage": each.stage, "micro_batch": each.micro_batch,
                      "accumulation": each.accumulation, "precision": each.precision, "ours_s": each.step_s,
                      "ours_noise_percent": each.noise_percent, "real_s": row.real_s, "real_passes_s": row.passes,
                      "ratio": row.ratio,
                      "losses": row.losses, "norms": row.norms,
                      "stage_0": row.baseline and {key: row.baseline.get(key) for key in ("losses", "norms")},
                      "ours_peak_bytes": each.peak_bytes, "real_peak_bytes": row.peak_bytes,
                      "ours_collectives": each.collectives, "real_collectives": row.collectives,
                      "sends_alike": row.sends_alike(), "memory_limit_bytes": each.memory_limit,
                      "ds_config": each.ds_config})
    return {"about": about, "verdict": findings.verdict_of(found),
            "findings": [dataclasses.asdict(each) for each in found], "numbers": result, "configurations": lines}
