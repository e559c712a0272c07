"""Runs the DeepSpeed that Python finds, as one rank of several on a GPU that is not there.

There is no autograd of pretended CUDA tensors: forward runs, and backward replays the order in which real autograd
calls gradients' and modules' hooks of the same model on the CPU (backward_order.py).
"""
import contextlib
import functools
import os
import tempfile
import traceback

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from . import backward_order, cases, drive_cases, pretended_device as device, pretended_drive
from .recorder import Recorder

STEPS = 2  # of which the last is recorded
STEPS_WITH_DRIVE = 3  # the first makes new states, and what is fetched when is as in the second from the third on
TOKENS = 16


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
            gradient = torch.empty(shape, dtype=parameter.dtype, device=device.DEVICE)
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

    real_accelerator.set_accelerator(device.make_accelerator(recorder))
    import deepspeed
    import deepspeed.comm.torch
    from torch.testing._internal.distributed.fake_pg import FakeStore

    deepspeed.comm.torch.build_shm_op = lambda: None  # it would be compiled, and nothing is communicated
    torch.distributed.init_process_group(backend="fake", rank=rank, world_size=ranks, store=FakeStore())
    hooks = {}
    device.replace_collectives(deepspeed)
    device.replace_optimizers(recorder)
    device.replace_hooks(hooks)
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
        with recorder.making("model"), torch.device(device.DEVICE):
            module = make_module(case["model"], device.DTYPES[case["dtype"]])
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
                tokens = torch.zeros(1, TOKENS, dtype=torch.long, device=device.DEVICE)
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
