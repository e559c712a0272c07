#!/usr/bin/env python3
"""Measures what the host code of DeepSpeed and of eager PyTorch, and collectives, cost here, for dstune.host_overhead.

A rank of `scripts/tune.sh --calibrate`, which starts it with torchrun or mpirun. Rank 0 prints the profile on
stdout, keeps it in the user's cache and in the results directory, and says on stderr how far it is.
Needs deepspeed, torch and transformers, and an otherwise idle machine.
"""
import argparse
import datetime
import gc
import json
import logging
import os
import pathlib
import socket
import sys
import time

import estimates
import profiles
from attention import AttentionTimer
from collectives import Timer
from eager import EagerTimer
from operations import OperationTimer
from processors import processor
from products import ProductTimer
from terminal import shown

LEAST_ROUNDS = 10  # so that the slow drift of a machine is seen
BETWEEN_ESTIMATES = 5
BETWEEN_CASES = 6


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--also", metavar="FILE", type=pathlib.Path, help="to keep the profile in too")
    parser.add_argument("--seconds", type=float, default=100,
                        help="to measure at most, if it has not settled before (default 100)")
    parser.add_argument("--unless-vague", action="store_true",
                        help=f"keep no profile that is more than {estimates.VAGUE:.0%} off its own measurements")
    parser.add_argument("--rounds-to", metavar="FILE", help="also write what each round measured, JSON")
    return parser.parse_args(arguments)


def adopt_launcher(environment):
    """Names of torchrun for a rank that mpirun or srun started. Returns the number of ranks."""
    for rank, size, local in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
                              ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID")):
        if "WORLD_SIZE" not in environment and size in environment:
            environment["RANK"], environment["WORLD_SIZE"] = environment[rank], environment[size]
            environment["LOCAL_RANK"] = environment.get(local, "0")
            environment.setdefault("MASTER_ADDR", "127.0.0.1")
            environment.setdefault("MASTER_PORT", "29511")
    return int(environment.get("WORLD_SIZE", "1"))


def refuse(message):
    print(shown(f"error: {message}"), file=sys.stderr)
    sys.exit(2)


def stdout_for_the_profile():
    """What libraries print goes to stderr; the real stdout is returned."""
    sys.stdout.flush()
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


class Calibration:
    def __init__(self, torch, deepspeed, transformers, options):
        from deepspeed.accelerator import get_accelerator
        self.torch, self.options = torch, options
        self.versions = dict(deepspeed=deepspeed.__version__, torch=torch.__version__,
                             transformers=transformers.__version__)
        deepspeed.utils.logger.setLevel(logging.WARNING)
        self.accelerator = get_accelerator()
        self.is_cpu = self.accelerator.device_name() == "cpu"
        if not self.is_cpu:
            self.accelerator.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        deepspeed.init_distributed(auto_mpi_discovery=False, verbose=False)
        self.rank, self.ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
        self.device = self.accelerator.current_device_name()
        self.modules = deepspeed, transformers

    def measured_on(self):
        name = processor() if self.is_cpu else self.torch.cuda.get_device_name()
        return dict(host=socket.gethostname(), processor=name, ranks=self.ranks, **self.versions,
                    threads=self.torch.get_num_threads(),
                    backend="cpu" if self.is_cpu else "cuda",
                    communication=self.torch.distributed.get_backend(),
                    date=datetime.date.today().isoformat())

    def prepare(self):
        from steps import CASES, Bench
        self.say(f"preparing DeepSpeed's engines for {len(CASES)} cases")
        plain = EagerTimer(self.torch, self.modules[1], self.device, self.accelerator.synchronize)
        self.bench = Bench(self.torch, *self.modules, self.accelerator, self.tell_of_case)
        self.timers = {"eager": plain}
        if self.ranks > 1:
            self.timers["collectives"] = Timer(self.torch, self.device, self.accelerator.synchronize)
        if self.is_cpu:
            self.timers.update(products=ProductTimer(self.torch), attention=AttentionTimer(self.torch),
                               operations=OperationTimer(self.torch))
        steps = self.bench.steps
        self.design = estimates.Design([step.counts for step in steps], [step.calls for step in steps],
                                       [step.pipelined for step in steps], self.ranks, self.is_cpu, plain.counts)
        gc.collect()
        gc.freeze()  # or each collection would look through the engines of all cases
        self.say(f"measuring {len(self.bench.steps)} cases, {self.options.seconds:.0f} s at most or "
                 f"{LEAST_ROUNDS} rounds")

    def tell_of_case(self, count):
        if count % BETWEEN_CASES == 0:
            self.say(f"{count} cases are prepared")

    def over_ranks(self, values, operation):
        tensor = self.torch.tensor(values, dtype=self.torch.float64, device=self.device)
        self.torch.distributed.all_reduce(tensor, op=operation)
        return tensor.tolist()

    def round(self, number):
        """The mean over ranks of what each takes by itself, and the slowest rank's step, as the tuner takes it."""
        operations = self.torch.distributed.ReduceOp
        parts = {name: timer.round() for name, timer in self.timers.items()}
        steps = self.bench.round(number)
        sums = iter(self.over_ranks([seconds for part in parts.values() for seconds in part.values()], operations.SUM))
        means = {name: {key: next(sums) / self.ranks for key in part} for name, part in parts.items()}
        flat = self.over_ranks([seconds for pair in steps for seconds in pair], operations.MAX)
        return {**means, "steps": list(zip(flat[::2], flat[1::2]))}

    def measure(self):
        """Rounds until more would not change the numbers or time is over; the same ones on every rank."""
        rounds, begin = [], time.monotonic()
        while True:
            rounds.append(self.round(len(rounds)))
            over = time.monotonic() - begin > self.options.seconds
            enough = len(rounds) >= LEAST_ROUNDS
            if not enough:
                self.say(f"{len(rounds)} of {LEAST_ROUNDS} rounds or more, {time.monotonic() - begin:.0f} s")
            if len(rounds) % BETWEEN_ESTIMATES == 0 and self.rank == 0 and enough:
                estimate = estimates.Estimate(rounds, self.design, resamples=50)
                over = over or estimate.is_settled()
                self.tell(estimate, time.monotonic() - begin)
            if self.over_ranks([float(over and enough and self.rank == 0)], self.torch.distributed.ReduceOp.MAX)[0]:
                return rounds, time.monotonic() - begin

    def tell(self, estimate, seconds):
        microseconds = estimates.microseconds
        parts = [f"{event} {microseconds(estimate.numbers[event])}+-{microseconds(estimate.doubt[event])}"
                 for event in estimate.design.events]
        self.say(f"{len(estimate.rounds)} rounds, {seconds:.0f} s, us: " + ", ".join(parts))

    def warn(self, estimate):
        if estimate.unstable():
            self.say(f"more than {estimates.GOOD:.0%} uncertain: {', '.join(estimate.unstable())}")
        if not estimate.is_settled():
            self.say("rounds differ: other work on this machine, or too few of them (--seconds); better measured "
                     "again where nothing else runs")

    def say(self, text):
        if self.rank == 0:
            print(shown(f"calibrate: {text}"), file=sys.stderr, flush=True)


