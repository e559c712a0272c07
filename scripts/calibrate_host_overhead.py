#!/usr/bin/env python3
r"""Measures what DeepSpeed's host code costs on this machine, for dstune.host_overhead.

    deepspeed scripts/calibrate_host_overhead.py profile.json
    python -m torch.distributed.run --nproc_per_node 2 \
        scripts/calibrate_host_overhead.py profile.json

Two processes at least: one has no partner, so its collectives cost a seventh of what they do. Trains
Hugging Face's GPT-2 in shapes so small that the device has next to nothing to do, in every ZeRO
stage, with several depths, bucket sizes and accumulation steps. What a step takes beyond the same
forward and backward without DeepSpeed is host code. Its events are counted as dstune-mpi counts them,
and the microseconds per event are fitted to all steps by least squares, none of them negative.

Needs deepspeed, torch and transformers. Run it on an otherwise idle machine, with the number of
processes per node that you train with: they share the host's cores.
"""
import argparse
import itertools
import json
import os
import pathlib
import statistics
import sys
import time

EVENTS = ("gradient_hook", "module_hook", "collective", "optimizer_tensor", "synchronization")
HIDDEN, HEADS, VOCABULARY, SEQUENCE = 32, 4, 64, 8
COLLECTIVES = ("all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor", "all_gather",
               "all_gather_into_tensor", "all_gather_coalesced", "broadcast")


def fit(samples, rounds=20000):
    """Seconds per event, each >= 0, that explain `samples` best.

    samples: list of (counts by event, seconds). Errors are relative, so that a long step does not
    outweigh a short one. Coordinate descent: the sum of squares is convex.
    """
    samples = [(counts, seconds) for counts, seconds in samples if seconds > 0]
    rows = [[counts.get(event, 0) / seconds for event in EVENTS] for counts, seconds in samples]
    cost = [0.0] * len(EVENTS)
    residual = [1.0] * len(rows)
    squares = [sum(row[k] ** 2 for row in rows) for k in range(len(EVENTS))]
    for _ in range(rounds):
        largest = 0.0
        for k, square in enumerate(squares):
            if square == 0:
                continue
            slope = sum(row[k] * rest for row, rest in zip(rows, residual))
            change = max(slope / square, -cost[k])
            if change == 0:
                continue
            cost[k] += change
            residual = [rest - change * row[k] for row, rest in zip(rows, residual)]
            largest = max(largest, abs(change))
        if largest < 1e-12:
            break
    return dict(zip(EVENTS, cost))


def predicted(cost, counts):
    return sum(cost[event] * counts.get(event, 0) for event in EVENTS)


def relative_errors(cost, samples):
    return [abs(predicted(cost, counts) - seconds) / seconds
            for counts, seconds in samples if seconds > 0]


def profile_of(cost, samples, about):
    """What dstune.host_overhead reads: microseconds per event."""
    profile = {f"{event}_us": round(cost[event] * 1e6, 3) for event in EVENTS}
    errors = relative_errors(cost, samples)
    profile["about"] = dict(about, made_by="scripts/calibrate_host_overhead.py",
                            samples=len(samples),
                            median_relative_error=round(statistics.median(errors), 3))
    return profile


def write_profile(path, profile):
    pathlib.Path(path).write_text(json.dumps(profile, indent=2) + "\n", encoding="utf-8")


def world_size(environment):
    """Of the launcher: torchrun's and deepspeed's name, Open MPI's, MPICH's."""
    for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
        if name in environment:
            return int(environment[name])
    return 1


def refuse_one_process():
    print("calibrate_host_overhead.py needs two processes or more: one has no partner, and its "
          "collectives cost 427 us instead of 3,085. Start it with the deepspeed launcher, or with\n"
          "    python -m torch.distributed.run --nproc_per_node 2 "
          "scripts/calibrate_host_overhead.py profile.json", file=sys.stderr)
    sys.exit(2)


def host_events(stage, shape, collectives, owned_tensors):
    """The events of one optimizer step in fp32, as dstune-mpi's ledger counts them."""
    steps, tensors, modules = shape["accumulation"], shape["tensors"], shape["modules"]
    counts = dict.fromkeys(EVENTS, 0)
    counts["collective"] = collectives
    counts["optimizer_tensor"] = owned_tensors
    counts["synchronization"] = 2 * steps  # timer: every forward and engine.step()
    if stage == 1:
        counts["gradient_hook"] = tensors
    if stage >= 2:
        counts["gradient_hook"] = steps * tensors
    if stage == 3:
        # Modules with parameters, the tied head too; what a container's hooks cost and what a
        # module waits for is in it. No hook ends the backward of the two embeddings.
        counts["module_hook"] = steps * (4 * modules - 2)
        counts["synchronization"] += steps  # the end of every backward
    return counts


def make_model(transformers, layers):
    """Hugging Face's GPT-2: 13 modules a block, 6 of them with parameters, and a tied head.

    The real one, since every module called has hooks, and which are called is transformers' to say.
    """
    config = transformers.GPT2Config(
        n_layer=layers, n_embd=HIDDEN, n_head=HEADS, vocab_size=VOCABULARY, n_positions=SEQUENCE,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False, bos_token_id=0,
        eos_token_id=0)
    return transformers.GPT2LMHeadModel(config).train()


