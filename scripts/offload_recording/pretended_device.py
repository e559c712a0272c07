"""Runs the DeepSpeed that Python finds, as one rank of several on a GPU that is not there.

DeepSpeed is not patched but where it would need the hardware: an accelerator that calls itself cuda, has DeepSpeed's
own pinning and tells a Recorder of streams and waits; collectives that return at once; CPU optimizers without their
compiled loop. There is no autograd of pretended CUDA tensors: forward runs, and backward replays the order in which
real autograd calls gradients' and modules' hooks of the same model on the CPU (backward_order.py).
"""
import contextlib
import functools
import os
import tempfile
import traceback

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from . import backward_order, cases, drive_cases, pretended_drive, purposes
from .recorder import Recorder

os.environ.setdefault("DS_ACCELERATOR", "cpu")

DTYPES = dict(bf16=torch.bfloat16, fp16=torch.float16, fp32=torch.float32)
DEVICE = "cuda:0"
STEPS = 2  # of which the last is recorded
STEPS_WITH_DRIVE = 3  # the first makes new states, and what is fetched when is as in the second from the third on
TOKENS = 16
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


def make_module(model, dtype):
    """The model of cases.py, on the device in the type that it is trained in."""
    made = torch.nn.Sequential()
    torch.set_default_dtype(dtype)
    try:
        for name, kind, sizes in cases.MODELS[model]:
            module = {"embedding": torch.nn.Embedding, "linear": torch.nn.Linear, "norm": torch.nn.LayerNorm}[kind]
            made.add_module(name, module(*sizes))
    finally:
        torch.set_default_dtype(torch.float32)
    return made


class Replay:
    """Takes the place of autograd's backward."""

    def __init__(self, recorder, module, order, hooks):
        self.recorder, self.hooks = recorder, hooks
        self.modules = {name: each for name, each in module.named_modules()}
        self.parameters = dict(module.named_parameters())
        self.order, self.engine = order, None

    @torch.no_grad()
    def __call__(self):
        self.engine._backward_prologue()
        offload = getattr(self.engine.optimizer, "parameter_offload", None)
        for what, name in self.order:
            if what == backward_order.GRADIENT:
                self._accumulate(self.parameters[name])
            elif offload is not None:
                self._visit(offload, what, self.modules[name])
        self.engine.optimizer.run_grad_acc_post_hooks()

    def _accumulate(self, parameter):
        shape = getattr(parameter, "ds_shape", parameter.shape)
        with self.recorder.making("gradient"):
            gradient = torch.empty(shape, dtype=parameter.dtype, device=DEVICE)
        if parameter.grad is None:
            parameter.grad = gradient
        else:
            parameter.grad.add_(gradient)
        del gradient
        for hook in self.hooks.get(id(parameter), ()):
            hook(parameter)

    def _visit(self, offload, what, module):
        """As the autograd functions do that DeepSpeed puts around each module."""
        if what == backward_order.AFTER:
            offload.post_sub_module_backward_function(module)
        elif module.applied_pre_backward_ref_cnt > 0:
            offload.pre_sub_module_backward_function(module)
            module.applied_pre_backward_ref_cnt -= 1


