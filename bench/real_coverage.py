#!/usr/bin/env python3
"""Do the printed intervals contain the true time? Five configurations, tuned many times.

usage: real_coverage.py PROGRAM FOLDER [--runs 30] [--ranks 2]

PROGRAM is dstune-mpi. Each run measures five configurations of a small GPT-2 in fresh workers, in another order, and
confirms the fastest by repetitions. The true time of a configuration is the mean over all other runs of what the one in
question announces: the mean of its repetitions, or the one measurement. Prints how many of the intervals in the tables of results
contain it: of means of repetitions, whose interval has the variance from run to run in it, and of single runs, whose
interval is that of their own median. The machine should do nothing else. Started again it goes on where it was.
"""

import argparse
import collections
import math
import pathlib
import statistics

from small_spaces import exhaustive, run

CONFIGURATIONS = {"/zero_optimization/reduce_bucket_size": ["4*h*h"], "/zero_optimization/overlap_comm": [False],
                  "/zero_optimization/contiguous_gradients": [True]}


def config_of(seed):
    config = exhaustive("gpt2", seed)
    config["train_micro_batch_size_per_gpu"] = [4]
    config["dstune"]["space"] = {**CONFIGURATIONS, "z3": {"/zero_optimization/stage3_prefetch_bucket_size": [0, "4*h*h"]}}
    return config


def table_of(log):
    """[(configuration, runs, time of a step in ms, half of the interval in percent)] of the table that a run printed."""
    lines = [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in log.splitlines() if line.startswith("|")]
    header = next(i for i, line in enumerate(lines) if "+- (%)" in line)
    columns = [lines[header].index(title) for title in ("experiment", "runs", "step (ms)", "+- (%)")]
    rows = [[line[column] for column in columns] for line in lines[header + 2:] if len(line) == len(lines[header])]
    return [(name, int(runs), float(step), float(half)) for name, runs, step, half in rows]


def printed(arguments, number):
    """The table of a run, which is made again unless it had ended."""
    log = arguments.folder / str(number) / "log"
    if not log.exists() or "\nbest: " not in log.read_text(encoding="utf-8"):
        run(arguments, str(number), config_of(number + 1), "--overwrite")
    return table_of(log.read_text(encoding="utf-8"))


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--ranks", type=int, default=2)
    return parser.parse_args()


def main():
    arguments = parse()
    tables = [printed(arguments, number) for number in range(arguments.runs)]
    levels = [statistics.fmean(math.log(step) for _, _, step, _ in table) for table in tables]
    all_levels = statistics.fmean(levels)
    print(f"levels of the runs (%): {', '.join(f'{100 * (level - all_levels):.1f}' for level in levels)}")
    show(tables, [all_levels] * len(tables), "the time")
    show(tables, levels, "the time relative to the run's level")


def show(tables, levels, what):
    """How many of the intervals contain the mean of the other runs of `what`: the logarithm of a step, minus the level."""
    times = collections.defaultdict(dict)  # configuration -> run -> its time
    for number, table in enumerate(tables):
        for name, _, step, _ in table:
            times[name][number] = math.log(step) - levels[number]
    covered, of = collections.Counter(), collections.Counter()
    for number, table in enumerate(tables):
        for name, runs, _, half in table:
            others = statistics.fmean(time for which, time in times[name].items() if which != number)
            kind = "means of repetitions" if runs > 1 else "single runs"
            of[kind] += 1
            covered[kind] += abs(times[name][number] - others) <= half / 100
    for name, found in sorted(times.items()):
        print(f"{what}, {name}: from run to run {100 * statistics.stdev(found.values()):.1f} %")
    for kind, count in of.items():
        print(f"{what}, {kind}: {covered[kind]} of {count} intervals contain the mean of the other runs")


if __name__ == "__main__":
    main()
