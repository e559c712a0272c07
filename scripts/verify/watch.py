"""What one optimizer step sends, and what it needs of memory."""
from count_allocations import AllocationCounter

KINDS = {"all_reduce": "all_reduce", "all_reduce_coalesced": "all_reduce", "inference_all_reduce": "all_reduce",
         "reduce": "reduce", "reduce_scatter": "reduce_scatter", "reduce_scatter_tensor": "reduce_scatter",
         "all_gather": "all_gather", "all_gather_into_tensor": "all_gather", "all_gather_coalesced": "all_gather",
         "broadcast": "broadcast", "all_to_all": "all_to_all", "all_to_all_single": "all_to_all"}
DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "float64": "fp64", "uint8": "int8", "bool": "int8"}


def message(name, arguments, options):
    """(type, elements, bytes) of the full message: what is gathered, or what is reduced. Positions are those of
    deepspeed.comm. Types are named as in ledgers, which have one for all of a byte."""
    operands = list(arguments) + [value for value in options.values() if hasattr(value, "numel")]
    full = operands[1] if name in ("reduce_scatter", "reduce_scatter_tensor") else operands[0]
    tensors = full if isinstance(full, (list, tuple)) else [full]
    names = sorted({str(tensor.dtype).removeprefix("torch.") for tensor in tensors})
    return ("+".join(DTYPES.get(each, each) for each in names), sum(tensor.numel() for tensor in tensors),
            sum(tensor.numel() * tensor.element_size() for tensor in tensors))


class CollectiveSums:
    """Counts calls, elements and bytes by kind and type of DeepSpeed's communication backend while it is active."""

    def __init__(self, backend):
        self.backend = backend
        self.sums, self.originals, self.inside = {}, {}, False

    def __enter__(self):
        for name in KINDS:
            original = getattr(self.backend, name, None)
            if original is not None:
                self.originals[name] = original
                setattr(self.backend, name, self.counting(name, original))
        return self

    def counting(self, name, original):
        def call(*arguments, **options):
            if self.inside:  # a collective that is made of another
                return original(*arguments, **options)
            dtype, elements, size = message(name, arguments, options)
            key = f"{KINDS[name]} {dtype}"
            self.sums[key] = [a + b for a, b in zip(self.sums.get(key, (0, 0, 0)), (1, elements, size))]
            self.inside = True
            try:
                return original(*arguments, **options)
            finally:
                self.inside = False
        return call

    def __exit__(self, *_):
        for name in self.originals:
            delattr(self.backend, name)


class CountedMemory:
    """torch's CPU allocator has no statistics: one that counts takes its place, compiled here (count_allocations.cpp).
    One for a process, made before DeepSpeed's backend, which keeps torch's functions."""
    COPY = ("all_reduce", "reduce", "reduce_scatter_tensor", "all_gather_into_tensor", "broadcast")

    def __init__(self, torch):
        self.counter = AllocationCounter(torch)
        for name in self.COPY:  # gloo takes memory of its own in these, where NCCL works in place
            self.counter.leave_out(torch.distributed, name)
        self.begins = True

    def start(self):
        if self.begins:  # not sooner: it takes time
            self.counter.begin()
            self.begins = False
        self.counter.take_peak()
        self.before = self.counter.take_peak()

    def mark(self):
        self.counter.take_peak()

    def peak(self):
        """Since the mark, without what there was at the start."""
        return self.counter.take_peak() - self.before


class DeviceMemory:
    """An accelerator's caching allocator has statistics of its own."""

    def __init__(self, accelerator):
        self.accelerator = accelerator

    def start(self):
        self.before = self.accelerator.memory_allocated()

    def mark(self):
        self.accelerator.reset_peak_memory_stats()

    def peak(self):
        return self.accelerator.max_memory_allocated() - self.before