def prepare(case, recorder):
    """DeepSpeed with what takes the hardware's place, and the hooks that will be registered."""
    ranks, rank = case["ranks"], cases.rank_of(case)
    os.environ.update(RANK=str(rank), LOCAL_RANK="0", WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1")
    import deepspeed.accelerator.real_accelerator as real_accelerator

    real_accelerator.set_accelerator(make_accelerator(recorder))
    import deepspeed
    import deepspeed.comm.torch
    from torch.testing._internal.distributed.fake_pg import FakeStore

    deepspeed.comm.torch.build_shm_op = lambda: None  # it would be compiled, and nothing is communicated
    torch.distributed.init_process_group(backend="fake", rank=rank, world_size=ranks, store=FakeStore())
    hooks = {}
    replace_collectives(deepspeed)
    replace_optimizers(recorder)
    replace_hooks(hooks)
    torch.Tensor.record_stream = lambda self, stream: None
    for name in ("to", "bfloat16", "half", "float", "cuda"):  # the model is where and what it shall be
        setattr(torch.nn.Module, name, lambda self, *_, **__: self)
    return deepspeed, hooks


def record(case):
    """The row of a case, and what no rule of purposes.py names. Once per process: DeepSpeed is changed for good."""
    run = Run(case)
    with run.prepared() as initialize:
        run.initialize(initialize)
        for step in range(STEPS_WITH_DRIVE if run.drive else STEPS):
            run.step(step)
        steady = run.recorder.bytes_by_purpose()
    return run.row(steady), run.recorder.unnamed


def outcome(case):
    """The files that DeepSpeed has written, and how it dies of a case that asks for too little, {} if not."""
    run = Run(case)
    try:
        with run.prepared() as initialize:
            run.initialize(initialize)
            for step in range(STEPS_WITH_DRIVE):
                run.step(step)
    except Exception as fault:
        last = traceback.extract_tb(fault.__traceback__)[-1]
        words = str(fault).strip().splitlines()
        return run.drive.files(), dict(phase=run.recorder.phase, type=type(fault).__name__,
                                       message=words[-1] if words else "", function=last.name, statement=last.line)
    return run.drive.files(), {}


class Run:
    """DeepSpeed with a model, from before it is initialized to its last step."""

    def __init__(self, case):
        self.case, on_drive = case, drive_cases.is_on_drive(case)
        self.recorder = Recorder(locks=on_drive)
        self.drive = pretended_drive.Drive(self.recorder) if on_drive else None
        self.engine, self.setup = None, {}
        self.phases, self.first_phases, self.peaks, self.before_step = {}, {}, [], {}

    @contextlib.contextmanager
    def prepared(self):
        """In a folder of its own and with tensors that are pretended; yields what makes an engine."""
        case = self.case
        order = backward_order.of(lambda: make_module(case["model"], torch.float32), TOKENS)
        deepspeed, hooks = prepare(case, self.recorder)
        if self.drive:
            pretended_drive.replace_operator(self.drive)
        folder = os.getcwd()
        with tempfile.TemporaryDirectory() as scratch, FakeTensorMode(allow_non_fake_inputs=True), self.recorder:
            os.chdir(scratch)
            try:
                yield functools.partial(self._make_engine, deepspeed, hooks, order)
            finally:
                os.chdir(folder)

    def initialize(self, make_engine):
        make_engine()
        self.setup = {**self.recorder.bytes_by_tier(), "at_host_peak": self.recorder.host_peak}

    def step(self, step):
        self.recorder.begin_peak()
        self.phases = self._run_phases(step)
        self.first_phases = self.first_phases or self.phases
        self.peaks.append(self.recorder.host_peak)

    def _make_engine(self, deepspeed, hooks, order):
        case, recorder = self.case, self.recorder
        with recorder.making("model"), torch.device(DEVICE):
            module = make_module(case["model"], DTYPES[case["dtype"]])
        parameters = list(module.parameters())
        groups = [dict(params=[parameters[i] for i in members], weight_decay=decay)
                  for decay, members in cases.groups_of(case)]
        replay = Replay(recorder, module, order, hooks)
        torch.Tensor.backward = lambda loss, **_: replay()
        del parameters
        recorder.phase = "setup"
        recorder.begin_peak()
        self.engine = deepspeed.initialize(model=module, model_parameters=groups,
                                           config=drive_cases.config_of(case))[0]
        replay.engine = self.engine

    def _run_phases(self, step):
        """One optimizer step; the names of its phases, and how they are called in the row."""
        phases, recorder, accumulation = {}, self.recorder, self.case["accumulation"]

        def enter(micro_step, name):
            recorder.phase = f"{step} {micro_step} {name}"
            phases[recorder.phase] = f"{micro_step} {name}"

        for micro_step in range(accumulation):
            enter(micro_step, "forward")
            with recorder.making("activations"):
                tokens = torch.zeros(1, TOKENS, dtype=torch.long, device=DEVICE)
            out = self.engine(tokens)
            with recorder.making("loss"):
                loss = out.float().mean()
            del out
            enter(micro_step, "backward")
            self.engine.backward(loss)
            del loss, tokens
            if micro_step == accumulation - 1:
                self.before_step = recorder.bytes_by_purpose()
            enter(micro_step, "step")
            self.engine.step()
        return phases

    def row(self, steady):
        case, recorder = self.case, self.recorder
        row = dict(name=case["name"], placement=case["placement"], model=case["model"], ranks=case["ranks"],
                   rank=cases.rank_of(case), parameter_groups=cases.groups_of(case),
                   ds_config=drive_cases.config_of(case), setup=self.setup, steady=steady,
                   step=dict(at_host_peak=self.peaks[-1]), pinned=recorder.pins.summary(),
                   pins=recorder.pins.requests, phases=self._noted(self.phases))
        if self.drive:
            row["setup"]["drive"] = drive_of(recorder.notes["setup"])
            row.update(before_step=self.before_step, first_step=dict(at_host_peak=self.peaks[0]),
                       locked=recorder.locks.requests, files=self.drive.files())
            if drive_cases.PLACEMENTS[case["placement"]].get("first_step"):
                row["first_phases"] = self._noted(self.first_phases)
        return row

    def _noted(self, phases):
        found = {}
        for phase, name in phases.items():
            notes = self.recorder.notes.get(phase)
            if notes is None:
                continue
            found[name] = dict(copies=[[*key, *sums] for key, sums in notes["copies"].items()],
                               waits=dict(notes["waits"]), reads=dict(notes["reads"]),
                               host_passes=[[what, *sums] for what, sums in notes["host_passes"].items()])
            if self.drive:
                found[name]["drive"] = drive_of(notes)
        return found


def drive_of(notes):
    return [[*key, *sums] for key, sums in notes["drive"].items()]