def keep(profile, also):
    """In the cache and in `also`, if not None; a place that fails is only said."""
    text = json.dumps(profile, indent=2) + "\n"
    for path in (profiles.cache_path(profile["measured_on"], os.environ), also):
        if path is None:
            continue
        try:
            profiles.write(path, text)
            print(shown(f"calibrate: kept as {path}"), file=sys.stderr)
        except OSError as fault:
            print(shown(f"calibrate: not kept as {path}: {fault.strerror}"), file=sys.stderr)
    return text


def readable(part):
    """A round whose keys are texts: "all_gather/fp32/1024", "fp32/1"."""
    return {name: {"/".join(map(str, key)): value for key, value in of.items()} if isinstance(of, dict) else of
            for name, of in part.items()}


def write_rounds(path, rounds, calibration):
    from steps import title
    cases = [dict(title=title(step.case), counts=step.counts, calls=step.calls, pipelined=step.pipelined)
             for step in calibration.bench.steps]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"ranks": calibration.ranks, "cases": cases,
                   **readable({"eager_counts": calibration.design.eager_counts}),
                   "rounds": list(map(readable, rounds))}, file)


def import_all():
    import torch
    if not torch.cuda.is_available():
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    import deepspeed
    import transformers
    return torch, deepspeed, transformers


def main(arguments):
    options = parse(arguments)
    is_alone = adopt_launcher(os.environ) < 2
    out = stdout_for_the_profile()
    begin = time.monotonic()
    modules = import_all()
    if is_alone and os.environ.get("DS_ACCELERATOR") == "cpu":
        refuse("a calibration on CPUs needs two ranks or more: one has no partner, and its collectives would cost a "
               "fraction of what they do; scripts/tune.sh --calibrate 2")
    calibration = Calibration(*modules, options)
    calibration.prepare()
    rounds, seconds = calibration.measure()
    gc.unfreeze()
    if calibration.rank == 0:
        estimate = estimates.Estimate(rounds, calibration.design, resamples=300)
        calibration.tell(estimate, seconds)
        about = dict(seconds=round(time.monotonic() - begin, 1))
        profile = estimates.profile(estimate, calibration.measured_on(), about)
        if options.rounds_to:
            write_rounds(options.rounds_to, rounds, calibration)
        calibration.warn(estimate)
        if options.unless_vague and estimates.is_vague(profile):
            calibration.say("what was measured is too vague to be kept: the machine does other work")
        else:
            out.write(keep(profile, options.also))
        out.close()
    calibration.torch.distributed.barrier()


if __name__ == "__main__":
    main(sys.argv[1:])
