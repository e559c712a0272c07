#!/usr/bin/env python3
"""Replays Optuna's samplers against the truths of bench_truths, beside it.

usage: bench_truths JOURNAL|sim:RANKS SEEDS json | optuna_on_truths.py [--trials 40] [--noise 3] [--samplers TPE GP]

Needs optuna (for GP also scipy and torch). Each setting in which configurations differ is a categorical parameter; a
setting that a stage does not read is drawn and ignored, and a combination that is not in the table (it does not fit)
counts as a trial without a number. What is announced is the trial that was told the best number. Prints the mean regret by truth and
sampler, in percent.
"""

import argparse
import json
import random
import statistics
import sys

import optuna

SAMPLERS = {"TPE": optuna.samplers.TPESampler, "GP": optuna.samplers.GPSampler}
# The stages that read a setting; all others are read in every stage.
STAGES = {"reduce_bucket_size": (1, 2, 3), "overlap_comm": (1, 2, 3), "contiguous_gradients": (2,),
          "stage3_prefetch_bucket_size": (3,), "stage3_param_persistence_threshold": (3,)}


def settings_of(config):
    flat = {key: value for key, value in config.items() if not isinstance(value, dict)}
    for section in config.values():
        flat.update(section if isinstance(section, dict) else {})
    flat.pop("train_batch_size", None)
    return {key: value for key, value in flat.items() if flat["stage"] in STAGES.get(key, (0, 1, 2, 3))}


def regret(settings, scores, sampler, trials, noise, seed):
    values = {}
    for each in settings:
        for key, value in each.items():
            values.setdefault(key, set()).add(value)
    choices = {key: sorted(found) for key, found in values.items() if len(found) > 1}
    by_values = {tuple(sorted(each.items())): score for each, score in zip(settings, scores)}
    fixed = {key: next(iter(found)) for key, found in values.items() if len(found) == 1}
    generator = random.Random(seed)
    told = {}

    def objective(trial):
        drawn = {**fixed, **{key: trial.suggest_categorical(key, found) for key, found in choices.items()}}
        read = {key: value for key, value in drawn.items() if drawn["stage"] in STAGES.get(key, (0, 1, 2, 3))}
        score = by_values.get(tuple(sorted(read.items())))
        if score is None:
            raise optuna.TrialPruned
        number = score * generator.lognormvariate(0, noise) if noise else score
        told[number] = score
        return number

    study = optuna.create_study(direction="maximize", sampler=SAMPLERS[sampler](seed=seed))
    study.optimize(objective, n_trials=trials)
    return 1 - told[max(told)] / max(scores) if told else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--noise", type=float, default=3, help="percent")
    parser.add_argument("--samplers", nargs="+", default=list(SAMPLERS), choices=list(SAMPLERS))
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    settings = [settings_of(config) for config in json.loads(sys.stdin.readline())]
    regrets = {}
    for line in map(json.loads, sys.stdin):
        for sampler in arguments.samplers:
            regrets.setdefault((line["truth"], sampler), []).append(
                regret(settings, line["scores"], sampler, arguments.trials, arguments.noise / 100, line["seed"]))
    print(f"| truth | {' | '.join(arguments.samplers)} |\n| :-- |{' --: |' * len(arguments.samplers)}")
    for truth in dict.fromkeys(truth for truth, _ in regrets):
        means = [f"{100 * statistics.mean(regrets[truth, sampler]):.1f}" for sampler in arguments.samplers]
        print(f"| {truth} | {' | '.join(means)} |")
    for sampler in arguments.samplers:
        every = [value for (_, name), found in regrets.items() if name == sampler for value in found]
        within = sum(value <= 0.01 for value in every) / len(every)
        print(f"{sampler}: {100 * statistics.mean(every):.1f} % in the mean, {100 * within:.0f} % within 1 %")


if __name__ == "__main__":
    main()
