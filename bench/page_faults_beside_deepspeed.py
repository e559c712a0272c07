#!/usr/bin/env python3
"""Counts the pages that a training step faults in, in the real DeepSpeed on CPU ranks and here.

usage: page_faults_beside_deepspeed.py PROGRAM OUTPUT.jsonl [--models small large] [--micro-batches 2 8 24]

Needs torch, transformers and deepspeed. PROGRAM is dstune-mpi. Each configuration (stages 0 to 3, fp32 and bf16, AdamW,
buckets of 2e6 elements, 64 tokens, two ranks of one thread) trains in processes of its own in both: two that are
forked from one that has imported DeepSpeed, and a run of PROGRAM. The counts are those of the rank's own thread, of
steps 3 to 7; they do not depend on what else the machine does. A line of OUTPUT.jsonl for each, and a table.
"""

import argparse
import json
import os
import pathlib
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
from measure_space import launch  # noqa: E402

RANKS, SEQUENCE, STEPS, UNLIKE = 2, 64, 7, 2  # the first steps are unlike the others
MODELS = {"small": {"vocab_size": 4096, "n_embd": 128}, "large": {"vocab_size": 16384, "n_embd": 256}}


def model_of(name):
    return {"model_type": "gpt2", "n_positions": 128, "n_layer": 4, "n_head": 4, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
            "attn_pdrop": 0.0, "bos_token_id": 0, "eos_token_id": 0, **MODELS[name]}


def ds_config_of(precision, stage, micro_batch):
    config = {"train_micro_batch_size_per_gpu": micro_batch, "gradient_accumulation_steps": 1,
              "zero_optimization": {"stage": stage, "reduce_bucket_size": 2_000_000},
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}
    return config if precision == "fp32" else {**config, precision: {"enabled": True}}


def page_faults():
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


class RealDeepSpeed:
    def __init__(self):
        os.environ.update(DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")
        import deepspeed  # noqa: F401: the forks have it already
        import torch
        import torch._dynamo  # noqa: F401: the first step would import it
        import transformers  # noqa: F401
        torch.set_num_threads(1)

    def faults(self, model, ds_config):
        """The page faults of each step of rank 0."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with tempfile.NamedTemporaryFile("r") as answer:
            ranks = [self.fork(rank, port, model, ds_config, answer.name) for rank in range(RANKS)]
            if any(os.waitpid(process, 0)[1] for process in ranks):
                raise RuntimeError("DeepSpeed failed")
            return json.load(answer)

    def fork(self, rank, port, model, ds_config, answer):
        process = os.fork()
        if process:
            return process
        try:
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS), LOCAL_SIZE=str(RANKS),
                              MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            counts = train(model, ds_config)
            if rank == 0:
                pathlib.Path(answer).write_text(json.dumps(counts), encoding="utf-8")
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)


def train(model, ds_config):
    from verify.real import Bench
    bench = Bench({"seed": 1, "model": model, "parameters": None})
    configuration = {"ds_config": ds_config,
                     "settings": {"sequence_length": SEQUENCE,
                                  "model": {"embd_pdrop": 0, "attn_pdrop": 0, "resid_pdrop": 0}}}
    engine, counts = bench.engine(configuration), []
    for micro_steps in bench.data_of(configuration, STEPS):
        before = page_faults()
        bench.step(engine, micro_steps, keep_logits=False)
        counts.append(page_faults() - before)
    return counts


def ours(arguments, model, ds_config):
    """The median page faults of a step, by rank."""
    micro_batch = ds_config["train_micro_batch_size_per_gpu"]
    config = {**ds_config, "train_micro_batch_size_per_gpu": [micro_batch],
              "autotuning": {"enabled": True, "tuner_type": "gridsearch"},
              "dstune": {"model": model, "sequence_length": SEQUENCE, "memory_limit": "3GiB", "backend": "cpu",
                         "host_overhead": "none", "warmup_steps": UNLIKE, "measure_steps": STEPS - UNLIKE}}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "config.json")
        path.write_text(json.dumps(config), encoding="utf-8")
        if launch(arguments, "--results-dir", f"{folder}/results", str(path), stdout=subprocess.DEVNULL) != 0:
            raise RuntimeError("dstune-mpi failed")
        lines = pathlib.Path(folder, "results/journal.jsonl").read_text(encoding="utf-8").splitlines()
    first = next(line for line in map(json.loads, lines) if line["type"] == "finished")
    return [use["page_faults"] for use in first["outcome"]["core_use"]]


def line_of(row):
    steps = row["deepspeed"][UNLIKE:]
    return (f"| {row['name']} | {statistics.fmean(steps):,.0f} ({min(steps):,} to {max(steps):,}) | "
            f"{', '.join(f'{count:,}' for count in row['dstune'])} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--types", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--stages", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--micro-batches", nargs="+", type=int, default=[2, 8, 24])
    arguments = parser.parse_args()
    arguments.ranks = RANKS
    real = RealDeepSpeed()
    print("| configuration | DeepSpeed: mean (least to most) | dstune-mpi, by rank |\n| --- | ---: | ---: |")
    means = []
    for name, precision, stage, micro_batch in (
            (name, precision, stage, micro_batch) for name in arguments.models for precision in arguments.types
            for stage in arguments.stages for micro_batch in arguments.micro_batches):
        model, ds_config = model_of(name), ds_config_of(precision, stage, micro_batch)
        row = {"name": f"{name} {precision} z{stage} mb{micro_batch}", "deepspeed": real.faults(model, ds_config),
               "dstune": ours(arguments, model, ds_config)}
        with arguments.output.open("a", encoding="utf-8") as output:
            output.write(json.dumps(row) + "\n")
        print(line_of(row), flush=True)
        means.append((statistics.fmean(row["deepspeed"][UNLIKE:]), statistics.fmean(row["dstune"])))
    theirs, mine = map(sum, zip(*means))
    print(f"\nall together: DeepSpeed {theirs:,.0f}, dstune-mpi {mine:,.0f}, {mine / theirs:.2f} of it")


if __name__ == "__main__":
    main()
