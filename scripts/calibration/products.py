"""What a matrix product takes torch on a CPU: one whose shape is a layer's, and one so small that it is all
preparation."""
import statistics
import time

# No fp16: without instructions for it torch multiplies half a GFLOP a second, and nobody trains so.
TYPES = {"fp32": "float32", "bf16": "bfloat16"}
SHAPE, SMALL_SHAPE = (256, 512, 512), (16, 64, 64)  # rows, terms and columns
TRIES, SMALL_TRIES = 4, 20


def flop(shape):
    rows, terms, columns = shape
    return 2 * rows * terms * columns


class ProductTimer:
    """Products of one shape in every type that torch multiplies here."""

    def __init__(self, torch, shape=SHAPE, tries=TRIES):
        self.torch, self.threads, self.tries, self.operands = torch, torch.get_num_threads(), tries, {}
        rows, terms, columns = shape
        for name, dtype in TYPES.items():
            try:
                a, b = (torch.ones(*sides, dtype=getattr(torch, dtype)) for sides in ((rows, terms), (terms, columns)))
                torch.mm(a, b)
            except RuntimeError:
                continue
            self.operands[name] = a, b

    def seconds(self, a, b):
        times = []
        for _ in range(self.tries):
            begin = time.perf_counter()
            self.torch.mm(a, b)
            times.append(time.perf_counter() - begin)
        return min(times)

    def round(self):
        """{(type, threads): this rank's seconds}"""
        return {(name, self.threads): self.seconds(*operands) for name, operands in self.operands.items()}


def typical(rounds, part):
    """{key: torch's seconds} of a part of the rounds, the median: ranks compute at once, as in a step, and where they
    share a core's units some rounds are luckier than any step."""
    return {key: statistics.median(measured[part][key] for measured in rounds) for key in rounds[0].get(part, {})}


def line(small, large):
    """(seconds of a call, operations per second) of a small product's seconds, None if unknown, and a layer's."""
    more = 0.0 if small is None else large - small
    if more <= 0:
        return 0.0, flop(SHAPE) / large
    rate = (flop(SHAPE) - flop(SMALL_SHAPE)) / more
    return max(0.0, small - flop(SMALL_SHAPE) / rate), rate


def entries(rounds):
    """By type. Plain steps in fp32 have the latency of a product's call in their operators, so that another type's is
    only what it has beyond fp32's, and fp32 has none."""
    found, latencies = {}, {}
    small = typical(rounds, "small_products")
    for key, seconds in typical(rounds, "products").items():
        latency, rate = line(small.get(key), seconds)
        name, threads = key
        found[name] = {"threads": threads, "gflop_per_s": round(rate / 1e9, 3)}
        if key in small:
            latencies[name] = latency
    of_operators = latencies.pop("fp32", None)
    if of_operators is not None:
        for name, latency in latencies.items():
            found[name]["latency_us"] = round(max(0.0, latency - of_operators) * 1e6, 2)
    return found
