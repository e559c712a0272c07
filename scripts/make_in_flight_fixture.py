#!/usr/bin/env python3
"""Writes tests/data/deepspeed_in_flight.json: what stage 3 may have in flight, by the waits of the real DeepSpeed.

    pip install torch transformers deepspeed && python3 scripts/make_in_flight_fixture.py

DeepSpeed trains small models on the CPU as rank 0 of two whose collectives do nothing (torch's "fake" process group),
and is told that its device is not synchronised. Streams and events are then objects of this script that only know what
comes after what; `record_stream` of memory that another stream made puts it in flight until the host has waited for
what comes behind it. Nothing passes by itself, so that a row has the most that can be in flight in the first and in the
last step on any device.
"""
import collections
import contextlib
import json
import multiprocessing
import os
import pathlib

os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="2", DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1")

import deepspeed
import torch
import transformers
from deepspeed.accelerator import get_accelerator
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

ROOT = pathlib.Path(__file__).resolve().parent.parent
RANKS, STEPS, SEQUENCE_LENGTH = 2, 4, 8
SIZES = dict(vocab_size=512, hidden_size=320, intermediate_size=480, num_hidden_layers=4, num_attention_heads=5)
MODELS = {
    "llama": dict(SIZES, model_type="llama", num_key_value_heads=1, head_dim=64, tie_word_embeddings=False,
                  max_position_embeddings=32),
    "gpt2": dict(model_type="gpt2", vocab_size=512, n_embd=320, n_layer=4, n_head=5, n_positions=32, resid_pdrop=0.0,
                 embd_pdrop=0.0, attn_pdrop=0.0),
}
KNOBS = {
    "defaults": {},
    "no overlap": dict(overlap_comm=False),
    "small buckets": dict(reduce_bucket_size=200_000),
    "lists": dict(contiguous_gradients=False, reduce_bucket_size=200_000),
    "no prefetch": dict(stage3_prefetch_bucket_size=0, reduce_bucket_size=200_000),
    "little live": dict(stage3_max_live_parameters=400_000, stage3_max_reuse_distance=300_000,
                        stage3_param_persistence_threshold=1000, reduce_bucket_size=400_000),
    "prefetch": dict(stage3_prefetch_bucket_size=200_000, stage3_param_persistence_threshold=0,
                     stage3_max_reuse_distance=0, reduce_bucket_size=300_000),
}


class Stream:
    """Knows of each stream how much of it has passed before what is queued here next."""

    def __init__(self, *_, **__):
        self.after = collections.Counter()

    def event(self):
        self.after[self] += 1
        return Event(self.after)

    def wait_event(self, event):
        self.after |= event.after

    def wait_stream(self, other):
        self.wait_event(other.event())

    def synchronize(self):
        self.event().synchronize()


class Event:
    def __init__(self, after=None, **_):
        self.after = collections.Counter(after or {})

    def record(self, stream=None):
        self.after = (stream or machine.current[-1]).event().after

    def query(self):
        return self.after <= machine.host

    def synchronize(self):
        machine.wait_for(self.after)

    def elapsed_time(self, _):
        return 0.0


class Machine:
    def __init__(self):
        self.compute, self.communication = Stream(), Stream()
        self.current = [self.compute]
        self.streams = [self.compute, self.communication]
        self.host = collections.Counter()
        self.makers = {}  # of storages, by address
        self.flying = []  # (event, bytes)
        self.most = 0

    def make(self, *_, **__):
        self.streams.append(Stream())
        return self.streams[-1]

    def wait_for(self, after):
        self.host |= after
        for stream in self.streams:
            stream.after |= after
        self.flying = [each for each in self.flying if not each[0].query()]

    def synchronize(self, *_):
        for stream in self.streams:
            stream.synchronize()

    @contextlib.contextmanager
    def use(self, stream):
        self.current.append(stream or self.current[-1])
        yield
        self.current.pop()

    def record(self, tensor, stream):
        """Whoever calls it gives the memory back next."""
        storage = tensor.untyped_storage()
        if self.makers.get(storage.data_ptr(), stream) is stream:
            return
        self.flying.append((stream.event(), storage.nbytes()))
        self.most = max(self.most, sum(size for _, size in self.flying))

    def queue(self, function):
        def call(*args, **kwargs):
            result = function(*args, **kwargs)
            self.communication.wait_stream(self.current[-1])
            end = self.communication.event()
            if not kwargs.get("async_op"):
                self.current[-1].wait_event(end)
            return Handle(result, end)
        return call


