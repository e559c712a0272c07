#!/usr/bin/env python3
"""Does an experiment's time depend on what its workers did before? The same configurations in several orders.

usage: order_of_experiments.py PROGRAM FOLDER [--orders 5] [--families gpt2 llama bert] [--micro-batches 2 8 24]
                               [--stages 0 1 2 3] [--without-fresh]

PROGRAM is dstune-mpi. Each family's configurations run in every order (tuner random, by its seed) within one run each,
whose workers stay, and each alone in a run of its own, with fresh workers. Each run is made twice: what two runs of one
order differ by is the machine's. Prints for each configuration the smallest and largest median of a step over all that was
before it; the standard deviation from order to order of the mean of equal runs, relative to each run's level, beside what equal runs
alone would make of it; and the page faults of a step, which must be the same in all. The machine should do nothing else. Started
again it goes on where it was. Exit codes: 0 page faults are the same everywhere, 1 they are not, or a run failed.
"""

import argparse
import math
import pathlib
import statistics
import sys

from measure_space import NO_END
from small_spaces import MODELS, finished, run

REPEATS = 2
SAME_FAULTS = 256  # what the buffers of MPI make that a worker touches for the first time


def config_of(model, micro_batches, accumulation, stages, seed):
    return {
        "train_micro_batch_size_per_gpu": micro_batches, "gradient_accumulation_steps": accumulation,
        "zero_optimization": {"stage": stages},
        "autotuning": {"enabled": True, "tuner_type": "random",
                       "tuner_num_trials": NO_END, "tuner_early_stopping": NO_END},
        "dstune": {"model": MODELS[model], "sequence_length": 64, "memory_limit": "3GiB", "backend": "cpu",
                   "host_overhead": "none", "warmup_steps": 2, "measure_steps": 10, "seed": seed},
    }


def measured(arguments, name, config):
    """{(stage, micro-batch): (median of a step in s, page faults of each rank)} of one run."""
    folder = run(arguments, name, config)
    found = {}
    for line in finished(folder / "results"):
        if line["experiment"]["repetition"] == 0:
            ds_config, outcome = line["experiment"]["ds_config"], line["outcome"]
            key = ds_config["zero_optimization"]["stage"], ds_config["train_micro_batch_size_per_gpu"]
            found[key] = outcome["step_time_s"]["median"], [use["page_faults"] for use in outcome["core_use"]]
    return found


def runs_of(arguments, model):
    """[[{configuration: measurement} of each repeat] for each order, the last of fresh workers]."""
    batches, stages = sorted(arguments.micro_batches), sorted(arguments.stages)
    orders = [[measured(arguments, f"{model}/{seed}_{repeat}", config_of(model, batches, 1, stages, seed))
               for repeat in range(REPEATS)] for seed in range(1, arguments.orders + 1)]
    if arguments.without_fresh:
        return orders
    fresh = [{} for _ in range(REPEATS)]
    for repeat, found in enumerate(fresh):
        for stage in stages:
            for batch in batches:
                config = config_of(model, [batch], batches[-1] // batch, [stage], 1)
                found |= measured(arguments, f"{model}/fresh_{stage}_{batch}_{repeat}", config)
    return [*orders, fresh]


def without_levels(orders):
    """[[{configuration: logarithm of its median, less the mean of its run's} of each repeat] of each order]."""
    def centred(found):
        level = statistics.fmean(math.log(time) for time, _ in found.values())
        return {key: math.log(time) - level for key, (time, _) in found.items()}
    return [[centred(repeat) for repeat in order] for order in orders]


def variances(key, centred):
    """Of the mean of a configuration's equal runs: from order to order, and what equal runs alone would make."""
    between = statistics.variance(statistics.fmean(repeat[key] for repeat in order) for order in centred)
    equal = statistics.fmean(statistics.variance(repeat[key] for repeat in order) for order in centred) / REPEATS
    return between, equal


def row_of(model, key, orders, centred):
    """What one configuration's times and page faults were: a line of the table."""
    medians = [statistics.fmean(repeat[key][0] for repeat in order) for order in orders]
    faults = [count for order in orders for repeat in order for count in repeat[key][1]]
    between, equal = variances(key, centred)
    return {"name": f"{model} z{key[0]} mb{key[1]}", "least_ms": 1e3 * min(medians), "most_ms": 1e3 * max(medians),
            "between": between, "equal": equal, "least_faults": min(faults), "most_faults": max(faults)}


def percent(variance):
    return f"{100 * math.sqrt(variance):.1f} %"


def table_of(rows):
    lines = ["| configuration | least median (ms) | most | between orders | expected of equal runs | page faults |",
             "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for row in rows:
        faults = f"{row['least_faults']:,}" + (f" to {row['most_faults']:,}"
                                               if row["most_faults"] > row["least_faults"] else "")
        lines.append(f"| {row['name']} | {row['least_ms']:.1f} | {row['most_ms']:.1f} | {percent(row['between'])} | "
                     f"{percent(row['equal'])} | {faults} |")
    return lines


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--families", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--micro-batches", nargs="+", type=int, default=[2, 8, 24], help="that divide the largest")
    parser.add_argument("--stages", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--without-fresh", action="store_true", help="no run of one configuration alone")
    return parser.parse_args()


def main():
    arguments = parse()
    rows = []
    try:
        for model in arguments.families:
            orders = runs_of(arguments, model)
            centred = without_levels(orders)
            rows += [row_of(model, key, orders, centred) for key in sorted(orders[0][0])]
    except RuntimeError as fault:
        print(f"order_of_experiments.py: {fault}", file=sys.stderr)
        return 1
    print("\n".join(table_of(rows)))
    differ = [row["name"] for row in rows if row["most_faults"] - row["least_faults"] > SAME_FAULTS]
    between, equal = (statistics.fmean(row[which] for row in rows) for which in ("between", "equal"))
    print(f"\n{len(rows)} configurations; page faults that depend on the order: {', '.join(differ) or 'none'}; the medians of "
          f"equal runs differ by {percent(between)} between orders, where equal runs alone make {percent(equal)}.")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