class CollectiveCounter:
    """Counts the calls that DeepSpeed makes of its communication backend while it is active."""

    def __init__(self, backend):
        self.backend, self.calls, self.originals = backend, 0, {}

    def __enter__(self):
        for name in COLLECTIVES:
            original = getattr(self.backend, name, None)
            if original is not None:
                self.originals[name] = original
                setattr(self.backend, name, self.counting(original))
        return self

    def counting(self, original):
        def call(*arguments, **options):
            self.calls += 1
            return original(*arguments, **options)
        return call

    def __exit__(self, *_):
        for name, original in self.originals.items():
            setattr(self.backend, name, original)


def median_seconds(run, synchronize, options):
    """`run` after the warm-up, with the device idle before and after."""
    now = time.process_time if options.cpu_time else time.perf_counter
    times = []
    for i in range(options.warmup + options.steps):
        synchronize()
        begin = now()
        run()
        synchronize()
        if i >= options.warmup:
            times.append(now() - begin)
    return statistics.median(times)


class Bench:
    """One machine: DeepSpeed and torch on its accelerator."""

    def __init__(self, torch, deepspeed, transformers, options):
        from deepspeed.accelerator import get_accelerator
        self.torch, self.deepspeed, self.options = torch, deepspeed, options
        self.transformers = transformers
        self.accelerator = get_accelerator()
        deepspeed.init_distributed(verbose=False)
        self.ranks = torch.distributed.get_world_size()
        self.device = self.accelerator.current_device_name()

    def tokens(self):
        return self.torch.randint(0, VOCABULARY, (1, SEQUENCE), device=self.device)

    def without_deepspeed(self, layers):
        """Seconds of one micro-step's forward and backward."""
        model, tokens = make_model(self.transformers, layers).to(self.device), self.tokens()

        def run():
            model(tokens, labels=tokens).loss.backward()
            for parameter in model.parameters():
                parameter.grad = None

        return median_seconds(run, self.accelerator.synchronize, self.options)

    def config(self, stage, bucket, accumulation):
        return {
            "train_micro_batch_size_per_gpu": 1,
            "gradient_accumulation_steps": accumulation,
            "gradient_clipping": 1.0,
            "zero_optimization": {"stage": stage, "reduce_bucket_size": bucket,
                                  "stage3_param_persistence_threshold": 0},
        }

    def measure(self, stage, layers, bucket, accumulation, plain):
        """(counts, seconds of host code) of one optimizer step."""
        model = make_model(self.transformers, layers)
        optimizer = self.torch.optim.AdamW(model.parameters(), lr=1e-4)
        shape = dict(accumulation=accumulation, tensors=len(list(model.parameters())),
                     modules=sum(1 for module in model.modules() if module._parameters))
        engine, *_ = self.deepspeed.initialize(model=model, optimizer=optimizer,
                                               config=self.config(stage, bucket, accumulation))
        tokens = self.tokens()

        def run():
            for _ in range(accumulation):
                engine.backward(engine(tokens, labels=tokens).loss)
                engine.step()

        run()
        with CollectiveCounter(self.deepspeed.comm.comm.cdb) as counter:
            run()
        seconds = median_seconds(run, self.accelerator.synchronize, self.options)
        owned = shape["tensors"]
        if stage in (1, 2):
            owned = sum(len(group) for group in engine.optimizer.params_in_partition)
        counts = host_events(stage, shape, counter.calls, owned)
        engine.destroy()
        return counts, seconds - accumulation * plain

    def samples(self):
        cases = list(itertools.product(self.options.stages, self.options.layers,
                                       self.options.buckets, self.options.accumulation))
        for stage, layers, bucket, accumulation in cases:
            if stage == 0 and bucket != self.options.buckets[0]:
                continue  # stage 0 has buckets of its own
            plain = self.without_deepspeed(layers)  # beside the case: machines change their pace
            counts, seconds = self.measure(stage, layers, bucket, accumulation, plain)
            if self.torch.distributed.get_rank() == 0:
                print(f"stage {stage}, {layers} layers, buckets of {bucket}, {accumulation} "
                      f"micro-steps: {seconds * 1e3:.2f} ms of host code, {counts}",
                      file=sys.stderr)
            yield counts, seconds


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", help="file to write, for dstune.host_overhead")
    parser.add_argument("--stages", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 6, 12])
    parser.add_argument("--buckets", type=int, nargs="+", default=[1_000_000, 20_000, 5_000],
                        help="reduce_bucket_size, elements")
    parser.add_argument("--accumulation", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--warmup", type=int, default=3, help="optimizer steps before measuring")
    parser.add_argument("--steps", type=int, default=15, help="measured optimizer steps of a case")
    parser.add_argument("--cpu-time", action="store_true",
                        help="CPU time instead of wall time: without an accelerator, on a busy machine")
    parser.add_argument("--local_rank", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def import_deepspeed():
    try:
        import torch
        import deepspeed
        import transformers
    except ImportError as fault:
        sys.exit("calibrate_host_overhead.py needs deepspeed, torch and transformers on this "
                 f"machine: {fault}.\nInstall them (pip install torch transformers deepspeed), or "
                 "use dstune.host_overhead: \"default\".")
    return torch, deepspeed, transformers


def main(arguments):
    options = parse(arguments)
    if world_size(os.environ) < 2:
        refuse_one_process()
    torch, deepspeed, transformers = import_deepspeed()
    bench = Bench(torch, deepspeed, transformers, options)
    samples = list(bench.samples())
    about = dict(deepspeed=deepspeed.__version__, torch=torch.__version__,
                 transformers=transformers.__version__, device=bench.accelerator.device_name(),
                 ranks=bench.ranks, clock="cpu" if options.cpu_time else "wall")
    if torch.distributed.get_rank() == 0:
        profile = profile_of(fit(samples), samples, about)
        write_profile(options.output, profile)
        print(json.dumps(profile, indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
