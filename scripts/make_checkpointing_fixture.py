#!/usr/bin/env python3
"""Writes tests/data/checkpointing.json: what backward does and needs under activation checkpointing.

    pip install torch transformers deepspeed && python3 scripts/make_checkpointing_fixture.py [FAMILY...]

Of the small models of scripts/family_cases, switched on as users do it:

"events": DeepSpeed's stage 3 runs them on one CPU rank, and its coordinator's calls are written down: one row per
case, dropout and way of checkpointing, with the events of one backward in their order. FN is a fetch of module N (before its forward, or its backward), RN a release, GN:
the gradient of tensor N is complete. Both are numbered as in tests/data/families/CASE.json.

"memory": storages of fake tensors that are alive, without parameters, in fp32 and with torch's layers: what is `kept`
more when the last layer's forward is over than when the first one's begins, and the `peak` while their backward
runs, beyond what there is when the gradient of the last one's output is. A parameter's gradient goes when it is there.
"""
import json
import os
import sys
import weakref

os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", DS_ACCELERATOR="cpu")
os.environ.setdefault("MASTER_PORT", "29533")

import deepspeed
import torch
import transformers
from deepspeed.runtime.zero.partitioned_param_coordinator import PartitionedParameterCoordinator as Coordinator

from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import make_family_fixture as families

FIXTURE = families.ROOT / "tests/data/checkpointing.json"
CASES = ("gpt2_gelu_new", "gpt_neox", "opt", "opt_post_norm", "llama", "gemma3_text", "bert_masked_lm",
         "distilbert_masked_lm")
WAYS = {"true": dict(), "every_2_layers": dict(every_n_layers=2), "every_1_layers_reentrant": dict(use_reentrant=True)}
DEEPSPEED = {"zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0},
             "zero_force_ds_cpu_optimizer": False, "zero_allow_untested_optimizer": True}


def watch(model, note):
    """Has `note` called with each event, in the place of DeepSpeed's calls."""
    modules = {module.ds_id: name for name, module in model.named_modules() if hasattr(module, "ds_id")}
    fetch, release = Coordinator.fetch_sub_module, Coordinator.release_sub_module

    def noted_fetch(self, module, forward):
        note("F", modules[module.ds_id])
        return fetch(self, module, forward)

    def noted_release(self, module, forward=False):
        note("R", modules[module.ds_id])
        return release(self, module, forward)

    for name, parameter in model.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda _, name=name: note("G", name))
    Coordinator.fetch_sub_module, Coordinator.release_sub_module = noted_fetch, noted_release
    return fetch, release


def switch_on(model, way):
    model.activation_checkpointing_enable({"use_reentrant": way.get("use_reentrant", False)},
                                          every_n_layers=way.get("every_n_layers", 1))


def events_of_backward(case, way):
    model, _ = families.make_model(case)
    switch_on(model, way)
    config = dict(DEEPSPEED, train_micro_batch_size_per_gpu=case["micro_batch"])
    engine = deepspeed.initialize(model=model, config=config,
                                  optimizer=torch.optim.SGD(model.parameters(), lr=1e-3))[0]
    batch = families.make_batch(case, model)
    events = []
    usual = watch(model, lambda kind, name: events.append((kind, name)))
    try:
        loss = families.run_forward(case, engine, batch)
        del events[:]
        engine.backward(loss)
    finally:
        Coordinator.fetch_sub_module, Coordinator.release_sub_module = usual
        engine.destroy()
    return events


def in_numbers(name, events):
    fixture = json.loads((families.FIXTURES / f"{name}.json").read_text(encoding="utf-8"))
    modules = [module for module, _ in fixture["modules"]]
    tensors = [parameter["name"] for parameter in fixture["parameters"]]
    return " ".join(f"{kind}{(tensors if kind == 'G' else modules).index(of)}" for kind, of in events)


class Live(TorchDispatchMode):
    """Bytes of the storages that are alive, and the most of them since reset()."""

    def __init__(self, known):
        super().__init__()
        self.known = {tensor.untyped_storage()._cdata for tensor in known}
        self.watched = {}
        self.now = self.most = 0

    def reset(self):
        self.most = self.now
        return self.now

    def watch(self, storage):
        key, size = storage._cdata, storage.nbytes()

        def gone(_):
            del self.watched[key]
            self.now -= size

        self.watched[key] = weakref.ref(storage, gone)
        self.now += size

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            # The state of random numbers of a GPU's attention is uint64.
            if not isinstance(tensor, torch.Tensor) or tensor.dtype == torch.uint64:
                continue
            storage = tensor.untyped_storage()
            if storage._cdata not in self.known and storage._cdata not in self.watched:
                self.watch(storage)
        self.most = max(self.most, self.now)
        return out


