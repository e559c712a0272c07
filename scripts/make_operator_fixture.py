#!/usr/bin/env python3
"""Writes tests/data/operator_fixture.json: how many operators eager PyTorch calls in a micro-step of a model.

    pip install torch transformers peft && python3 scripts/make_operator_fixture.py

The models are those of scripts/family_cases (make_family_fixture.py), with other sizes and 1 or 3 layers, and some of
them trained otherwise: in part, with adapters, with checkpointing, with dropout, on rows of other lengths. Each runs
on the CPU, in training mode and without cache, in fp32, and in bf16 with its buffers, as DeepSpeed casts it. Two steps
run before the one that is counted, which begins without gradients. A row has, beside the case and its settings:

    forward     calls of ATen operators in the forward with the loss, views too
    backward    those in loss.backward()
    modules     calls of modules in forward. PEFT's two wrappers count; the model inside them does not, as PEFT calls
                its forward() directly
    modules_in_backward  those that checkpointing runs again, whose operators are in `backward`
    names       in rows with one layer: the calls of each operator, without aten::

A call is one that reaches a backend's kernel from Python or from autograd: linear() counts as the operators that it is
composed of, and what a kernel calls inside does not count. That is what a TorchDispatchMode sees, with one exception:
each output that autograd saves or unpacks is a shallow copy, which a mode gets as a `detach` and which without a mode
calls nothing. So `detach` is counted in a profile instead: once for each parameter that gets its first gradient, and
where the model's code calls it. A few operators have another name without a mode (WITHOUT_MODE); the profile of a step
must have every operator at least as often.

What is not counted: the optimizer, DeepSpeed's hooks and collectives, and launches: a kernel of a view launches
nothing, and others launch several. The backend is the CPU: attention's kernel is its own, sdpa with dropout is composed
of many operators, and a dropout is four, for each of which a GPU has one. Counts do not depend on sizes, except where
a size decides whether there is a mask.
"""
import collections
import copy
import json
import multiprocessing

import peft
import torch
import transformers
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

import make_family_fixture as families
import make_lengths_fixture as lengths

FIXTURE = families.ROOT / "tests/data/operator_fixture.json"
WARM_UP_STEPS = 2
PROCESSES = 2
MICRO_BATCH = 2
SEQUENCE_LENGTH = 8
LAYERS = (1, 3)
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
LAYER_KEYS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers")
SIZES = {
    32: ("hidden_size", "n_embd", "dim", "d_model", "word_embed_proj_dim"),
    64: ("vocab_size", "intermediate_size", "n_inner", "hidden_dim", "ffn_dim", "d_ff", "moe_intermediate_size",
         "shared_expert_intermediate_size"),
    4: ("num_attention_heads", "n_head", "n_heads", "num_heads"),
}
# Families as they are published and used: no biases in Llama's linears, windows that no sequence is longer than, every
# layer of the same kind.
PLAIN = {
    "llama": dict(attention_bias=False, mlp_bias=False, rope_scaling=None),
    "mistral": dict(sliding_window=None),
    "qwen2": dict(use_sliding_window=False),
    "qwen3": dict(attention_bias=False),
    "mixtral": dict(sliding_window=None),
    "qwen2_moe": dict(mlp_only_layers=[], use_sliding_window=False, output_router_logits=False),
    "qwen3_moe": dict(decoder_sparse_step=1),
}
TWO = {"llama": ["q_proj", "v_proj"], "gpt2": ["c_attn", "c_fc"]}
LAST_LAYER = {"llama": "model.layers.{}.*", "gpt2": "transformer.h.{}.*"}
# The values are as dstune.activation_checkpointing is written in experiments.
CHECKPOINTING = {"checkpointing": True, "checkpointing_reentrant": "every_1_layers_reentrant"}
GPT2_DROPOUTS = {
    "dropout": dict(embd_pdrop=0.1, resid_pdrop=0.1),
    "dropout_and_attention": dict(embd_pdrop=0.1, resid_pdrop=0.1, attn_pdrop=0.1),
}
# What PyTorch calls instead, as often, without a mode: mostly the operator in place, which a mode might not allow.
WITHOUT_MODE = {"add": ["add_"], "view": ["_reshape_alias"], "scatter": ["scatter_"], "scatter_add": ["scatter_add_"],
                "index_put": ["_index_put_impl_"], "new_zeros": ["zeros"]}
BATCHES = {"full": [8, 8], "padded": [8, 5], "packed": [5, 8, 3]}


def read_case(name):
    return json.loads((families.CASES / f"{name}.json").read_text(encoding="utf-8"))


def with_layers(case, layers, **changes):
    """The case with so many layers, all of the same sizes but those of heads."""
    config = copy.deepcopy(case["config"])
    hidden = config.get("hidden_size")
    for size, keys in SIZES.items():
        config.update({key: size for key in keys if config.get(key) is not None})
    config.update({key: layers for key in LAYER_KEYS if key in config})
    if case["config"].get("word_embed_proj_dim", hidden) != hidden:
        config["word_embed_proj_dim"] = 16  # OPT's of a narrower embedding, with a linear before and after the layers
    if config["model_type"] == "roberta":
        config["max_position_embeddings"] = SEQUENCE_LENGTH + config["pad_token_id"] + 1
    if layers == 1 and "mlp_only_layers" in config:
        config["mlp_only_layers"] = []  # transformers balances the experts' load of no layer by an error
    config.update(changes)
    lengths_of = {key: SEQUENCE_LENGTH for key in ("sequence_length", "target_sequence_length") if key in case}
    return dict(case, config=config, micro_batch=MICRO_BATCH, **lengths_of)


