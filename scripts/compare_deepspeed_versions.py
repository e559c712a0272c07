#!/usr/bin/env python3
"""Holds the communication of a step to that of several releases of DeepSpeed, configuration by configuration.

    scripts/compare_deepspeed_versions.py PROGRAM DEEPSPEED... [--write FILE.json]

A DEEPSPEED is a release's folder of Python sources, an unpacked sdist or a checkout of its tag: deepspeed-VERSION.
Two processes train each configuration in it with the CPU accelerator and gloo, and count the calls and elements of
all collectives of the third step, by kind and type. Beside it stands the ledger of dstune-mpi's step without
arithmetic (--plan --explain) with dstune.deepspeed_version of the same release. Nothing is timed.

Needs torch and transformers; no GPU.
"""
import argparse
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

from plans import plan

RANKS, STEPS, SEQUENCE = 2, 3, 16
MODEL = {"model_type": "gpt2", "n_layer": 3, "n_embd": 64, "n_head": 4, "vocab_size": 211, "n_positions": SEQUENCE}
KINDS = {"all_reduce": "all_reduce", "reduce": "reduce", "broadcast": "broadcast", "all_gather": "all_gather",
         "all_gather_into_tensor": "all_gather", "_all_gather_base": "all_gather", "reduce_scatter": "reduce_scatter",
         "reduce_scatter_tensor": "reduce_scatter", "_reduce_scatter_base": "reduce_scatter"}


def case(name, stage, bf16=False, accumulation=1, zero=None, **top):
    config = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": accumulation,
              "zero_optimization": {"stage": stage, "reduce_bucket_size": 30000, **(zero or {})}, **top}
    if bf16:
        config["bf16"] = {"enabled": True}
    return {"name": name, "config": config}


def cases():
    found = []
    for bf16 in (False, True):
        kind = "bf16" if bf16 else "fp32"
        for stage in (0, 1, 2, 3):
            found.append(case(f"z{stage} {kind}", stage, bf16))
            found.append(case(f"z{stage} {kind} accumulation 2", stage, bf16, 2))
    for stage in (1, 2):
        for key, value in (("overlap_comm", True), ("contiguous_gradients", False), ("reduce_scatter", False),
                           ("round_robin_gradients", True), ("use_multi_rank_bucket_allreduce", False),
                           ("reduce_bucket_size", 10000000)):
            found.append(case(f"z{stage} {key} {value}", stage, True, zero={key: value}))
    for key, value in (("overlap_comm", False), ("contiguous_gradients", False), ("reduce_scatter", False),
                       ("stage3_prefetch_bucket_size", 0), ("stage3_param_persistence_threshold", 0),
                       ("stage3_param_persistence_threshold", 5000), ("stage3_max_reuse_distance", 0),
                       ("stage3_max_live_parameters", 20000), ("sub_group_size", 10000)):
        found.append(case(f"z3 {key} {value}", 3, True, zero={key: value}))
    found.append(case("z1 bf16 grad_accum_dtype fp32", 1, True, 2, data_types={"grad_accum_dtype": "fp32"}))
    found.append(case("z2 communication_data_type fp32", 2, True, communication_data_type="fp32"))
    found.append(case("z3 communication_data_type fp32", 3, True, communication_data_type="fp32"))
    found.append(case("z2 no clipping", 2, gradient_clipping=0.0))
    found.append(case("z0 clipping", 0, True, gradient_clipping=1.0))
    return found


class Counter:
    """Of torch.distributed's collectives: {"kind type": [calls, elements]}. Elements are those of the whole message."""

    def __init__(self, distributed):
        self.counts, self.depth = {}, 0
        for name, kind in KINDS.items():
            if hasattr(distributed, name):
                setattr(distributed, name, self.counted(getattr(distributed, name), name, kind))

    def counted(self, function, name, kind):
        def call(*arguments, **keywords):
            if self.depth == 0:
                self.add(name, kind, list(arguments) + list(keywords.values()))
            self.depth += 1
            try:
                return function(*arguments, **keywords)
            finally:
                self.depth -= 1
        return call

    def add(self, name, kind, arguments):
        tensors = []
        for argument in arguments:
            if hasattr(argument, "numel"):
                tensors.append((argument.dtype, argument.numel()))
            elif isinstance(argument, (list, tuple)) and argument and hasattr(argument[0], "numel"):
                tensors.append((argument[0].dtype, sum(tensor.numel() for tensor in argument)))
        dtype, elements = max(tensors, key=lambda tensor: tensor[1])  # of a gather the output, of a scatter the input
        line = self.counts.setdefault(f"{kind} {str(dtype).replace('torch.', '')}", [0, 0])
        line[0] += 1
        line[1] += elements


