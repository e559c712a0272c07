"""What a matrix product takes torch on a CPU: the one by which dstune-mpi measures itself (ProductTrial)."""
import time

# No fp16: without instructions for it torch multiplies half a GFLOP a second, and nobody trains so.
TYPES = {"fp32": "float32", "bf16": "bfloat16"}
ROWS, SIZE, TRIES = 256, 512, 4
FLOP = 2 * ROWS * SIZE * SIZE


class ProductTimer:
    """Products of every type that torch multiplies here."""

    def __init__(self, torch):
        self.torch, self.threads, self.operands = torch, torch.get_num_threads(), {}
        for name, dtype in TYPES.items():
            try:
                a, b = (torch.ones(rows, SIZE, dtype=getattr(torch, dtype)) for rows in (ROWS, SIZE))
                torch.mm(a, b)
            except RuntimeError:
                continue
            self.operands[name] = a, b

    def seconds(self, a, b):
        times = []
        for _ in range(TRIES):
            begin = time.perf_counter()
            self.torch.mm(a, b)
            times.append(time.perf_counter() - begin)
        return min(times)

    def round(self):
        """{(type, threads): this rank's seconds}"""
        return {(name, self.threads): self.seconds(*operands) for name, operands in self.operands.items()}
