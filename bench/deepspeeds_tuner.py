#!/usr/bin/env python3
"""Replays DeepSpeed's own model_based tuner (XGBoost) against an exhaustive measurement, beside bench_search.

usage: deepspeeds_tuner.py JOURNAL [--seeds 100] [--close 0.01]

JOURNAL is what measure_space.py left, or the table that the tests keep of it. Needs deepspeed and xgboost. The tuner
is DeepSpeed's, unchanged; what runs experiments is replaced by a look into the journal. Keys that a stage lacks are 0
in its configurations, since that tuner wants the same keys in all of them.
"""

import argparse
import gzip
import json
import logging
import pathlib
import statistics
import tempfile

import numpy
from deepspeed.autotuning.tuner import ModelBasedTuner
from deepspeed.utils import logger

AFTER = (10, 20, 40)


def read_table(path):
    """Samples per second of every configuration that was measured, with its knobs."""
    opener = gzip.open if path.suffix == ".gz" else open
    table = {}
    with opener(path, "rt", encoding="utf-8") as file:
        for line in map(json.loads, file):
            if line["type"] != "finished" or line["outcome"]["status"] != "measured":
                continue
            experiment = line["experiment"]
            if experiment.get("repetition", 0) == 0 and not experiment.get("measures_machine"):
                table.setdefault(experiment["name"], (experiment["ds_config"], line["outcome"]["samples_per_s"]))
    return list(table.values())


def same_keys(configs):
    keys = sorted({key for config in configs for key in config["zero_optimization"]})
    for config in configs:
        zero = config["zero_optimization"]
        yield {**{key: value for key, value in config.items() if not isinstance(value, dict)},
               "zero_optimization": {key: zero.get(key, 0) for key in keys}}


class Lookup:
    """DeepSpeed's ResourceManager, whose experiments have all been run."""

    def __init__(self, folder, speeds, close):
        self.exps_dir = str(folder)
        self.speeds = speeds
        self.close = close
        self.finished_experiments = {}
        self.told = []

    def schedule_experiments(self, paths):
        for path in paths:
            exp = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
            speed = self.speeds[exp["exp_id"]]
            result = pathlib.Path(exp["ds_config"]["autotuning"]["metric_path"])
            result.write_text(json.dumps({"throughput": speed}), encoding="utf-8")
            self.finished_experiments[exp["exp_id"]] = (exp, None)
            self.told.append(speed)

    def run(self):
        if len(self.told) > max(AFTER) and max(self.told) >= self.close:
            raise StopIteration("close to the best: tune() ends at any exception")

    def parse_results(self, _metric):
        exp = max((exp for exp, _ in self.finished_experiments.values()), key=lambda e: self.speeds[e["exp_id"]])
        return exp, self.speeds[exp["exp_id"]]

    def clear(self):
        self.finished_experiments = {}


def replay(configs, speeds, seed, folder, close):
    numpy.random.seed(seed)
    order = numpy.random.permutation(len(configs))
    exps = []
    for place, index in enumerate(order):
        config = {**configs[index], "autotuning": {"metric_path": str(folder / f"{place}.metric.json")}}
        exps.append({"exp_id": place, "name": f"exp_{place}", "ds_config": config})
    lookup = Lookup(folder, [speeds[index] for index in order], close)
    tuner = ModelBasedTuner(exps, lookup, "throughput", exps[0]["ds_config"])
    tuner.tune(sample_size=1, n_trials=len(configs), early_stopping=None)
    return lookup.told


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("journal", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--close", type=float, default=0.01)
    arguments = parser.parse_args()
    logger.setLevel(logging.ERROR)
    table = read_table(arguments.journal)
    configs = list(same_keys([config for config, _ in table]))
    speeds = [speed for _, speed in table]
    best = max(speeds)
    close_speed = best * (1 - arguments.close)
    needed, regrets = [], {count: [] for count in AFTER}
    for seed in range(1, arguments.seeds + 1):
        with tempfile.TemporaryDirectory() as folder:
            told = replay(configs, speeds, seed, pathlib.Path(folder), close_speed)
        close = [number for number, speed in enumerate(told, 1) if speed >= close_speed]
        needed.append(close[0] if close else len(configs))
        for count in AFTER:
            regrets[count].append(100 * (1 - max(told[:count]) / best))
    print(f"{len(configs)} configurations, {arguments.seeds} seeds")
    print(f"| DeepSpeed's model_based | {statistics.mean(needed):.1f} | {statistics.median(needed):.0f} | "
          f"{sorted(needed)[int(0.9 * (len(needed) - 1))]} | "
          + " | ".join(f"{statistics.mean(regrets[count]):.2f}" for count in AFTER) + " |")


if __name__ == "__main__":
    main()
