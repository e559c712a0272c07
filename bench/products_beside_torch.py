#!/usr/bin/env python3
"""Times matrix products of the CPU backend beside PyTorch's, in turn in one run.

    bench/products_beside_torch.py build/default/bench/products_on_request [--threads 1]

The shapes are those of GPT-2's layers with 512 tokens (forward, and backward's gradients of input and weight)
and of a small head. A round is each product once in both, and what is compared are the fastest rounds: of
processor time with one thread, since what else the machine does costs turns; of wall time with more. A rate is
a figure of this machine at this moment; the ratio (ours over PyTorch's, aim: 0.95 or more) is what can be
compared. Exit codes: 0 measured, 1 a geometric mean below --least, 2 wrong usage or a failed program.
"""
import argparse
import math
import subprocess
import sys
import time

# What it is, the order of its operands as stored, M, N, K.
SHAPES = [
    ("attention qkv", "NN", 512, 2304, 768),
    ("qkv's input", "NT", 512, 768, 2304),
    ("qkv's weight", "TN", 768, 2304, 512),
    ("attention out", "NN", 512, 768, 768),
    ("mlp in", "NN", 512, 3072, 768),
    ("mlp in's weight", "TN", 768, 3072, 512),
    ("mlp out", "NN", 512, 768, 3072),
    ("medium mlp in", "NN", 1024, 4096, 1024),
    ("head", "NT", 512, 8192, 512),
    ("head's input", "NN", 512, 512, 8192),
    ("head's weight", "TN", 8192, 512, 512),
]
TYPES = ["fp32", "bf16"]


class Ours:
    """The program, a product for every line that it is sent."""

    def __init__(self, program, threads):
        self.threads = threads
        self.process = subprocess.Popen([program, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.choice = self.answer()

    def answer(self):
        line = self.process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"products_on_request: exit code {self.process.wait()}")
        return line

    def time(self, dtype, shape):
        self.process.stdin.write(" ".join([dtype, *map(str, shape)]) + "\n")
        self.process.stdin.flush()
        wall, processor = map(float, self.answer().split())
        return processor if self.threads == 1 else wall

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Theirs:
    """PyTorch, with the operands as they are stored here."""

    def __init__(self, threads):
        import torch
        self.torch = torch
        torch.set_num_threads(threads)
        self.clock = time.process_time if threads == 1 else time.perf_counter
        self.operands = {}

    def made(self, dtype, shape):
        order, m, n, k = shape
        kind = {"fp32": self.torch.float32, "bf16": self.torch.bfloat16}[dtype]

        def matrix(rows, columns, is_transposed):
            stored = (columns, rows) if is_transposed else (rows, columns)
            values = self.torch.full(stored, 0.5, dtype=kind)
            return values.t() if is_transposed else values

        return matrix(m, k, order[0] == "T"), matrix(k, n, order[1] == "T"), self.torch.empty(m, n, dtype=kind)

    def time(self, dtype, shape):
        a, b, c = self.operands.setdefault((dtype, shape), None) or self.made(dtype, shape)
        self.operands[dtype, shape] = a, b, c
        begin = self.clock()
        self.torch.mm(a, b, out=c)
        return self.clock() - begin


def gflop_per_s(shape, seconds):
    _, m, n, k = shape
    return 2e-9 * m * n * k / seconds


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def measured(sides, dtypes, rounds):
    """{(type, shape): the least time of each side}; the first round is not counted."""
    least = {}
    for number in range(rounds + 1):
        for dtype in dtypes:
            for _, *shape in SHAPES:
                key = dtype, tuple(shape)
                times = [side.time(*key) for side in sides]
                if number > 0:
                    least[key] = [min(pair) for pair in zip(least.get(key, times), times)]
    return least


def table(least, dtype):
    """(lines, geometric mean of the ratios)"""
    lines = [f"| {dtype} | M x N x K | ours (GFLOP/s) | PyTorch | ratio |", "|:--|--:|--:|--:|--:|"]
    ratios = []
    for name, *shape in SHAPES:
        ours, theirs = (gflop_per_s(shape, seconds) for seconds in least[dtype, tuple(shape)])
        ratios.append(ours / theirs)
        order, *sizes = shape
        lines.append(f"| {name} {order} | {' x '.join(map(str, sizes))} | {ours:.0f} | {theirs:.0f} | {ratios[-1]:.2f} |")
    mean = geometric_mean(ratios)
    return [*lines, f"| geometric mean | | | | {mean:.2f} |"], mean


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="products_on_request")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--types", nargs="+", default=TYPES, choices=TYPES)
    parser.add_argument("--least", type=float, default=0, help="of a geometric mean")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    try:
        ours = Ours(options.program, options.threads)
        print(f"Ours: {ours.choice}\n")
        least = measured([ours, Theirs(options.threads)], options.types, options.rounds)
        ours.close()
    except (OSError, RuntimeError) as fault:
        print(f"products_beside_torch.py: {fault}", file=sys.stderr)
        return 2
    lowest = math.inf
    for dtype in options.types:
        lines, mean = table(least, dtype)
        print("\n".join(lines) + "\n")
        lowest = min(lowest, mean)
    return 0 if lowest >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
