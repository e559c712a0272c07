#!/usr/bin/env python3
"""Times operations of models' layers on a GPU beside eager PyTorch's.

    bench/gpu/kernels_beside_torch.py build/cuda/bench/kernels_on_request [--only attention] [--backend cpu]

Each is a chain of modules' own code (transformers' RMSNorm, apply_rotary_pos_emb, ...) there, and here the
operation that stands for it; both with cold caches, as medians of the device's own time. A line of standard
output is a JSON object: kernel, pass, ours_ms, torch_ms, ratio, and for attention which of its kernels PyTorch
took. The aim is a ratio of 0.9 to 1.1: what is faster here than in the training is as wrong as what is slower.
--backend cpu runs all of it in small on a CPU, to see that it works; its ratios say nothing.
Exit codes: 0 measured, 1 an operation failed, 2 wrong usage, or there is nothing to measure with.
"""
import argparse
import importlib
import json
import statistics
import subprocess
import sys
import time

TOKENS = 8192
EXPENSIVE_CYCLES = 3_000_000  # of the GPU, before each measurement: the host gets ahead of it
FLUSHED_BYTES = 256 << 20
ROUNDS = 11


class Case:
    """sizes as kernels_on_request takes them; `torch` gives (forward(), inputs) of them"""

    def __init__(self, name, sizes, make, dtypes=("bf16",)):
        self.name, self.sizes, self.make, self.dtypes = name, sizes, make, dtypes


def rotate(torch, kind, device, tokens, heads, head_size):
    x = torch.randn(1, tokens, heads, head_size, dtype=kind, device=device).transpose(1, 2).requires_grad_()
    cos = torch.randn(1, tokens, head_size, dtype=kind, device=device)
    sin = torch.randn(1, tokens, head_size, dtype=kind, device=device)

    def rotate_half(values):
        half = values.shape[-1] // 2
        return torch.cat((-values[..., half:], values[..., :half]), dim=-1)

    def forward():
        return x * cos.unsqueeze(1) + rotate_half(x) * sin.unsqueeze(1)
    return forward, [x]


def rms_norm(torch, kind, device, rows, columns):
    x = torch.randn(1, rows, columns, dtype=kind, device=device, requires_grad=True)
    weight = torch.ones(columns, dtype=kind, device=device, requires_grad=True)

    def forward():
        wide = x.to(torch.float32)
        variance = wide.pow(2).mean(-1, keepdim=True)
        return weight * (wide * torch.rsqrt(variance + 1e-6)).to(kind)
    return forward, [x, weight]


def layer_norm(torch, kind, device, rows, columns):
    x = torch.randn(1, rows, columns, dtype=kind, device=device, requires_grad=True)
    module = torch.nn.LayerNorm(columns, dtype=kind, device=device)
    return lambda: module(x), [x, module.weight, module.bias]


def softmax(torch, kind, device, rows, columns):
    x = torch.randn(rows, columns, dtype=kind, device=device, requires_grad=True)
    return lambda: torch.nn.functional.softmax(x, dim=-1), [x]


def glu(torch, kind, device, rows, columns):
    gate_up = torch.randn(rows, 2 * columns, dtype=kind, device=device, requires_grad=True)
    gate, up = (half.detach().requires_grad_() for half in gate_up.chunk(2, dim=-1))  # joining is not Glu's
    return lambda: torch.nn.functional.silu(gate) * up, [gate, up]


def gelu_new(torch, kind, device, count):
    x = torch.randn(count, dtype=kind, device=device, requires_grad=True)
    factor = (2 / 3.141592653589793) ** 0.5
    return lambda: 0.5 * x * (1.0 + torch.tanh(factor * (x + 0.044715 * torch.pow(x, 3.0)))), [x]


def gelu(torch, kind, device, count):
    x = torch.randn(count, dtype=kind, device=device, requires_grad=True)
    return lambda: torch.nn.functional.gelu(x), [x]


def dropout(torch, kind, device, count):
    x = torch.randn(count, dtype=kind, device=device, requires_grad=True)
    return lambda: torch.nn.functional.dropout(x, 0.1, training=True), [x]


def attention(torch, kind, device, batch, sequence, heads, kv_heads, head_size, probability):
    def operand(count):
        value = torch.randn(batch, sequence, count, head_size, dtype=kind, device=device)
        return value.transpose(1, 2).requires_grad_()
    q, k, v = operand(heads), operand(kv_heads), operand(kv_heads)

    def forward():
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, dropout_p=probability, is_causal=True, enable_gqa=heads != kv_heads)
    return forward, [q, k, v]


def bias(torch, kind, device, rows, columns):
    gradient = torch.randn(rows, columns, dtype=kind, device=device)
    return lambda: gradient.sum(0), []


def add(torch, kind, device, count):
    a = torch.randn(count, dtype=kind, device=device)
    b = torch.randn(count, dtype=kind, device=device)
    return lambda: b.add_(a), []


def multiply(torch, kind, device, count):
    a = torch.randn(count, dtype=kind, device=device)
    b = torch.randn(count, dtype=kind, device=device)
    return lambda: a * b, []