class Handle:
    def __init__(self, work, end):
        self.work, self.end = work, end

    def wait(self, *_):
        machine.current[-1].wait_event(self.end)


class Makers(TorchDispatchMode):
    """Remembers on which stream memory was made."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        taken = {each.untyped_storage().data_ptr() for each in tree_leaves((args, kwargs))
                 if isinstance(each, torch.Tensor)}
        result = function(*args, **(kwargs or {}))
        for each in tree_leaves(result):
            if isinstance(each, torch.Tensor) and each.untyped_storage().data_ptr() not in taken:
                machine.makers[each.untyped_storage().data_ptr()] = machine.current[-1]
        return result


machine = Machine()


def imitate_streams():
    accelerator = type(get_accelerator())
    for name, value in dict(
            is_synchronized_device=lambda _: False, use_host_timers=lambda _: True,
            Stream=property(lambda _: machine.make), Event=property(lambda _: Event),
            stream=lambda _, stream: machine.use(stream),
            current_stream=lambda _, device=None: machine.current[-1],
            default_stream=lambda _, device=None: machine.compute,
            synchronize=lambda _, device=None: machine.synchronize()).items():
        setattr(accelerator, name, value)
    torch.Tensor.record_stream = lambda tensor, stream: machine.record(tensor, stream)
    item = torch.Tensor.item

    def read(tensor):
        machine.current[-1].synchronize()
        return item(tensor)

    torch.Tensor.item = read
    backend = deepspeed.comm.comm.cdb
    for name in ("all_gather_into_tensor", "reduce_scatter_tensor", "all_reduce", "all_gather", "reduce_scatter"):
        if hasattr(backend, name):
            setattr(backend, name, machine.queue(getattr(backend, name)))


def measure(case):
    model_name, knobs = case
    torch.manual_seed(0)
    torch.distributed.init_process_group(backend="fake", rank=0, world_size=RANKS, store=FakeStore())
    deepspeed.init_distributed(dist_backend="fake", verbose=False)
    config = dict(train_micro_batch_size_per_gpu=1, gradient_accumulation_steps=2, gradient_clipping=1.0,
                  bf16=dict(enabled=True), optimizer=dict(type="AdamW", params=dict(lr=1e-4, torch_adam=True)),
                  zero_optimization=dict(dict(stage=3, overlap_comm=True), **KNOBS[knobs]))
    spec = dict(MODELS[model_name])
    transformers.PreTrainedModel.initialize_weights = lambda self: None
    with deepspeed.zero.Init(config_dict_or_path=config):
        model = transformers.AutoModelForCausalLM.from_config(
            transformers.AutoConfig.for_model(**spec, use_cache=False), attn_implementation="sdpa")
    imitate_streams()
    engine = deepspeed.initialize(model=model.train(), config=config, model_parameters=list(model.parameters()))[0]
    tokens = torch.randint(0, 512, (1, SEQUENCE_LENGTH))
    found = []
    with Makers():
        for _ in range(STEPS):
            machine.synchronize()
            machine.most = 0
            for _ in range(2):
                engine.backward(engine(input_ids=tokens, labels=tokens).loss)
                engine.step()
            found.append(machine.most)
    return dict(name=f"{model_name}, {knobs}", model=model_name, ds_config=config, first_step_bytes=found[0],
                last_step_bytes=found[-1])


def main():
    cases = [(model, knobs) for model in MODELS for knobs in KNOBS]
    rows = []
    with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=1) as pool:
        for row in pool.imap(measure, cases, chunksize=1):
            rows.append(row)
            print(row["name"], row["first_step_bytes"], row["last_step_bytes"], flush=True)
    content = dict(deepspeed=deepspeed.__version__, torch=torch.__version__, transformers=transformers.__version__,
                   ranks=RANKS, sequence_length=SEQUENCE_LENGTH, models=MODELS, rows=rows)
    (ROOT / "tests/data/deepspeed_in_flight.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
