"""What a matrix product takes torch on a CPU, in the situation of a step: after a pass over other memory, with other
weights than the one before, and with a result that is kept, so that its memory is new as often as not."""
import collections
import itertools
import time

from kernels import TYPES, typical

Shape = collections.namedtuple("Shape", "rows terms columns")
# A layer's; one of more terms, which is arithmetic beyond it; and one so small that it is all preparation.
LAYER, DEEP, SMALL = SHAPES = Shape(256, 512, 512), Shape(256, 2048, 512), Shape(16, 64, 64)
TRIES, WEIGHTS = 4, 8
OTHER_ELEMENTS = 1 << 20
BYTES = {"fp32": 4, "bf16": 2}


def flop(shape):
    return 2 * shape.rows * shape.terms * shape.columns


def result_bytes(name, shape):
    return shape.rows * shape.columns * BYTES[name]


class ProductTimer:
    """Products of all shapes in every type that torch multiplies here."""

    def __init__(self, torch, shapes=SHAPES):
        self.torch, self.threads, self.operands = torch, torch.get_num_threads(), {}
        self.other = torch.zeros(OTHER_ELEMENTS, dtype=torch.float32)
        for name, dtype in TYPES.items():
            for shape in shapes:
                left, *weights = (torch.ones(*sides, dtype=getattr(torch, dtype)) for sides in (
                    (shape.rows, shape.terms), *[(shape.terms, shape.columns)] * WEIGHTS))
                try:
                    torch.mm(left, weights[0])
                except RuntimeError:
                    break
                self.operands[name, shape] = left, itertools.cycle(weights)

    def seconds(self, left, weights):
        times, kept = [], []
        for _ in range(TRIES):
            self.other.add_(1)
            weight = next(weights)
            begin = time.perf_counter()
            kept.append(self.torch.mm(left, weight))
            times.append(time.perf_counter() - begin)
        return min(times)

    def round(self):
        """{(type, threads, *shape): this rank's seconds}"""
        return {(name, self.threads, *shape): self.seconds(*operands)
                for (name, shape), operands in self.operands.items()}


def terms(name, seconds):
    """(seconds of a call, of a byte of the result, operations per second), of {shape: seconds}; what would be negative
    is nothing."""
    more = seconds[DEEP] - seconds[LAYER]
    rate = (flop(DEEP) - flop(LAYER)) / more if more > 0 else flop(LAYER) / seconds[LAYER]
    beside = {shape: seconds[shape] - flop(shape) / rate for shape in (LAYER, SMALL)}
    byte = max(0.0, (beside[LAYER] - max(0.0, beside[SMALL])) /
               (result_bytes(name, LAYER) - result_bytes(name, SMALL)))
    return max(0.0, beside[SMALL] - byte * result_bytes(name, SMALL)), byte, rate


def entries(rounds):
    """By type. Plain steps in fp32 have the latency of a product's call in their operators, so that another type's is
    only what it has beyond fp32's, and fp32 has none."""
    found, latencies, seconds = {}, {}, typical(rounds, "products")
    for name, threads, *shape in seconds:
        if tuple(shape) != LAYER:
            continue
        latencies[name], byte, rate = terms(name, {of: seconds[name, threads, *of] for of in SHAPES})
        found[name] = {"threads": threads, "gflop_per_s": round(rate / 1e9, 3),
                       "result_ns_per_kib": round(byte * 1024 * 1e9, 3)}
    of_operators = latencies.pop("fp32", None)
    if of_operators is not None:
        for name, latency in latencies.items():
            found[name]["latency_us"] = round(max(0.0, latency - of_operators) * 1e6, 2)
    return found