def variants(layers):
    """Name and case of everything that is counted."""
    for path in sorted(families.CASES.glob("*.json")):
        yield path.stem, with_layers(read_case(path.stem), layers)
    for name, changes in PLAIN.items():
        yield f"{name}_plain", with_layers(read_case(name), layers, **changes)
    for name, case_name, changes in (("llama", "llama", PLAIN["llama"]), ("gpt2", "gpt2_gelu_new", {})):
        case = with_layers(read_case(case_name), layers, **changes)
        adapters = {kind: dict(r=4, lora_alpha=8, target_modules=targets)
                    for kind, targets in (("two", TWO[name]), ("all_linear", "all-linear"))}
        for kind, lora in adapters.items():
            yield f"{name}_lora_{kind}", dict(case, lora=lora)
            yield f"{name}_lora_{kind}_dropout", dict(case, lora=dict(lora, lora_dropout=0.1))
        yield f"{name}_last_layer", dict(case, trainable=[LAST_LAYER[name].format(layers - 1)])
        for kind, way in CHECKPOINTING.items():
            yield f"{name}_{kind}", dict(case, activation_checkpointing=way)
            yield f"{name}_lora_two_{kind}", dict(case, lora=adapters["two"], activation_checkpointing=way)
        for batches, rows in BATCHES.items():
            yield f"{name}_{batches}", dict(case, batches=batches, lengths=rows)
    for kind, changes in GPT2_DROPOUTS.items():
        yield f"gpt2_{kind}", with_layers(read_case("gpt2_gelu_new"), layers, **changes)


def make_model(case, dtype):
    model, _ = families.make_model(case)
    model = model.to(dtype)
    if "activation_checkpointing" in case:
        model.gradient_checkpointing_enable({"use_reentrant": case["activation_checkpointing"] is not True})
        if "lora" in case:
            model.enable_input_require_grads()
    return model


def make_batch(case, model):
    tokens = families.make_inputs(case, model)
    if case.get("batches") == "packed":
        return lengths.packed_batch(tokens, case["lengths"])
    if "batches" in case:
        return lengths.padded_batch(case, model, tokens, case["lengths"])
    return families.make_batch(case, model)


class Calls(TorchDispatchMode):
    """Operators that are called, by name."""

    def __init__(self):
        super().__init__()
        self.names = collections.Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names[function.name().removeprefix("aten::")] += 1
        return function(*args, **(kwargs or {}))


def step(case, model, batch, forward, backward):
    model.zero_grad(set_to_none=True)
    with forward:
        loss = families.run_forward(case, model, batch)
    with backward:
        loss.backward()
    return forward, backward


def without_overloads(names):
    """A profile has no names of overloads."""
    result = collections.Counter()
    for name, calls in names.items():
        result[name.split(".")[0]] += calls
    return result


def as_without_mode(names, profiled):
    """Of what the mode has seen, what PyTorch calls without it."""
    names = {**names, "detach": profiled["aten::detach"]}
    for name, calls in without_overloads(names).items():
        most = sum(profiled[f"aten::{other}"] for other in (name, *WITHOUT_MODE.get(name, ())))
        assert calls <= most, (name, calls, most)
    return {name: calls for name, calls in sorted(names.items()) if calls > 0}


def count(case, dtype, with_names):
    model = make_model(case, dtype)
    batch = make_batch(case, model)
    modules = 0

    def count_module(*_):
        nonlocal modules
        modules += 1

    for _ in range(WARM_UP_STEPS):
        step(case, model, batch, Calls(), Calls())
    seen = [calls.names for calls in step(case, model, batch, Calls(), Calls())]
    profiles = step(case, model, batch, *(profile(activities=[ProfilerActivity.CPU]) for _ in range(2)))
    profiled = [collections.Counter(event.name for event in each.events()) for each in profiles]
    forward, backward = (as_without_mode(*both) for both in zip(seen, profiled))
    hook = torch.nn.modules.module.register_module_forward_pre_hook(count_module)
    try:
        model.zero_grad(set_to_none=True)
        loss = families.run_forward(case, model, batch)
        in_forward = modules
        loss.backward()
    finally:
        hook.remove()
    names = dict(names=dict(forward=forward, backward=backward)) if with_names else {}
    return dict(forward=sum(forward.values()), backward=sum(backward.values()), modules=in_forward,
                modules_in_backward=modules - in_forward, **names)


def make_row(of):
    name, case, layers = of
    torch.set_num_threads(1)
    counts = {dtype: count(case, kind, layers == 1) for dtype, kind in DTYPES.items()}
    settings = {key: case[key] for key in ("sequence_length", "target_sequence_length", "lora", "trainable", "settings",
                                           "activation_checkpointing", "batches", "lengths") if key in case}
    return dict(name=name, layers=layers, task=families.task_of(case), attention=families.attentions_of(case)[0],
                micro_batch=case["micro_batch"], **settings, config=case["config"], **counts)


def main():
    cases = sorted(((name, case, layers) for layers in LAYERS for name, case in variants(layers)),
                   key=lambda each: (each[0], each[2]))
    rows = []
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        for row in pool.imap(make_row, cases):
            rows.append(row)
            print(row["name"], row["layers"], *(f"{dtype} {row[dtype]['forward']} {row[dtype]['backward']} "
                                                f"{row[dtype]['modules']}" for dtype in DTYPES), flush=True)
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    FIXTURE.write_text(f'{{\n "made_by": "scripts/make_operator_fixture.py", "torch": "{torch.__version__}", '
                       f'"transformers": "{transformers.__version__}", "peft": "{peft.__version__}",\n'
                       f' "rows": [\n{lines}\n ]\n}}\n', encoding="utf-8")
    print(FIXTURE.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
