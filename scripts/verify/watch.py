"""What one optimizer step sends, and what it needs of memory."""
import time

KINDS = {"all_reduce": "all_reduce", "all_reduce_coalesced": "all_reduce", "inference_all_reduce": "all_reduce",
         "reduce": "reduce", "reduce_scatter": "reduce_scatter", "reduce_scatter_tensor": "reduce_scatter",
         "all_gather": "all_gather", "all_gather_into_tensor": "all_gather", "all_gather_coalesced": "all_gather",
         "broadcast": "broadcast", "all_to_all": "all_to_all", "all_to_all_single": "all_to_all"}
MARK = "the watched step begins"


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
    """Counts calls, elements and bytes by kind and type of DeepSpeed's communication backend while it is active.

    pause_s: after each call. A thread of gloo's may be the last to hold a message, and what it frees the profiler of
    memory does not see.
    """

    def __init__(self, backend, pause_s=0.0):
        self.backend, self.pause_s = backend, pause_s
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
                time.sleep(self.pause_s)
        return call

    def __exit__(self, *_):
        for name in self.originals:
            delattr(self.backend, name)


def peak_after(changes, mark):
    """The most live bytes from `mark` on, of (time, bytes allocated or freed)."""
    live = most = 0
    marked = False
    for time, change in sorted(changes):
        if not marked and time > mark:
            marked, most = True, live
        live += change
        if marked:
            most = max(most, live)
    return most


class CpuMemory:
    """torch's CPU allocator has no statistics: its events are summed up, from before the model is made."""

    def __init__(self, torch):
        self.torch = torch
        self.profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True)

    def start(self):
        self.profiler.__enter__()

    def mark(self):
        with self.torch.profiler.record_function(MARK):
            pass

    def stop(self):
        self.profiler.__exit__(None, None, None)
        events = self.profiler.profiler.kineto_results.events()
        changes = [(event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]"]
        return peak_after(changes, next(event.start_ns() for event in events if event.name() == MARK))


class DeviceMemory:
    """An accelerator's caching allocator has statistics of its own."""

    def __init__(self, accelerator):
        self.accelerator = accelerator

    def start(self):
        self.before = self.accelerator.memory_allocated()

    def mark(self):
        self.accelerator.reset_peak_memory_stats()

    def stop(self):
        return self.accelerator.max_memory_allocated() - self.before
