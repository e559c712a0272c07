#!/usr/bin/env python3
"""Overhead per experiment: the wall time of a whole tuning, less its warm-up and measured steps, over
the number of experiments; and how much of it is allocation (set-up).

usage: scripts/bench_overhead.py [--ranks 3,5,9] [--config CONFIG.json] [--program PROGRAM]
Prints a Markdown table. Times of the same experiment on parallel groups are counted as they ran:
the sums are those of the busiest rank.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", default="3,5,9")
    parser.add_argument("--config", default=str(ROOT / "examples" / "tiny.json"))
    parser.add_argument("--program", default=str(ROOT / "build" / "default" / "dstune-mpi"))
    return parser.parse_args()


def tune(program, config, ranks, directory):
    environment = dict(os.environ)
    environment.setdefault("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
    if os.geteuid() == 0:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    began = time.monotonic()
    subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), program,
                    str(pathlib.Path(config).resolve())], cwd=directory, env=environment,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def finished(directory):
    text = (directory / "autotuning_results" / "latest" / "journal.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    return [line for line in lines if line["type"] == "finished"]


def measure(program, config, ranks):
    with tempfile.TemporaryDirectory(prefix="dstune-bench-") as name:
        directory = pathlib.Path(name)
        wall = tune(program, config, ranks, directory)
        records = finished(directory)
        status = json.loads((directory / "autotuning_results" / "latest" / "status.json").read_text("utf-8"))
    steps = collections.Counter()
    setup = collections.Counter()
    for record in records:
        outcome = record["outcome"]
        for rank in record["ranks"]:
            steps[rank] += outcome.get("warmup_time_s", 0) + outcome.get("measure_time_s", 0)
            setup[rank] += outcome.get("setup_time_s", 0)
    count = len(records)
    in_steps = max(steps.values())
    in_setup = max(setup.values())
    elapsed = status["elapsed_s"]
    return (ranks, count, wall, elapsed, in_steps, 1e3 * in_setup / count,
            1e3 * (elapsed - in_steps - in_setup) / count)


def main():
    options = arguments()
    print("| ranks | experiments | mpirun (s) | tuning (s) | steps (s) | allocation (ms/exp.) "
          "| rest (ms/exp.) |")
    print("|" + "---:|" * 7)
    for ranks in options.ranks.split(","):
        row = measure(options.program, options.config, int(ranks))
        print("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.1f} | {:.1f} |".format(*row), flush=True)


if __name__ == "__main__":
    main()
