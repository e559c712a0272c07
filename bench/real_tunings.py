#!/usr/bin/env python3
"""Tunes small models again and again, and holds every run against spaces that were measured whole.

usage: real_tunings.py PROGRAM FOLDER [--families gpt2 llama bert] [--runs 10] [--sweeps 4] [--ranks 2]

PROGRAM is dstune-mpi. Each family's space is measured whole --sweeps times, each time in another order, between the
tunings, whose tuner is guided. A configuration's true speed is the mean over sweeps, each divided by its own level;
regret is what the announced configuration is slower than the fastest, who may have been lucky. Beside it what the fastest
of one sweep alone would lose, which costs a whole sweep. The machine should do nothing else. Started again it goes on
where it was.
"""

import argparse
import json
import pathlib
import re
import statistics

from small_spaces import MODELS, exhaustive, finished, level, run, samples_per_s, tuning


def read_tuning(results):
    lines, all_lines = finished(results), finished(results, with_references=True)
    summary = (results / "summary.txt").read_text(encoding="utf-8")
    status = json.loads((results / "status.json").read_text(encoding="utf-8"))
    ties = re.search(r"not distinguishable from it: (.*?)(?: and \d+ more)?\.\n", summary)
    any_better = re.search(r"chance that any of them is: at most (\d+(?:\.\d+)?) %", summary)
    return {"best": status["best"], "ties": ties.group(1).split(", ") if ties else [],
            "searched": sum(line["experiment"]["repetition"] == 0 for line in lines),
            "repeated": sum(line["experiment"]["repetition"] > 0 for line in lines),
            "elapsed_s": status["elapsed_s"], "any_better": float(any_better.group(1)) if any_better else 0,
            "in_steps_s": sum(line["outcome"]["measure_time_s"] for line in all_lines)}


def sweep_of(results):
    """{configuration: samples per second, relative to the whole sweep's}, and how long it took."""
    lines = [line for line in finished(results) if line["experiment"]["repetition"] == 0]
    rates = {line["experiment"]["name"]: samples_per_s(line) for line in lines}
    mean = level(rates.values())
    return {name: rate / mean for name, rate in rates.items()}, lines[-1]["finished_s"] - lines[0]["started_s"]


def mean_speed(sweeps, name):
    return statistics.fmean(sweep[name] for sweep in sweeps)


def regret(sweeps, name):
    """What a configuration is slower than the fastest by the mean of all sweeps, who may have been lucky."""
    best = max(mean_speed(sweeps, other) for other in sweeps[0])
    return best / mean_speed(sweeps, name) - 1


def simple_order(name):
    """The lowest stage first, of it the largest micro-batch."""
    stage, batch = map(int, re.match(r"z(\d)_tmbspg(\d+)", name).groups())
    return stage, -batch


def measure(arguments, model):
    sweeps, tunings = [], []
    for number in range(max(arguments.sweeps, arguments.runs)):
        if number * arguments.sweeps // arguments.runs >= len(sweeps) and len(sweeps) < arguments.sweeps:
            sweeps.append(sweep_of(run(arguments, f"{model}/sweep{len(sweeps)}", exhaustive(model, len(sweeps) + 1)) / "results"))
        if number < arguments.runs:
            tunings.append(read_tuning(run(arguments, f"{model}/{number}", tuning(model, "guided", seed=number + 1)) / "results"))
            print(f"{model} {number}: {tunings[-1]}", flush=True)
    return sweeps, tunings


def show(model, sweeps, tunings):
    speeds = [speeds for speeds, _ in sweeps]
    lost = [regret(speeds, each["best"]) for each in tunings]
    anyone = statistics.fmean(regret(speeds, name) for name in speeds[0])
    largest = regret(speeds, min(speeds[0], key=simple_order))
    single = [regret(speeds, max(sweep, key=sweep.get)) for sweep in speeds]
    agreed = [sum(best == each["best"] or best in each["ties"] for each in tunings)
              for best in {each["best"] for each in tunings}]
    per_sweep = statistics.fmean(time for _, time in sweeps)
    time = statistics.fmean(each["elapsed_s"] for each in tunings)
    share = sum(each["in_steps_s"] for each in tunings) / sum(each["elapsed_s"] for each in tunings)
    spread = statistics.fmean(statistics.stdev(sweep[name] for sweep in speeds) / mean_speed(speeds, name)
                              for name in speeds[0])
    mean = {key: statistics.fmean(each[key] for each in tunings) for key in ("searched", "repeated", "any_better")}
    print(f"| {model} | {len(speeds[0])} | {100 * spread:.1f} % | {max(agreed)} of {len(tunings)} | "
          f"{100 * statistics.fmean(lost):.1f} % | {sum(each <= 0.01 for each in lost)} | {100 * max(lost):.1f} % | "
          f"{100 * statistics.fmean(single):.1f} % | "
          f"{mean['searched']:.0f} + {mean['repeated']:.0f} | {time:.0f} s | {per_sweep:.0f} s | {100 * share:.0f} % | "
          f"{mean['any_better']:.0f} % | {100 * anyone:.1f} % | {100 * largest:.1f} % |")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--families", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--sweeps", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=2)
    return parser.parse_args()


def main():
    arguments = parse()
    found = {model: measure(arguments, model) for model in arguments.families}
    print("| model | configurations | one sweep's noise | one optimum or a named tie in | regret | within 1 % | worst "
          "| one sweep's fastest | measured + repeated | time | a sweep's | of it in measured steps | said to be left | random | largest micro-batch of the lowest stage |")
    print("| --- |" + " ---: |" * 14)
    for model, (sweeps, tunings) in found.items():
        show(model, sweeps, tunings)


if __name__ == "__main__":
    main()
