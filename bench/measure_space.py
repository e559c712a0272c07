#!/usr/bin/env python3
"""Measures every configuration of a space of a small GPT-2, for bench_search.

usage: measure_space.py PROGRAM FOLDER [--backend cpu|sim] [--ranks N] [--plan]

Runs PROGRAM (dstune-mpi) with tuner gridsearch on N workers (2) until nothing is left; FOLDER/table.jsonl is
what bench_search reads: a journal of first measurements alone, without their ledgers. The one of two CPU ranks is
kept as tests/data/measured_space.jsonl. Started again it goes on where it was. 432 configurations are generated; --plan says what
is left of them and measures nothing. The machine should do nothing else.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import zlib

MODEL = {"model_type": "gpt2", "vocab_size": 4096, "n_positions": 128, "n_embd": 256, "n_layer": 4, "n_head": 4}
NO_END = 1_000_000


def space_config(backend):
    return {
        "train_micro_batch_size_per_gpu": [2, 4, 8],
        "zero_optimization": {"stage": "all"},
        "autotuning": {"enabled": True, "tuner_type": "gridsearch",
                       "tuner_num_trials": NO_END, "tuner_early_stopping": NO_END},
        "dstune": {
            "model": MODEL if backend == "cpu" else "gpt2",
            "sequence_length": 64, "memory_limit": "4GiB" if backend == "cpu" else "64GiB",
            "backend": backend, "warmup_steps": 1, "measure_steps": 5,
            "space": {
                "/zero_optimization/reduce_bucket_size": ["h*h", "4*h*h", "16*h*h", 500_000_000],
                "/zero_optimization/overlap_comm": [False, True],
                "/zero_optimization/contiguous_gradients": [False, True],
                "z3": {"/zero_optimization/stage3_prefetch_bucket_size": [0, "4*h*h"],
                       "/zero_optimization/stage3_param_persistence_threshold": [0, "10*h", "16*h*h"]},
            },
        },
    }


def launch(arguments, *options, **where):
    environment = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OPENBLAS_NUM_THREADS": "1", **os.environ}
    if os.geteuid() == 0:
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(arguments.ranks + 1),
               arguments.program, *options]
    return subprocess.run(command, env=environment, check=False, **where).returncode


def write_table(journal, table):
    lines = []
    for line in map(json.loads, journal.read_text(encoding="utf-8").splitlines()):
        line.pop("crc32", None)
        line.pop("process", None)
        if line["type"] == "finished" and line["experiment"].get("repetition", 0) == 0:
            for name, value in line["outcome"].get("ledger", {}).items():
                line["outcome"]["ledger"][name] = [] if isinstance(value, list) else value
            lines.append(line)
        elif line["type"] == "run" and not lines:
            lines.append(line)
    table.write_text("".join(sealed(line) + "\n" for line in lines), encoding="utf-8")


def sealed(line):
    text = json.dumps(line, separators=(",", ":"))[:-1]
    return f'{text},"crc32":"{zlib.crc32(text.encode()):08x}"}}'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--backend", default="cpu", choices=["cpu", "sim"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--plan", action="store_true")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    config = arguments.folder / "config.json"
    config.write_text(json.dumps(space_config(arguments.backend), indent=2), encoding="utf-8")
    if arguments.plan:
        sys.exit(subprocess.run([arguments.program, "--plan", "--world-size", str(arguments.ranks), str(config)],
                                check=False).returncode)
    results = arguments.folder / "results"
    resume = ["--resume"] if (results / "journal.jsonl").exists() else []
    code = launch(arguments, "--results-dir", str(results), *resume, str(config))
    if code != 0:
        sys.exit(code)
    write_table(results / "journal.jsonl", arguments.folder / "table.jsonl")


if __name__ == "__main__":
    main()
