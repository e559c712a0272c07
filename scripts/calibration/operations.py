"""What torch takes on a CPU, forward and backward apart, for each element of what dstune-mpi has one kernel for:
random numbers of dropout, activations and norms as transformers writes them, rotary positions, the loss's softmax.

A small tensor is mostly the operators' calls, which have their own time (eager.py); what a larger one takes more is its
elements'. Both are large enough for all threads: torch gives each 32,768 elements or more.
"""
import time

from kernels import TYPES, least, typical

ROWS, COLUMNS = (64, 256), 512  # for each thread
TRIES = 2


def operations(torch, shape, dtype):
    """{name: (function, operands)}; the gradients of all operands are asked for."""
    from transformers.activations import NewGELUActivation
    from transformers.models.llama.modeling_llama import LlamaRMSNorm
    functional, (rows, columns) = torch.nn.functional, shape

    def made(*sides):
        return torch.rand(sides, dtype=dtype).requires_grad_()

    x, vector = made(rows, columns), (columns,)
    scale, shift = made(columns), made(columns)
    norm = LlamaRMSNorm(columns).to(dtype)
    cos, sin = (torch.rand(rows, columns, dtype=dtype) for _ in range(2))
    half = columns // 2

    def rotary(of):
        """transformers' apply_rotary_pos_emb does this to q and to k."""
        return of * cos + torch.cat((-of[..., half:], of[..., :half]), dim=-1) * sin

    return {
        "dropout": (lambda of: functional.dropout(of, 0.1), [x]),
        "gelu": (functional.gelu, [x]),
        "gelu_tanh": (lambda of: functional.gelu(of, approximate="tanh"), [x]),
        "gelu_new": (NewGELUActivation(), [x]),
        "silu": (functional.silu, [x]),
        "layer_norm": (lambda of, *weights: functional.layer_norm(of, vector, *weights), [x, scale, shift]),
        "rms_norm": (lambda of, _: norm(of), [x, norm.weight]),
        "rotary": (rotary, [x]),
        "log_softmax": (lambda of: functional.log_softmax(of, dim=-1), [x]),
    }


class OperationTimer:
    """All of them, in each type that torch has here."""

    def __init__(self, torch):
        self.torch, self.threads, self.cases = torch, torch.get_num_threads(), {}
        for name, dtype in TYPES.items():
            made = [operations(torch, (rows * self.threads, COLUMNS), getattr(torch, dtype)) for rows in ROWS]
            for operation in made[0]:
                of_sizes = {(operation, name, rows): cases[operation] for rows, cases in zip(ROWS, made)}
                try:
                    for case in of_sizes.values():
                        self.seconds(*case)  # whatever a first call does besides
                except RuntimeError:
                    continue
                self.cases.update(of_sizes)

    def seconds(self, function, operands):
        """(of forward, of backward)"""
        begin = time.perf_counter()
        out = function(*operands)
        middle = time.perf_counter()
        gradient = self.torch.ones_like(out)
        begin_back = time.perf_counter()
        self.torch.autograd.grad(out, operands, gradient)
        return middle - begin, time.perf_counter() - begin_back

    def round(self):
        """{(operation, type, threads, direction, rows for each thread): this rank's seconds}"""
        found = {}
        for (operation, name, rows), case in self.cases.items():
            tries = (self.seconds(*case) for _ in range(TRIES))
            found.update({(operation, name, self.threads, direction, rows): seconds
                          for direction, seconds in least(tries)})
        return found


def element_seconds(few, many, threads):
    """What one element more takes, of the seconds of both sizes, and nothing less than none."""
    return max(0.0, many - few) / ((ROWS[1] - ROWS[0]) * threads * COLUMNS)


def entries(rounds):
    """By operation and type, of torch's typical times."""
    found, seconds = {}, typical(rounds, "operations")
    for operation, name, threads, direction, rows in seconds:
        if rows != ROWS[0]:
            continue
        few, many = (seconds[(operation, name, threads, direction, of)] for of in ROWS)
        entry = found.setdefault(operation, {}).setdefault(name, {"threads": threads})
        entry[f"{direction}_ns"] = round(element_seconds(few, many, threads) * 1e9, 4)
    return found