def train(deepspeed, torch, transformers, counter, config):
    settings = {key: value for key, value in MODEL.items() if key != "model_type"}
    torch.manual_seed(1)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False, **settings))
    parameters = list(model.parameters())
    groups = [{"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.01},
              {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0}]
    engine = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(groups, lr=1e-4), config=config)[0]
    tokens = torch.randint(0, MODEL["vocab_size"], (config["train_micro_batch_size_per_gpu"], SEQUENCE))
    losses = []
    for _ in range(STEPS):
        counter.counts = {}
        for _ in range(config["gradient_accumulation_steps"]):
            loss = engine(input_ids=tokens, labels=tokens).loss
            engine.backward(loss)
            engine.step()
            losses.append(float(loss))
    counts, counter.counts = counter.counts, {}  # the next engine's setup is no step
    with contextlib.suppress(AttributeError):  # before 0.16.5, of a bucket that there is not
        engine.destroy()
    return {"counts": counts, "losses": losses}


def run_rank(out):
    import logging
    import torch
    counter = Counter(torch.distributed)
    torch.set_num_threads(1)
    import deepspeed
    import transformers
    sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # of inference; it would be compiled first
    logging.disable(logging.WARNING)
    deepspeed.init_distributed("gloo")
    results = {}
    for one in cases():
        try:
            results[one["name"]] = train(deepspeed, torch, transformers, counter, one["config"])
        except Exception as fault:  # the ranks fail alike
            results[one["name"]] = {"fault": f"{type(fault).__name__}: {fault}"[:300]}
    if torch.distributed.get_rank() == 0:
        pathlib.Path(out).write_text(json.dumps(results))
    torch.distributed.destroy_process_group()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def real(folder):
    """What the release in `folder` does in each configuration."""
    with tempfile.TemporaryDirectory() as place:
        numactl = pathlib.Path(f"{place}/numactl")  # what releases before 0.16 ask about the cores
        numactl.write_text("#!/bin/sh\nprintf 'available: 1 nodes (0)\\nnode 0 cpus: 0 1\\n'\n")
        numactl.chmod(0o755)
        shared = {**os.environ, "PYTHONPATH": str(folder.resolve()), "DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1",
                  "PATH": f"{place}:{os.environ['PATH']}", "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
                  "TORCH_EXTENSIONS_DIR": f"{place}/extensions", "CUDA_VISIBLE_DEVICES": ""}
        processes = [subprocess.Popen([sys.executable, __file__, "--rank", f"{place}/out"], stdout=sys.stderr,
                                      env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})
                     for rank in range(RANKS)]
        if any([process.wait() for process in processes]):
            raise RuntimeError(f"DeepSpeed failed in {folder}")
        return json.loads(pathlib.Path(f"{place}/out").read_text())


def ledger_of(outcome):
    counts = {}
    for line in outcome["ledger"]["collectives"]:
        names = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "fp64": "float64"}
        key = f"{line['kind']} {names.get(line['dtype'], line['dtype'])}"
        before = counts.setdefault(key, [0, 0])
        before[0] += line["calls"]
        before[1] += line["elements"]
    return counts


def planned(program, version, one):
    answer = plan(program, one["config"], {"model": MODEL, "sequence_length": SEQUENCE, "memory_limit": "8GiB",
                                           "deepspeed_version": version}, RANKS)
    if answer.returncode != 0:
        kind = "skipped" if "not modelled" in answer.stderr else "fault"
        return {kind: answer.stderr.strip()[-300:]}
    return {"counts": ledger_of(json.loads(answer.stdout))}


def without_flags(counts):
    """Flags of one element are sent as whatever a release likes."""
    kept = {key: line for key, line in counts.items() if line[0] != line[1]}
    flags = sum(line[0] for line in counts.values() if line[0] == line[1])
    return kept, flags


def differs(theirs, ours):
    if "counts" not in theirs or "counts" not in ours:
        return True
    return without_flags(theirs["counts"]) != without_flags(ours["counts"])


def main():
    if sys.argv[1] == "--rank":
        run_rank(sys.argv[2])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("deepspeed", nargs="+", type=pathlib.Path)
    parser.add_argument("--write", type=pathlib.Path)
    arguments = parser.parse_args()
    rows = []
    for folder in arguments.deepspeed:
        version = folder.name.removeprefix("deepspeed-")
        answers = real(folder)
        for one in cases():
            ours = planned(arguments.program, version, one)
            theirs = answers[one["name"]]
            rows.append({"version": version, "name": one["name"], "deepspeed": theirs, "dstune": ours,
                         "equal": not differs(theirs, ours)})
            if not rows[-1]["equal"]:
                print(f"{version} {one['name']}:\n  DeepSpeed  {theirs}\n  dstune-mpi {ours}")
        own = [row for row in rows if row["version"] == version]
        skipped = sum("skipped" in row["dstune"] for row in own)
        print(f"{version}: {sum(row['equal'] for row in own)} of {len(own)} configurations equal, {skipped} not modelled",
              flush=True)
    if arguments.write:
        arguments.write.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