def drop_gradient(parameter):
    parameter.grad = None


def measure(case, model, batch):
    marks = {}

    def begin(_, args, kwargs):
        hidden = args[0] if args else kwargs["hidden_states"]
        marks["before"] = live.now
        hidden.register_hook(lambda _: marks.update(most=live.most))

    def end(_module, _args, out):
        marks["after"] = live.now
        hidden = out[0] if isinstance(out, tuple) else out
        hidden.register_hook(lambda _: marks.update(begin=live.reset()))

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(drop_gradient)
    layers = [module for name, module in model.named_modules() if families.is_layer(name)]
    layers[0].register_forward_pre_hook(begin, with_kwargs=True)
    layers[-1].register_forward_hook(end)
    with Live([*model.parameters(), *model.buffers(), *batch.values()]) as live:
        families.run_forward(case, model, batch).backward()
    return dict(kept=marks["after"] - marks["before"], peak=marks["most"] - marks["begin"])


def memory_of(case, way, attention):
    config = transformers.AutoConfig.for_model(**case["config"])
    auto_class = getattr(transformers, case.get("auto_class", families.AUTO_CLASSES[families.task_of(case)]))
    with FakeTensorMode(allow_non_fake_inputs=True):
        model = auto_class.from_config(config, attn_implementation=attention, dtype=torch.float32).train()
        if way is not None:
            switch_on(model, way)
        tokens = torch.zeros((case["micro_batch"], case["sequence_length"]), dtype=torch.long)
        is_class = families.task_of(case) == "sequence_classification"
        return measure(case, model, dict(input_ids=tokens, labels=tokens[:, 0] if is_class else tokens))


def memory_rows():
    usual = torch.nn.functional.scaled_dot_product_attention
    packed = transformers.masking_utils.find_packed_sequence_indices
    transformers.masking_utils.find_packed_sequence_indices = lambda _: None  # fake positions do not tell
    torch.nn.functional.scaled_dot_product_attention = families.flash
    rows = []
    try:
        for name in CASES:
            case = json.loads((families.CASES / f"{name}.json").read_text(encoding="utf-8"))
            for attention in ("sdpa", "eager"):
                for way, settings in {"false": None, **WAYS}.items():
                    rows.append(dict(case=name, attention=attention, way=way, **memory_of(case, settings, attention)))
    finally:
        torch.nn.functional.scaled_dot_product_attention = usual
        transformers.masking_utils.find_packed_sequence_indices = packed
    return rows


def rows_of(name):
    case = json.loads((families.CASES / f"{name}.json").read_text(encoding="utf-8"))
    keys = sorted(key for key in case["config"] if "drop" in key and case["config"][key] == 0)
    rows = []
    for way, settings in WAYS.items():
        for dropout in (0.0, 0.1) if keys and way == "true" else (0.0,):
            config = dict(case["config"], **{key: dropout for key in keys})
            events = events_of_backward(dict(case, config=config), settings)
            rows.append(dict(case=name, way=way, dropout=dropout, events=in_numbers(name, events)))
            print(name, way, dropout, len(events), "events", flush=True)
    return rows


def as_lines(rows):
    return ",\n".join("  " + json.dumps(row) for row in rows)


def main(names):
    memory = memory_rows()  # first: DeepSpeed replaces torch's nn.functional.linear
    events = [row for name in names or CASES for row in rows_of(name)]
    FIXTURE.write_text(f'{{\n "made_by": "scripts/make_checkpointing_fixture.py",\n "torch": "{torch.__version__}",\n'
                       f' "transformers": "{transformers.__version__}", "deepspeed": "{deepspeed.__version__}",\n'
                       f' "memory": [\n{as_lines(memory)}\n ],\n "events": [\n{as_lines(events)}\n ]\n}}\n',
                       encoding="utf-8")
    print(FIXTURE.stat().st_size, "bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