def cases(divisor):
    tokens = TOKENS // divisor
    sequence = 1024 // min(divisor, 8)
    many = 25_000_000 // divisor

    def heads_of(count, kv_count, size, probability=0.0):
        return (8 // min(divisor, 8), sequence, count, kv_count, size, probability)
    return [
        Case("rotate", (tokens, 32, 64), rotate),
        Case("rotate", (tokens, 32, 128), rotate),
        Case("rotate", (tokens, 8, 128), rotate),
        Case("rms_norm", (tokens, 2048), rms_norm),
        Case("rms_norm", (tokens, 4096), rms_norm),
        Case("layer_norm", (tokens, 1024), layer_norm),
        Case("layer_norm", (tokens, 1600), layer_norm),
        Case("layer_norm", (4 * tokens, 768), layer_norm),
        Case("glu", (tokens, 5632), glu),
        Case("glu", (tokens, 14336), glu),
        Case("softmax", (64 * tokens // 4, 1024), softmax, ("bf16", "fp32")),
        Case("softmax", (64 * tokens // 4, 512), softmax),
        Case("gelu_new", (many,), gelu_new),
        Case("gelu", (many,), gelu),
        Case("dropout", (many,), dropout),
        Case("bias", (tokens, 3072), bias),
        Case("add", (many,), add),
        Case("multiply", (many,), multiply),
        Case("attention", heads_of(12, 12, 64), attention),
        Case("attention", heads_of(12, 12, 64, 0.1), attention),
        Case("attention", heads_of(25, 25, 64, 0.1), attention),
        Case("attention", heads_of(32, 8, 64), attention),
        Case("attention", heads_of(32, 8, 128), attention),
        Case("attention", heads_of(16, 16, 128, 0.1), attention),
        Case("attention", heads_of(8, 1, 256), attention),
        Case("attention", heads_of(8, 8, 256, 0.1), attention),
        Case("attention", heads_of(12, 12, 96, 0.1), attention),
        Case("attention", heads_of(12, 12, 64), attention, ("fp32",)),
    ]


class Ours:
    """The program, an operation for every line that it is sent."""

    def __init__(self, program, backend):
        self.process = subprocess.Popen([program, backend], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.device = self.answer()

    def answer(self):
        line = self.process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"kernels_on_request: exit code {self.process.wait()}")
        return line

    def times(self, case, dtype):
        """seconds of forward and backward; 0: there is none"""
        self.process.stdin.write(" ".join([case.name, dtype, *map(str, case.sizes)]) + "\n")
        self.process.stdin.flush()
        return tuple(map(float, self.answer().split()))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Theirs:
    """Eager PyTorch."""

    def __init__(self, backend):
        import torch
        self.torch = torch
        self.device = backend
        self.kinds = {"bf16": torch.bfloat16, "fp32": torch.float32}
        self.space = torch.empty(FLUSHED_BYTES, dtype=torch.int8, device=backend) if backend == "cuda" else None

    def time(self, call):
        """seconds of one call with cold caches"""
        if self.device == "cpu":
            begin = time.perf_counter()
            call()
            return time.perf_counter() - begin
        cuda = self.torch.cuda
        self.space.zero_()
        cuda._sleep(EXPENSIVE_CYCLES)  # pylint: disable=protected-access
        events = [cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        call()
        events[1].record()
        events[1].synchronize()
        return events[0].elapsed_time(events[1]) * 1e-3

    def median(self, call):
        call()
        rounds = ROUNDS if self.device == "cuda" else 1
        return statistics.median(self.time(call) for _ in range(rounds))

    def times(self, case, dtype):
        forward, inputs = case.make(self.torch, self.kinds[dtype], self.device, *case.sizes)
        if not inputs:
            return self.median(forward), 0.0
        out = forward()
        gradient = self.torch.randn_like(out)
        return self.median(forward), self.median(
            lambda: self.torch.autograd.grad(out, inputs, gradient, retain_graph=True))

    def attention_kernel(self, case, dtype):
        """the name of the longest kernel of a forward"""
        if case.name != "attention" or self.device == "cpu":
            return None
        forward, _ = case.make(self.torch, self.kinds[dtype], self.device, *case.sizes)
        activity = self.torch.profiler.ProfilerActivity.CUDA
        with self.torch.profiler.profile(activities=[activity]) as profile:
            forward()
            self.torch.cuda.synchronize()
        kernels = sorted(profile.key_averages(), key=lambda event: -event.self_device_time_total)
        return kernels[0].key[:80] if kernels else None


def rows(case, dtype, ours, theirs, kernel):
    """the lines of a case"""
    for which, (own, other) in enumerate(zip(ours, theirs)):
        if own == 0 or other == 0:
            continue
        row = {"kernel": f"{case.name} {dtype} {' x '.join(map(str, case.sizes))}",
               "pass": ("forward", "backward")[which], "ours_ms": round(own * 1e3, 4),
               "torch_ms": round(other * 1e3, 4), "ratio": round(own / other, 3)}
        if kernel:
            row["torch_took"] = kernel
        yield row


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="kernels_on_request")
    parser.add_argument("--backend", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--only", nargs="+", help="names of operations")
    return parser.parse_args(arguments)


def of_this_program(options, wanted):
    """[seconds of both passes] of what is wanted; it takes the memory of the GPU, so PyTorch waits"""
    ours = Ours(options.program, options.backend)
    try:
        return [ours.times(case, dtype) for case, dtype in wanted]
    finally:
        ours.close()


def main():
    options = parse(sys.argv[1:])
    wanted = [(case, dtype) for case in cases(1 if options.backend == "cuda" else 64) for dtype in case.dtypes
              if not options.only or case.name in options.only]
    try:
        importlib.import_module("torch")
        ours = of_this_program(options, wanted)
        theirs = Theirs(options.backend)
    except (ImportError, OSError, RuntimeError) as fault:
        print(f"kernels_beside_torch.py: {fault}", file=sys.stderr)
        return 2
    failed = False
    for (case, dtype), own in zip(wanted, ours):
        try:
            times, kernel = theirs.times(case, dtype), theirs.attention_kernel(case, dtype)
        except RuntimeError as fault:
            failed = True
            print(f"kernels_beside_torch.py: {case.name} {dtype}: {fault}", file=sys.stderr)
            continue
        for row in rows(case, dtype, own, times, kernel):
            print(json.dumps(row), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
