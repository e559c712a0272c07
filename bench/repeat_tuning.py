#!/usr/bin/env python3
"""Tunes the same small GPT-2 again and again: do the runs agree on the optimum, and what does that cost?

usage: repeat_tuning.py PROGRAM FOLDER [--runs 10] [--tuner guided] [--ranks 2] [--backend cpu|sim]

PROGRAM is dstune-mpi; FOLDER/0, FOLDER/1, ... are the runs' results. Prints the optimum and the ties of each run, whether
one optimum is the same as, or among the ties of, every other run's, and the time in all and of the search alone.
"""

import argparse
import json
import pathlib
import re
import sys

from measure_space import launch, space_config


def read_run(results):
    lines = [json.loads(line) for line in (results / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
    finished = [line for line in lines if line["type"] == "finished"]
    search = [line for line in finished if "_again" not in line["experiment"]["name"]]
    summary = (results / "summary.txt").read_text(encoding="utf-8")
    ties = re.search(r"not told apart from it: ([^\n]*)\.\n", summary)
    return {"best": json.loads((results / "status.json").read_text(encoding="utf-8"))["best"],
            "ties": set(ties.group(1).split(", ")) if ties else set(),
            "experiments": len(search), "repetitions": len(finished) - len(search),
            "search_s": max(line["at_s"] for line in search), "all_s": max(line["at_s"] for line in finished)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--tuner", default="guided")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--backend", default="cpu", choices=["cpu", "sim"])
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    config = space_config(arguments.backend)
    config["dstune"]["tuner"] = arguments.tuner
    path = arguments.folder / "config.json"
    path.write_text(json.dumps(config, indent=2), encoding="utf-8")
    runs = []
    for number in range(arguments.runs):
        results = arguments.folder / str(number)
        code = launch(arguments, "--results-dir", str(results), "--overwrite", str(path))
        if code != 0:
            sys.exit(code)
        runs.append(read_run(results))
        print(f"{number}: {runs[-1]['best']}, {len(runs[-1]['ties'])} ties, {runs[-1]['experiments']} + "
              f"{runs[-1]['repetitions']} experiments, {runs[-1]['search_s']:.0f} s + "
              f"{runs[-1]['all_s'] - runs[-1]['search_s']:.0f} s", flush=True)
    agreed = [best for best in {run["best"] for run in runs}
              if all(best == run["best"] or best in run["ties"] for run in runs)]
    same = max(sum(run["best"] == best for run in runs) for best in {run["best"] for run in runs})
    print(f"the most frequent optimum: {same} of {len(runs)}; in every run's ties: {', '.join(agreed) or 'none'}")


if __name__ == "__main__":
    main()
