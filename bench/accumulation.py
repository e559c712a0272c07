#!/usr/bin/env python3
"""Is a step that is computed from a few of its micro-steps as long as the whole? The same configurations both ways.

usage: accumulation.py PROGRAM FOLDER [--repeats 3] [--ranks 2] [--model gpt2] [--precision fp32 bf16]

PROGRAM is dstune-mpi. Stages 0 to 3 with 2 to 64 accumulated micro-steps are measured in runs in which steps are computed
(dstune.whole_steps false) and in runs in which every micro-step runs, in turn. A run's times are taken relative to its
level, the mean over the configurations of which every micro-step runs in both. Prints for each configuration the
computed step relative to the whole one, how far apart equal runs are, and beside it what would come out if 2 accumulated
micro-steps were simply multiplied. The machine should do nothing else. Started again it goes on where it was.
Exit codes: 0 no configuration is told apart (5 % for all together), 1 one is, or a run failed.
"""

import argparse
import math
import pathlib
import statistics
import sys

from measure_space import NO_END
from small_spaces import MODELS, finished, run

ACCUMULATED = [2, 4, 7, 8, 12, 16, 32, 64]
ALL_RUN = 6  # up to so many, every micro-step runs
STAGES = [0, 1, 2, 3]


def config_of(model, precision, whole, seed):
    config = {
        "train_micro_batch_size_per_gpu": [2], "gradient_accumulation_steps": ACCUMULATED,
        "zero_optimization": {"stage": STAGES},
        "autotuning": {"enabled": True, "tuner_type": "random",
                       "tuner_num_trials": NO_END, "tuner_early_stopping": NO_END},
        "dstune": {"model": MODELS[model], "sequence_length": 64, "memory_limit": "3GiB", "backend": "cpu",
                   "host_overhead": "none", "warmup_steps": 1, "measure_steps": 6, "seed": seed, "whole_steps": whole},
    }
    if precision != "fp32":
        config[precision] = {"enabled": True}
    return config


def steps_of(arguments, name, config):
    """{(stage, accumulated): log of the median step} of one run."""
    folder = run(arguments, name, config)
    found = {}
    for line in finished(folder / "results"):
        experiment = line["experiment"]
        if experiment["repetition"] == 0:
            ds_config = experiment["ds_config"]
            key = ds_config["zero_optimization"]["stage"], ds_config["gradient_accumulation_steps"]
            found[key] = math.log(line["outcome"]["step_time_s"]["median"])
    return found


def relative(steps):
    """The same, less the run's level."""
    level = statistics.fmean(time for (_, accumulated), time in steps.items() if accumulated <= ALL_RUN)
    return {key: time - level for key, time in steps.items()}


# Two-sided, 5 % for all configurations together, by Bonferroni; Student's t from the normal quantile (Hill, 1970, two terms).
def bound(count, degrees):
    normal = statistics.NormalDist().inv_cdf(1 - 0.05 / count / 2)
    return normal + (normal**3 + normal) / (4 * degrees) + (5 * normal**5 + 16 * normal**3 + 3 * normal) / (96 * degrees**2)


def compare(arguments, precision):
    ways = {False: [], True: []}
    for repeat in range(arguments.repeats):
        for whole, runs in ways.items():
            name = f"{precision}/{'whole' if whole else 'some'}_{repeat}"
            config = config_of(arguments.model, precision, whole, repeat + 1)
            runs.append(relative(steps_of(arguments, name, config)))
    keys = sorted(key for key in ways[True][0] if key[1] > ALL_RUN)
    variances = [statistics.variance([steps[key] for steps in ways[whole]]) for key in keys for whole in ways]
    error = math.sqrt(2 * statistics.fmean(variances) / arguments.repeats)
    limit = bound(len(keys), len(variances) * (arguments.repeats - 1)) * error
    print(f"{precision}: pooled standard error of a ratio {100 * error:.2f} %, told apart beyond {100 * limit:.2f} %")
    print("| stage | accumulated | computed / whole | multiplied / whole |\n| --: | --: | --: | --: |")
    apart = 0
    for key in keys:
        whole = statistics.fmean(steps[key] for steps in ways[True])
        computed = statistics.fmean(steps[key] for steps in ways[False]) - whole
        multiplied = statistics.fmean(steps[key[0], 2] for steps in ways[True]) + math.log(key[1] / 2) - whole
        apart += abs(computed) > limit
        print(f"| {key[0]} | {key[1]} | {math.exp(computed):.3f} | {math.exp(multiplied):.3f} |")
    print(f"{precision}: {apart} of {len(keys)} are told apart\n")
    return apart


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--model", choices=sorted(MODELS), default="gpt2")
    parser.add_argument("--precision", nargs="+", choices=["fp32", "bf16", "fp16"], default=["fp32", "bf16"])
    return parser.parse_args()


def main():
    arguments = parse()
    sys.exit(1 if sum(compare(arguments, precision) for precision in arguments.precision) else 0)


if __name__ == "__main__":
    main()
