#!/usr/bin/env python3
"""How long a run that goes on takes with many finished measurements in its journal, whole, from mpirun to its end.

usage: long_journal.py FOLDER COUNT PROGRAM [PROGRAM...] [--rounds N] [--folders]

Measures one configuration, gives its two lines to COUNT others, and runs `PROGRAM --resume` with and without those, all
programs in turn. FOLDER must not exist. With --folders the measurements' folders and files in exps_dir are there too.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import time
import zlib

CONFIG = {
    "train_micro_batch_size_per_gpu": [2],
    "zero_optimization": {"stage": 2, "reduce_bucket_size": 100_000},
    "autotuning": {"enabled": True},
    "dstune": {"model": {"model_type": "gpt2", "vocab_size": 4096, "n_positions": 64, "n_embd": 128, "n_layer": 4, "n_head": 2},
               "sequence_length": 32, "memory_limit": "256MiB", "backend": "cpu", "warmup_steps": 1, "measure_steps": 3,
               "preflight": False, "learnt": False, "host_overhead": "none"},
}


def sealed(line):
    body = json.dumps(line, separators=(",", ":"), ensure_ascii=False)[:-1].encode()
    return body + b',"crc32":"%08x"}\n' % zlib.crc32(body)


def renamed(line, number):
    """The line as that of another configuration."""
    experiment = line["experiment"]
    zero = experiment["ds_config"]["zero_optimization"] | {"reduce_bucket_size": 100_000 + number}
    return line | {"experiment": experiment | {"name": f"{experiment['name']}_rbs{100_000 + number}",
                                               "ds_config": experiment["ds_config"] | {"zero_optimization": zero}}}


def write_files(folder, line):
    """The files of a measurement, as far as a run that does not ask for it reads them."""
    experiment = line["experiment"]
    description = json.dumps({"name": experiment["name"], "ds_config": experiment["ds_config"],
                              "dstune": {"settings": experiment["settings"], "outcome": line["outcome"]}}, indent=2)
    own = folder / "autotuning_results" / experiment["name"]
    own.mkdir()
    for path in (own / "exp.json", own / "ds_config.json", own / "metrics.json",
                 folder / "autotuning_exps" / f"{experiment['name']}.json"):
        path.write_text(description, encoding="utf-8")


def resume(folder, program):
    """@returns seconds of wall time"""
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "3", str(program.resolve()), "config.json", "--resume",
               "--results-dir", "autotuning_results"]
    began = time.monotonic()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.monotonic() - began


def prepare(folder, lines, count, with_folders):
    """@returns the journal's bytes"""
    (folder / "autotuning_results").mkdir(parents=True)
    (folder / "autotuning_exps").mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    run, started, finished = lines
    journal = [sealed(run)]
    for number in range(1, count + 1):
        journal += [sealed(renamed(line, number)) for line in (started, finished)]
        if with_folders:
            write_files(folder, renamed(finished, number))
    return b"".join(journal)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("count", type=int)
    parser.add_argument("program", type=pathlib.Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folders", action="store_true")
    arguments = parser.parse_args()
    prepare(arguments.folder / "first", ({}, {}, {}), 0, False)
    resume(arguments.folder / "first", arguments.program[0])
    text = (arguments.folder / "first/autotuning_results/journal.jsonl").read_text(encoding="utf-8")
    lines = [{key: value for key, value in json.loads(line).items() if key != "crc32"} for line in text.splitlines()]
    journals = {name: prepare(arguments.folder / name, lines, count, arguments.folders)
                for name, count in (("short", 0), ("long", arguments.count))}
    times = {(program, name): [] for program in arguments.program for name in journals}
    for _ in range(arguments.rounds):
        for program, name in times:
            folder = arguments.folder / name
            (folder / "autotuning_results/journal.jsonl").write_bytes(journals[name])
            times[program, name].append(resume(folder, program))
    for (program, name), seconds in times.items():
        print(f"{program} {name} ({len(journals[name]) / 1e6:.0f} MB): median {statistics.median(seconds):.2f} s, "
              f"{min(seconds):.2f} to {max(seconds):.2f} s")


if __name__ == "__main__":
    main()
