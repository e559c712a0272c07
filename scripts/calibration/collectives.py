"""What the collectives of torch.distributed take, called as DeepSpeed calls them.

In the situation of a step, not in a loop of their own: each rank has just run Python and torch, so
they arrive at different moments, and the buffers are fresh. The mean over ranks of what a call takes
is then what it adds to a step, the wait for the last rank included. So is the mean over calls: one in
a few of gloo's waits for a thread to be woken, and a step of many calls has its share of those.
"""
import statistics
import time

KINDS = ("all_gather", "all_reduce", "reduce_scatter", "reduce", "broadcast", "all_to_all")
# Two of the sizes of buckets: gloo takes longer for these than small and large messages let expect.
SIZES = (1 << 10, 1 << 14, 1 << 17, 1 << 19, 1 << 21, 1 << 24)
TRIES = 5  # of what is below a MiB; of the others LARGE_TRIES
LARGE_TRIES = 2
# gloo copies messages of these kinds, and the C library maps what is larger than 32 MiB anew each time.
COPIED, LARGE_ABOVE, LARGE = ("all_gather", "reduce_scatter"), 32 << 20, 64 << 20
TYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}

# Calls of DeepSpeed's backend: the kind, and which argument has all ranks' bytes (nccl-tests' size).
CALLS = {
    "all_reduce": ("all_reduce", 0, "tensor"),
    "reduce": ("reduce", 0, "tensor"),
    "broadcast": ("broadcast", 0, "tensor"),
    "reduce_scatter_tensor": ("reduce_scatter", 1, "input_tensor"),
    "reduce_scatter": ("reduce_scatter", 1, "input_list"),
    "all_gather_into_tensor": ("all_gather", 0, "output_tensor"),
    "all_gather": ("all_gather", 0, "tensor_list"),
    "all_gather_coalesced": ("all_gather", 0, "output_tensors"),
    "all_to_all_single": ("all_to_all", 0, "output"),
}


def bus_factor(kind, ranks):
    """Bytes over the slowest link per byte of the tensor, as nccl-tests has it."""
    if kind == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if kind in ("all_gather", "reduce_scatter", "all_to_all"):
        return (ranks - 1) / ranks
    return 1.0


def bytes_of(tensors):
    if isinstance(tensors, (list, tuple)):
        return sum(bytes_of(tensor) for tensor in tensors)
    return tensors.numel() * tensors.element_size()


class Call:
    """A collective that was recorded, and its handle if it is to be waited for."""

    def __init__(self, recorder, kind, size):
        self.recorder, self.kind, self.size = recorder, kind, size
        self.handle, self.is_pipelined = None, False  # pipelined: others began before it was waited for

    def wait(self, *arguments):
        self.recorder.under_way.discard(self)
        return self.handle.wait(*arguments)

    def __getattr__(self, name):
        return getattr(self.handle, name)


class Recorder:
    """The collectives that DeepSpeed asks of its backend while this is active."""

    def __init__(self, backend):
        self.backend, self.calls, self.originals, self.under_way = backend, [], {}, set()

    def __enter__(self):
        for name in CALLS:
            original = getattr(self.backend, name, None)
            if original is not None:
                self.originals[name] = original
                setattr(self.backend, name, self.recording(name, original))
        return self

    def recording(self, name, original):
        kind, place, key = CALLS[name]

        def record(*arguments, **options):
            tensors = arguments[place] if len(arguments) > place else options.get(key, ())
            call = Call(self, kind, bytes_of(tensors))
            for other in self.under_way:
                other.is_pipelined = call.is_pipelined = True
            self.calls.append(call)
            call.handle = original(*arguments, **options)
            if not hasattr(call.handle, "wait"):
                return call.handle
            self.under_way.add(call)
            return call
        return record

    def __exit__(self, *_):
        for name, original in self.originals.items():
            setattr(self.backend, name, original)

    def alone(self):
        """[(kind, bytes)] of those that were waited for before the next one."""
        return [(call.kind, call.size) for call in self.calls if not call.is_pipelined]

    def pipelined(self):
        return sum(1 for call in self.calls if call.is_pipelined)


class Timer:
    """Calls of every kind, type and size on the ranks of torch.distributed."""

    def __init__(self, torch, device, synchronize):
        self.torch, self.device, self.synchronize = torch, device, synchronize
        self.ranks = torch.distributed.get_world_size()
        self.has_large = torch.distributed.get_backend() == "gloo"
        layers = [torch.nn.Linear(32, 32) for _ in range(8)]
        self.model = torch.nn.Sequential(*layers).to(device)
        self.tokens = torch.randn(8, 32, device=device)
        self.combinations = [(kind, name) for kind in KINDS for name in TYPES if self.works(kind, name)]

    def works(self, kind, name):
        """Whether the backend has it: gloo of older PyTorch lacks some kinds and 16-bit types."""
        try:
            self.prepared(kind, name, SIZES[0])()
            self.synchronize()
        except (RuntimeError, ValueError, TypeError):
            return False
        return True

    def prepared(self, kind, name, size):
        torch, distributed = self.torch, self.torch.distributed
        options = dict(dtype=getattr(torch, TYPES[name]), device=self.device)
        count = size // torch.empty(0, dtype=options["dtype"]).element_size()
        count -= count % self.ranks
        whole, part = (lambda make: make(count, **options)), (lambda make: make(count // self.ranks, **options))
        if kind == "all_gather":
            mine, out = part(torch.ones), whole(torch.empty)
            return lambda: distributed.all_gather_into_tensor(out, mine)
        if kind == "reduce_scatter":
            out, mine = part(torch.empty), whole(torch.ones)
            return lambda: distributed.reduce_scatter_tensor(out, mine)
        mine = whole(torch.ones)
        if kind == "all_to_all":
            out = whole(torch.empty)
            return lambda: distributed.all_to_all_single(out, mine)
        if kind == "all_reduce":
            return lambda: distributed.all_reduce(mine)
        return lambda: getattr(distributed, kind)(mine, 0)

    def work(self):
        self.model(self.tokens).sum().backward()
        self.synchronize()

    def seconds(self, kind, name, size):
        times = []
        for _ in range(TRIES if size < 1 << 20 else LARGE_TRIES):
            call = self.prepared(kind, name, size)
            self.work()
            begin = time.perf_counter()
            call()
            self.synchronize()
            times.append(time.perf_counter() - begin)
        return statistics.mean(times)

    def round(self):
        """{(kind, type, bytes): this rank's seconds}, in the same order on every rank."""
        large = [(kind, "fp32", LARGE) for kind in COPIED if self.has_large and (kind, "fp32") in self.combinations]
        small = [(kind, name, size) for size in SIZES for kind, name in self.combinations]
        return {key: self.seconds(*key) for key in small + large}
