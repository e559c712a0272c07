#!/usr/bin/env python3
r"""Times whole optimizer steps by dstune-mpi beside PyTorch's, on the same device in the same run.

    scripts/compare_step_with_torch.py build/cuda/bench/bench_gpu_step
    scripts/compare_step_with_torch.py build/default/bench/bench_gpu_step --backend cpu --fp32 \
        --model gpt2 --micro-batch 1 2 4 --sequence 64 --steps 3

Both train Hugging Face's GPT-2 from its configuration alone (random weights, no dropout, sdpa), on
one rank, as DeepSpeed does without ZeRO in bf16 with its fused Adam: model and gradients in bf16;
then, for every step, each gradient is looked at for inf and NaN, cast to fp32 and joined with the
others, the norm of all is taken and waited for, they are clipped to 1, a fused AdamW updates fp32
master weights, and these are copied back to bf16. With --fp32: fp32 throughout, the norm clipped,
the fused AdamW on the weights themselves. PyTorch's side is written with PyTorch alone: DeepSpeed's
own host code is in neither side (dstune-mpi runs with no host overhead), that of eager PyTorch is in
PyTorch's.

Aims: every ratio (ours over PyTorch's) within 0.85 and 1.15, a rank correlation of 0.95 or more.
Exit codes: 0 aims met or not compared (no PyTorch here), 1 missed, 2 wrong usage or a failed program.
"""
import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time

LOWEST, HIGHEST, CORRELATION = 0.85, 1.15, 0.95
WARM_UP = 3
SHAPES = {"gpt2": (12, 768, 12), "gpt2-medium": (24, 1024, 16), "gpt2-large": (36, 1280, 20),
          "gpt2-xl": (48, 1600, 25)}  # layers, hidden size, heads


def ranks(values):
    """From 1; equal values share the mean of their ranks."""
    order = sorted(values)
    first = {value: order.index(value) + 1 for value in values}
    return [first[value] + (order.count(value) - 1) / 2 for value in values]


def spearman(ours, theirs):
    """Rank correlation; None where it is not defined: fewer than two pairs, or a constant."""
    if len(ours) < 2:
        return None
    a, b = ranks(ours), ranks(theirs)
    mean = (len(a) + 1) / 2
    spread = sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)
    if spread == 0:
        return None
    return sum((x - mean) * (y - mean) for x, y in zip(a, b)) / spread ** 0.5


class Case:
    """One model and micro-batch: seconds per step of both, None for out of memory."""

    def __init__(self, model, micro_batch, ours, theirs, losses=(None, None)):
        self.model, self.micro_batch = model, micro_batch
        self.ours, self.theirs, self.losses = ours, theirs, losses

    def ratio(self):
        return None if self.ours is None or self.theirs is None else self.ours / self.theirs

    def verdict(self):
        if self.ratio() is None:
            return "not judged"
        return "met" if LOWEST <= self.ratio() <= HIGHEST else "missed"


def milliseconds(seconds):
    return "out of memory" if seconds is None else f"{seconds * 1e3:.2f}"


def table(cases):
    lines = ["| model | micro-batch | ours (ms) | PyTorch (ms) | ratio | first loss, ours | PyTorch's | "
             "verdict |", "|:--|--:|--:|--:|--:|--:|--:|:--|"]
    for case in cases:
        ratio = "" if case.ratio() is None else f"{case.ratio():.3f}"
        losses = ["" if loss is None else f"{loss:.3f}" for loss in case.losses]
        lines.append(f"| {case.model} | {case.micro_batch} | {milliseconds(case.ours)} | "
                     f"{milliseconds(case.theirs)} | {ratio} | {losses[0]} | {losses[1]} | "
                     f"{case.verdict()} |")
    return "\n".join(lines)


def conclusion(cases):
    """(text, whether all aims are met)"""
    pairs = [case for case in cases if case.ratio() is not None]
    if not pairs:
        return "no case ran on both sides", False
    correlation = spearman([case.ours for case in pairs], [case.theirs for case in pairs])
    low, high = min(case.ratio() for case in pairs), max(case.ratio() for case in pairs)
    met = low >= LOWEST and high <= HIGHEST and (correlation is None or correlation >= CORRELATION)
    text = "not defined" if correlation is None else f"{correlation:.3f}"
    return (f"{len(pairs)} cases: ratios {low:.3f} to {high:.3f} (aim {LOWEST} to {HIGHEST}), rank "
            f"correlation {text} (aim {CORRELATION}): {'met' if met else 'missed'}"), met


def run_ours(program, model, micro_batch, options):
    """The line of JSON that bench_gpu_step prints for one case."""
    command = [program, "--json", "--backend", options.backend, "--model", model, "--micro-batch",
               str(micro_batch), "--sequence", str(options.sequence), "--steps", str(options.steps),
               "--threads", str(options.threads)] + (["--fp32"] if options.fp32 else [])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{program}: exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout.strip().splitlines()[-1])


