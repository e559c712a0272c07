#!/usr/bin/env python3
"""Holds dstune-mpi's account of memory to the real DeepSpeed's, configuration by configuration.

    scripts/compare_memory_with_deepspeed.py PROGRAM [--configs NAME ...] [--write tests/data/deepspeed_memory.json]
    scripts/compare_memory_with_deepspeed.py PROGRAM --explain NAME

Needs torch, transformers, deepspeed and a C++ compiler; no GPU. Two processes train each configuration of
memory_configs.py with DeepSpeed's CPU accelerator and gloo, on an allocator that counts (count_allocations.cpp):
the peak is the most that was live at a time from before the model was made. Beside it stands the peak of
dstune-mpi's step without arithmetic (--plan --explain, of a device that needs no scratch). Both count the bytes that
are asked for; what an allocator rounds them to is another account.

Python's cyclic garbage may hold tensors until the collector runs. The peak is that of steps before which it has run,
the least of several; "uncollected" is what later steps had more, with the collector left to itself.

--explain prints what is live at the peak of a steady step, by size and by the operation that asked for it, from
torch's profiler. It misses what gloo's threads free, so its sum may be too large.
"""
import argparse
import datetime
import gc
import json
import multiprocessing
import os
import pathlib
import socket
import sys
import traceback

from count_allocations import AllocationCounter
from memory_configs import MODELS, cases
from plans import planned

RANKS = 2
COLLECTED_STEPS, OTHER_STEPS = 3, 2  # the first of the former is unlike the others
STEP_BEGINS = "step begins"


def summary_of(ranks):
    """The peak of a configuration from the steps' peaks of its ranks, each a list. Garbage only adds to a step."""
    steady = max(min(peaks[1:COLLECTED_STEPS]) for peaks in ranks)
    first = max(peaks[0] for peaks in ranks)
    others = max(max(peaks[COLLECTED_STEPS:]) for peaks in ranks)
    return {"deepspeed_bytes": max(first, steady), "uncollected_bytes": max(0, others - max(first, steady)),
            "deepspeed_steps": ranks}


def percent(row):
    return 100 * (row["dstune_bytes"] - row["deepspeed_bytes"]) / row["deepspeed_bytes"]


def table_of(rows):
    lines = ["| configuration | DeepSpeed | dstune-mpi | difference | in | uncollected |",
             "| --- | ---: | ---: | ---: | --- | ---: |"]
    for row in rows:
        lines.append(f"| {row['name']} | {row['deepspeed_bytes']:,} | {row['dstune_bytes']:,} | {percent(row):+.4f} % "
                     f"| {row['dstune_phase']} | {row['uncollected_bytes']:,} |")
    return "\n".join(lines)


def worst_of(rows):
    return max(rows, key=lambda row: abs(percent(row)))


