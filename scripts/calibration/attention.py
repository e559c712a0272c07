"""What attention takes torch on a CPU, forward and backward apart, without dropout and with: a time per row and a rate.

A row is one query of one head. Short sequences are mostly rows, long ones mostly products. Without dropout it is one
fused kernel, with dropout some 30 operators.
"""
import collections
import time

import fitting
from kernels import DIRECTIONS, TYPES, least, typical

Shape = collections.namedtuple("Shape", "batch heads sequence head_size")
SHAPES = (Shape(4, 8, 32, 64), Shape(1, 8, 256, 64))
DROPOUTS = 0.0, 0.1
TRIES = 3
MOST_TIMES = 100  # a rate is at most so many times what the larger shape has as a whole


def rows(shape):
    return shape.batch * shape.heads * shape.sequence


def flop(shape, direction):
    """Of causal attention: two products of half a square forward, five backward."""
    forward = 4 * shape.batch * shape.heads * (shape.sequence ** 2 / 2) * shape.head_size
    return forward if direction == "forward" else 2.5 * forward


class AttentionTimer:
    """Causal attention in each type for which torch has it here."""

    def __init__(self, torch):
        self.torch, self.threads, self.operands = torch, torch.get_num_threads(), {}
        for name, dtype in TYPES.items():
            try:
                of_type = {(name, shape): self.made(shape, getattr(torch, dtype)) for shape in SHAPES}
                for operands in of_type.values():
                    for dropout in DROPOUTS:
                        self.seconds(dropout, *operands)  # whatever a first call does besides
            except RuntimeError:
                continue
            self.operands.update(of_type)

    def made(self, shape, dtype):
        """q, k and v as a model's projections leave them, and the output's gradient."""
        layout = shape.batch, shape.sequence, shape.heads, shape.head_size
        heads = [self.torch.rand(layout, dtype=dtype).transpose(1, 2).requires_grad_() for _ in range(3)]
        return heads, self.torch.rand(layout, dtype=dtype).transpose(1, 2)

    def seconds(self, dropout, heads, gradient):
        """(of forward, of backward)"""
        begin = time.perf_counter()
        out = self.torch.nn.functional.scaled_dot_product_attention(*heads, dropout_p=dropout, is_causal=True)
        middle = time.perf_counter()
        self.torch.autograd.grad(out, heads, gradient)
        return middle - begin, time.perf_counter() - middle

    def round(self):
        """{(type, threads, dropout, direction, *shape): this rank's seconds}"""
        found = {}
        for (name, shape), operands in self.operands.items():
            for dropout in DROPOUTS:
                tries = (self.seconds(dropout, *operands) for _ in range(TRIES))
                found.update({(name, self.threads, dropout, direction, *shape): seconds
                              for direction, seconds in least(tries)})
        return found


def entry(seconds, direction):
    """seconds: {shape: seconds}. Neither number is negative; a rate that the shapes do not tell has a bound."""
    measured = [({"row": rows(shape), "flop": flop(shape, direction)}, value) for shape, value in seconds.items()]
    cost = fitting.fit(measured, ("row", "flop"))
    counts, largest = max(measured, key=lambda sample: sample[0]["flop"])
    flop_seconds = max(cost["flop"], largest / counts["flop"] / MOST_TIMES)
    return {"row_us": round(cost["row"] * 1e6, 4), "gflop_per_s": round(1e-9 / flop_seconds, 3)}


def entries(rounds):
    """By type, of torch's typical times."""
    found, seconds = {}, typical(rounds, "attention")
    for name, threads, dropout, direction, *_ in seconds:
        of_shapes = {shape: seconds[(name, threads, dropout, direction, *shape)] for shape in SHAPES}
        of_type = found.setdefault(name, {"threads": threads})
        passes = of_type.setdefault("with_dropout", {}) if dropout else of_type
        passes[direction] = entry(of_shapes, direction)
    return found