class Torch:
    """PyTorch's side."""

    def __init__(self, options):
        import torch
        import transformers
        self.torch, self.transformers, self.options = torch, transformers, options
        self.device = "cuda" if options.backend == "cuda" else "cpu"
        if self.device == "cpu":
            torch.set_num_threads(options.threads)

    def versions(self):
        device = self.torch.cuda.get_device_name() if self.device == "cuda" else "cpu"
        return f"PyTorch {self.torch.__version__}, transformers {self.transformers.__version__}, {device}"

    def synchronize(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def model(self, name):
        layers, hidden, heads = SHAPES[name]
        config = self.transformers.GPT2Config(
            n_layer=layers, n_embd=hidden, n_head=heads, n_positions=max(1024, self.options.sequence),
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)
        config._attn_implementation = "sdpa"
        self.torch.manual_seed(1)
        model = self.transformers.GPT2LMHeadModel(config).to(self.device).train()
        return model if self.options.fp32 else model.to(self.torch.bfloat16)

    def step_times(self, name, micro_batch):
        """(median seconds per step, first loss); (None, None) for out of memory"""
        try:
            return self.measure(name, micro_batch)
        except self.torch.cuda.OutOfMemoryError:
            return None, None
        finally:
            if self.device == "cuda":
                self.torch.cuda.empty_cache()

    def measure(self, name, micro_batch):
        torch = self.torch
        model = self.model(name)
        update = (PlainUpdate if self.options.fp32 else MasterUpdate)(torch, model)
        times, first_loss = [], None
        for number in range(WARM_UP + self.options.steps):
            self.synchronize()
            begin = time.perf_counter()
            tokens = torch.randint(0, model.config.vocab_size, (micro_batch, self.options.sequence),
                                   device=self.device)
            loss = model(tokens, labels=tokens).loss
            loss.backward()
            update.step()
            self.synchronize()
            times.append(time.perf_counter() - begin)
            if number == 0:
                first_loss = float(loss.detach())
        return statistics.median(times[WARM_UP:]), first_loss


class PlainUpdate:
    """Clips the norm and updates the weights themselves."""

    def __init__(self, torch, model):
        self.torch, self.parameters = torch, [p for p in model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.parameters, lr=1e-4, weight_decay=0.0, fused=True)

    def step(self):
        self.torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class MasterUpdate:
    """DeepSpeed's wrapper of a fused optimizer: FP16_Optimizer.step() with a loss scale of 1."""

    def __init__(self, torch, model):
        self.torch, self.parameters = torch, [p for p in model.parameters() if p.requires_grad]
        self.flatten = torch._utils._flatten_dense_tensors
        self.unflatten = torch._utils._unflatten_dense_tensors
        self.master = self.flatten([p.data.float() for p in self.parameters]).requires_grad_(True)
        self.optimizer = torch.optim.AdamW([self.master], lr=1e-4, weight_decay=0.0, fused=True)

    def overflows(self):
        """A wait for each tensor, whose answer bf16 ignores."""
        found = False
        for parameter in self.parameters:
            gradient = parameter.grad.float()
            found = bool(gradient.isinf().logical_or(gradient.isnan()).float().max().item()) or found
        return found

    def step(self):
        torch = self.torch
        self.overflows()
        self.master.grad = self.flatten([p.grad.to(torch.float32) for p in self.parameters])
        for parameter in self.parameters:
            parameter.grad = None
        norm = self.master.grad.norm(2).item()
        self.master.grad.mul_(1.0 / max(norm + 1e-6, 1.0))
        self.optimizer.step()
        self.master.grad = None
        for parameter, new in zip(self.parameters, self.unflatten(self.master.data, self.parameters)):
            parameter.data.copy_(new.data)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="bench_gpu_step")
    parser.add_argument("--backend", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--model", nargs="+", default=["gpt2", "gpt2-medium"], choices=sorted(SHAPES))
    parser.add_argument("--micro-batch", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--sequence", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--fp32", action="store_true")
    return parser.parse_args(arguments)


def compare(options, torch_side):
    for model in options.model:
        for micro_batch in options.micro_batch:
            line = run_ours(options.program, model, micro_batch, options)
            theirs, loss = torch_side.step_times(model, micro_batch)
            yield Case(model, micro_batch, line["step_s"], theirs, (line.get("first_loss"), loss))


def main():
    options = parse(sys.argv[1:])
    if not os.access(options.program, os.X_OK):
        print(f"compare_step_with_torch.py: {options.program} cannot be run", file=sys.stderr)
        return 2
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"not compared: {' and '.join(missing)} cannot be imported here")
        return 0
    torch_side = Torch(options)
    try:
        cases = list(compare(options, torch_side))
    except RuntimeError as fault:
        print(f"compare_step_with_torch.py: {fault}", file=sys.stderr)
        return 2
    kind = "fp32" if options.fp32 else "bf16 with fp32 master weights"
    print(f"{torch_side.versions()}; {kind}, sequences of {options.sequence}, sdpa on both sides; "
          "dstune-mpi has no eager attention, so that is not compared\n")
    print(table(cases))
    text, met = conclusion(cases)
    print(f"\n{text}")
    print("Host overhead: none on our side. scripts/tune.sh --calibrate measures DeepSpeed's hooks, "
          "which this comparison has none of, and needs DeepSpeed and two processes.")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