class RealDeepSpeed:
    """Imported once; every configuration is trained by processes forked from this one."""

    def __init__(self, chosen):
        os.environ.update(DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")
        import deepspeed
        import torch
        import torch._dynamo  # the first step would import it
        import transformers
        from deepspeed.ops.op_builder.cpu import FusedAdamBuilder, ShareMemCommBuilder
        self.torch, self.transformers, self.deepspeed = torch, transformers, deepspeed
        torch.set_num_threads(1)
        self.counter = AllocationCounter(torch)
        for name in ("all_reduce", "reduce", "reduce_scatter_tensor", "all_gather_into_tensor", "broadcast"):
            self.counter.leave_out(torch.distributed, name)
        ShareMemCommBuilder().load(verbose=False)
        if any("optimizer" in case["ds_config"] for case in chosen):
            FusedAdamBuilder().load(verbose=False)

    def versions(self):
        return {name: getattr(self, name).__version__ for name in ("deepspeed", "torch", "transformers")}

    def groups(self, model):
        """As the Trainer makes them."""
        parameters = list(model.parameters())
        return [{"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.01},
                {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0}]

    def engine(self, case):
        settings = dict(MODELS[case["model"]])
        config = self.transformers.AutoConfig.for_model(settings.pop("model_type"), use_cache=False, **settings)
        model = self.transformers.AutoModelForCausalLM.from_config(
            config, attn_implementation=case["attention"], dtype=self.torch.float32).train()
        ds_config = dict(case["ds_config"], zero_allow_untested_optimizer=True)
        if "optimizer" in ds_config:
            return self.deepspeed.initialize(model=model, model_parameters=model.parameters(), config=ds_config)[0]
        optimizer = self.torch.optim.AdamW(self.groups(model), lr=1e-4, fused=True)
        return self.deepspeed.initialize(model=model, optimizer=optimizer, config=ds_config)[0]

    def micro_step(self, engine, tokens, case, kept):
        mark = self.torch.autograd.profiler.record_function
        tokens.random_(0, MODELS[case["model"]]["vocab_size"])
        with mark("forward"):
            output = engine(input_ids=tokens, labels=tokens)
            loss = output.loss
            kept[:] = [output] if case["keep_logits"] else []
            del output
        with mark("backward"):
            engine.backward(loss)
        with mark("update"):
            engine.step()

    def train(self, case):
        """The peak of each step."""
        ds_config = case["ds_config"]
        with self.torch.autograd.profiler.record_function("setup"):
            engine = self.engine(case)
            tokens = self.torch.empty((ds_config["train_micro_batch_size_per_gpu"], case["sequence_length"]),
                                      dtype=self.torch.int64)
        kept, peaks = [], []
        for step in range(COLLECTED_STEPS + OTHER_STEPS):
            if step < COLLECTED_STEPS:
                gc.collect()
            self.counter.take_peak()
            with self.torch.autograd.profiler.record_function(STEP_BEGINS):
                pass
            for _ in range(ds_config["gradient_accumulation_steps"]):
                self.micro_step(engine, tokens, case, kept)
            peaks.append(self.counter.take_peak())
        return peaks

    def run_rank(self, case, rank, port, explains):
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1",
                          MASTER_PORT=str(port))
        self.torch.manual_seed(1)
        if case["ds_config"]["train_micro_batch_size_per_gpu"] * case["sequence_length"] < 64:
            self.torch.backends.mkldnn.set_flags(False)  # its scratch is not a GPU's; slow without it
        gc.collect()
        self.counter.begin()
        if not explains:
            return self.train(case)
        profiler = self.torch.profiler
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU], profile_memory=True) as run:
            self.train(case)
        return live_at_peak(run.profiler.kineto_results)

    def measure(self, case, explains=False):
        """Of each rank: the peak of every step; if it `explains`, what was live then. None if one failed."""
        context = multiprocessing.get_context("fork")
        answers, port = context.Queue(), free_port()

        def child(rank):
            os.dup2(2, 1)  # what DeepSpeed prints is not the table
            try:
                answers.put((rank, self.run_rank(case, rank, port, explains)))
            except BaseException:
                traceback.print_exc()
                answers.put((rank, None))

        processes = [context.Process(target=child, args=(rank,)) for rank in range(RANKS)]
        for process in processes:
            process.start()
        ranks = [answer for _, answer in sorted(answers.get() for _ in processes)]
        for process in processes:
            process.join()
        return None if None in ranks else ranks


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def live_at_peak(results):
    """[(bytes of all, how many, bytes of each, where from)] at the peak of the collected steps' last."""
    begins = sorted(event.start_ns() for event in results.events() if event.name() == STEP_BEGINS)
    begin, end = begins[COLLECTED_STEPS - 1:COLLECTED_STEPS + 1]
    allocations = []

    def collect(event, path):
        if event.tag.name == "Allocation":
            fields = event.extra_fields
            allocations.append((event.start_time_ns, fields.ptr, fields.alloc_size, path))
        for child in event.children:
            collect(child, (*path, event.name))

    sys.setrecursionlimit(100000)
    for root in results.experimental_event_tree():
        collect(root, ())
    allocations.sort(key=lambda allocation: allocation[0])
    blocks, total, most, at_most = {}, 0, 0, {}
    for time, address, size, path in allocations:
        total += size
        blocks.pop(address, None)
        if size > 0:
            blocks[address] = (size, "setup" if "setup" in path else " < ".join(reversed(path[-6:])))
        if begin <= time < end and total > most:
            most, at_most = total, dict(blocks)
    counts = {}
    for block in at_most.values():
        counts[block] = counts.get(block, 0) + 1
    return sorted(((size * count, count, size, source) for (size, source), count in counts.items()), reverse=True)


def dstune(program, case):
    """The measured outcome of its dry run, as JSON."""
    outcome = planned(program, case["ds_config"], {
        "model": MODELS[case["model"]], "sequence_length": case["sequence_length"], "attention": case["attention"],
        "keep_logits": case["keep_logits"]}, RANKS)
    return {"dstune_bytes": outcome["peak_memory_bytes"], "dstune_phase": outcome["peak_memory_phase"],
            "dstune_bytes_by_category": outcome["peak_memory_bytes_by_category_at_peak"]}


def explain(real, case, program):
    for total, count, size, source in real.measure(case, explains=True)[0][:60]:
        print(f"{total:12,} = {count:4} x {size:12,}  {source}")
    print(json.dumps(dstune(program, case), indent=1))


def read_rows(path):
    """By name; empty if there is no such file yet."""
    if path is None or not pathlib.Path(path).exists():
        return {}
    return {row["name"]: row for row in json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["rows"]}


def compare(real, options, chosen):
    """All rows, those of the file too, which is written after each."""
    rows = read_rows(options.write)
    for case in chosen:
        peaks = real.measure(case)
        if peaks is None:
            print(f"DeepSpeed failed at {case['name']}", file=sys.stderr)
            continue
        rows[case["name"]] = {**case, **summary_of(peaks), **dstune(options.program, case)}
        print(table_of([rows[case["name"]]]).splitlines()[-1], flush=True)
        if options.write:
            ordered = [rows[case["name"]] for case in cases() if case["name"] in rows]
            written = {"date": str(datetime.date.today()), "ranks": RANKS, **real.versions(), "models": MODELS,
                       "rows": ordered}
            pathlib.Path(options.write).write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return list(rows.values())


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="build/default/dstune-mpi")
    parser.add_argument("--configs", nargs="+", help="of memory_configs.py; default: all")
    parser.add_argument("--write", help="file of configurations, peaks and versions; its other rows stay")
    parser.add_argument("--explain", help="one configuration")
    options = parser.parse_args(arguments)
    names = [options.explain] if options.explain else options.configs
    known = {case["name"]: case for case in cases()}
    unknown = [name for name in names or [] if name not in known]
    if unknown:
        parser.error(f"no such configuration: {', '.join(unknown)}; there are: {', '.join(known)}")
    chosen = [known[name] for name in names or known]
    real = RealDeepSpeed(chosen)
    if options.explain:
        explain(real, chosen[0], options.program)
        return
    rows = compare(real, options, chosen)
    print(f"\n{table_of(rows)}\n\nlargest difference: {percent(worst_of(rows)):+.4f} %, {worst_of(rows)['name']}")


if __name__ == "__main__":
    main(sys.argv[1:])
