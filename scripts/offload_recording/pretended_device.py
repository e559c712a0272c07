"""What takes the hardware's place when DeepSpeed runs without it.

DeepSpeed is not patched but where it would need the hardware: an accelerator that calls itself cuda, has DeepSpeed's
own pinning and tells a Recorder of streams and waits; collectives that return at once; CPU optimizers without their
compiled loop; and its hooks of gradients are kept for who replays a backward.
"""
import contextlib
import functools
import os

import torch

from . import purposes

os.environ.setdefault("DS_ACCELERATOR", "cpu")

DTYPES = dict(bf16=torch.bfloat16, fp16=torch.float16, fp32=torch.float32)
DEVICE = "cuda:0"
PLENTY = 1 << 40
COLLECTIVES = ("all_reduce", "all_gather_into_tensor", "reduce_scatter_fn", "reduce", "broadcast", "all_gather",
               "reduce_scatter_tensor", "allgather_fn", "all_gather_coalesced")


class Stream:
    """Work on it takes no time; who waits for it on the host is noted."""

    def __init__(self, recorder, name):
        self.recorder, self.name = recorder, name

    def synchronize(self):
        self.recorder.wait()

    def wait_stream(self, other):
        pass

    def wait_event(self, event):
        pass

    def record_event(self, event=None):
        return event or Event(self.recorder)


class Event:
    def __init__(self, recorder, *_, **__):
        self.recorder = recorder

    def record(self, *_):
        pass

    def wait(self, *_):
        pass

    def query(self):
        return True

    def synchronize(self):
        self.recorder.wait()

    def elapsed_time(self, other):
        return 1.0


class Handle:
    def wait(self, **_):
        return None

    def is_completed(self):
        return True


def make_accelerator(recorder):
    from deepspeed.accelerator.abstract_accelerator import DeepSpeedAccelerator
    from deepspeed.accelerator.cpu_accelerator import CPU_Accelerator

    class PretendedCuda(CPU_Accelerator):
        _torch_pins_host_memory = True
        pin_memory = DeepSpeedAccelerator.pin_memory

        def __init__(self):
            super().__init__()
            self._name = "cuda"
            self.streams = [Stream(recorder, "default")]

        def _torch_pin_memory(self, tensor):
            if recorder.is_pinned(tensor):
                return tensor
            with recorder.pinning():
                pinned = torch.empty_like(tensor, device="cpu")
            return pinned.copy_(tensor)

        def _torch_empty_pinned(self, tensor, shape):
            with recorder.pinning():
                return torch.empty(shape, dtype=tensor.dtype, device="cpu")

        def _torch_is_pinned(self, tensor):
            return recorder.is_pinned(tensor)

        def is_synchronized_device(self):
            return False

        use_host_timers = resolves_data_dependency = handles_memory_backpressure = is_synchronized_device

        def device_name(self, index=None):
            return "cuda" if index is None else f"cuda:{index}"

        def current_device_name(self):
            return DEVICE

        def current_device(self):
            return 0

        def device_count(self):
            return 1

        def device(self, index=None):
            return contextlib.nullcontext()

        def set_device(self, index):
            pass

        def synchronize(self, index=None):
            recorder.wait()

        def Stream(self, *_, **__):
            return Stream(recorder, purposes.name_by(purposes.STREAMS))

        @property
        def Event(self):
            return functools.partial(Event, recorder)

        @contextlib.contextmanager
        def stream(self, stream):
            self.streams.append(stream)
            try:
                with recorder.on_stream(stream.name):
                    yield
            finally:
                self.streams.pop()

        def current_stream(self, index=None):
            return self.streams[-1]

        def default_stream(self, index=None):
            return self.streams[0]

        def available_memory(self, index=None):
            return PLENTY

        total_memory = available_memory

        def memory_stats(self, index=None):
            return {}

        def memory_allocated(self, index=None):
            return 0

        max_memory_allocated = memory_allocated

        def communication_backend_name(self):
            return "fake"

        def on_accelerator(self, tensor):
            return tensor.device.type == "cuda"

        def make_tensor(self, dtype, values):
            if isinstance(values, int):
                return torch.empty(values, dtype=dtype, device=DEVICE)
            # A legacy constructor: made on the host and copied while the host waits.
            made = torch.empty(len(values), dtype=dtype, device=DEVICE)
            recorder.copy(False, "host", True, made.nbytes)
            return made

        @property
        def FloatTensor(self):
            return functools.partial(self.make_tensor, torch.float32)

        @property
        def ByteTensor(self):
            return functools.partial(self.make_tensor, torch.uint8)

        def is_bf16_supported(self):
            return True

        is_fp16_supported = is_bf16_supported

        def supported_dtypes(self):
            return list(DTYPES.values())

        def create_op_builder(self, name):
            return None

    return PretendedCuda()


def replace_collectives(deepspeed):
    def at_once(*_, **__):
        return Handle()

    for module in (deepspeed.comm, deepspeed.comm.comm):
        for name in COLLECTIVES:
            if hasattr(module, name):
                setattr(module, name, at_once)
        module.barrier = lambda *_, **__: None


def replace_optimizers(recorder):
    """Each notes a pass over the elements that its compiled loop would update."""
    import deepspeed.ops.adagrad.cpu_adagrad as adagrad
    import deepspeed.ops.adam.cpu_adam as adam
    import deepspeed.ops.lion.cpu_lion as lion

    def loop_of(name):
        class Loop:
            def load(self, verbose=True):
                return self

            def __getattr__(self, called):
                if called.startswith(("create_", "destroy_")):
                    return lambda *_: None
                return lambda *given: recorder.host_pass(
                    name, next(each for each in given if isinstance(each, torch.Tensor)).numel())
        return Loop

    adam.CPUAdamBuilder = loop_of("adam")
    lion.CPULionBuilder = loop_of("lion")
    adagrad.CPUAdagradBuilder = loop_of("adagrad")


def replace_hooks(hooks):
    """DeepSpeed's hooks of gradients get into `hooks`, by their parameters, for the replay."""
    import deepspeed.runtime.base_optimizer as base
    import deepspeed.runtime.zero.partitioned_param_coordinator as coordinator
    import deepspeed.runtime.zero.stage3 as stage3
    import deepspeed.runtime.zero.stage_1_and_2 as stage_1_and_2

    class Registered:
        def remove(self):
            pass

    def register(parameter, hook):
        hooks.setdefault(id(parameter), []).append(hook)
        return Registered()

    for module in (stage_1_and_2, stage3):
        module.register_grad_hook = register
        module.count_used_parameters_in_backward = len
    # The autograd engine calls it when the graph is done, and so does the replay.
    base.BackwardHookStateManager.queue_post_backward_callback = lambda self: True
    for module in (coordinator, stage3):
        if hasattr(module, "assert_ints_same_as_other_ranks"):
            module.assert_ints_same_as_other_ranks = lambda *_, **__: None
