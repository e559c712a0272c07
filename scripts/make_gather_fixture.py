#!/usr/bin/env python3
"""Writes tests/data/lora_gathers.json: what stage 3 gathers of models that are trained in part.

    pip install torch transformers peft deepspeed && python3 scripts/make_gather_fixture.py

DeepSpeed trains small models of transformers on the CPU for four steps, made under zero.Init in fp32, as rank 0 of two
whose collectives do nothing (torch's "fake" process group). A row has the all-gathers of the last step in
forward, backward and update: their number and the elements of the full tensors. Each configuration runs in a process
of its own. The rows are drawn from all configurations so that each pair of values occurs.
"""
import itertools
import json
import multiprocessing
import os
import pathlib
import random
import sys

os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="2", DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1")

import deepspeed
import peft
import torch
import transformers
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import checkpoint

ROOT = pathlib.Path(__file__).resolve().parent.parent
RANKS = 2
SEQUENCE_LENGTH = 8
MICRO_BATCH = 2
STEPS = 4
ROWS = 144
# The matrices of a layer are larger than the default persistence threshold, keys and values of fewer heads smaller.
DECODER = dict(vocab_size=512, hidden_size=320, intermediate_size=480, num_hidden_layers=3, num_attention_heads=5,
               max_position_embeddings=32)
MODELS = {
    "llama": dict(DECODER, num_key_value_heads=1, head_dim=64, tie_word_embeddings=False),
    "qwen2": dict(DECODER, num_key_value_heads=1, tie_word_embeddings=True),
    "gemma": dict(DECODER, num_key_value_heads=1, head_dim=64),
    "gpt2": dict(vocab_size=512, n_embd=320, n_layer=3, n_head=5, n_positions=32, resid_pdrop=0.0, embd_pdrop=0.0,
                 attn_pdrop=0.0),
    "opt": dict(vocab_size=512, hidden_size=320, ffn_dim=480, num_hidden_layers=3, num_attention_heads=5,
                max_position_embeddings=32, word_embed_proj_dim=320, dropout=0.0, attention_dropout=0.0),
    "gpt_neox": dict(DECODER, hidden_dropout=0.0, attention_dropout=0.0, tie_word_embeddings=False),
    "bert": dict(DECODER, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
}
LAYERS = {"gpt2": "transformer.h", "opt": "model.decoder.layers", "gpt_neox": "gpt_neox.layers",
          "bert": "bert.encoder.layer"}
ATTENTION = {"gpt2": ["c_attn", "c_fc"], "gpt_neox": ["query_key_value", "dense_4h_to_h"], "bert": ["query", "value"]}
TUNINGS = ("everything", "two", "all-linear", "layer")
# As dstune.activation_checkpointing is written in experiments.
CHECKPOINTING = ("false", "true", "every_1_layers_reentrant", "groups_of_2_layers")
KNOBS = {
    "defaults": dict(),
    "little_live": dict(stage3_max_live_parameters=400_000, stage3_max_reuse_distance=300_000,
                        stage3_param_persistence_threshold=1000),
    "no_prefetch": dict(stage3_prefetch_bucket_size=0, stage3_max_reuse_distance=500_000,
                        stage3_param_persistence_threshold=10_000),
    "small_prefetch": dict(stage3_prefetch_bucket_size=200_000, stage3_param_persistence_threshold=0),
}


def layers_of(family):
    return LAYERS.get(family, "model.layers")


def tuning_of(family, kind):
    if kind == "everything":
        return {}
    if kind == "layer":
        return dict(trainable=f"{layers_of(family)}.1.*")
    targets = kind if kind == "all-linear" else ATTENTION.get(family, ["q_proj", "v_proj"])
    return dict(lora=dict(r=8, lora_alpha=16, target_modules=targets))


def drawn():
    """Configurations in each pair of whose values all pairs occur."""
    every = list(itertools.product(MODELS, TUNINGS, CHECKPOINTING, KNOBS))
    pairs = lambda rows: {((i, row[i]), (j, row[j])) for row in rows for i, j in itertools.combinations(range(4), 2)}
    for seed in itertools.count():
        rows = sorted(random.Random(seed).sample(every, ROWS), key=every.index)
        if pairs(rows) == pairs(every):
            return rows


def group_layers(layers, of_a_group):
    """Has torch checkpoint `of_a_group` layers at a time, in the place of the model's own loop over them."""
    call = torch.nn.Module.__call__
    groups = {id(layers[i]): layers[i:i + of_a_group] for i in range(0, len(layers), of_a_group)}
    others = {id(layer) for layer in layers} - set(groups)

    def run(group, hidden, *args, **kwargs):
        for layer in group:
            out = call(layer, hidden, *args, **kwargs)
            hidden = out[0] if isinstance(out, tuple) else out
        return (hidden,) if isinstance(out, tuple) else hidden

    def call_module(self, *args, **kwargs):
        if id(self) in groups:
            return checkpoint(run, groups[id(self)], *args, use_reentrant=False, **kwargs)
        if id(self) in others:  # it ran with its group
            return args[0]
        return call(self, *args, **kwargs)

    torch.nn.Module.__call__ = call_module


def make_model(family, config, tuning, way):
    # Under zero.Init the embeddings' rows of padding are not there to be zeroed; values do not matter here.
    transformers.PreTrainedModel.initialize_weights = lambda self: None
    task = transformers.AutoModelForMaskedLM if family == "bert" else transformers.AutoModelForCausalLM
    with deepspeed.zero.Init(config_dict_or_path=config):
        model = task.from_config(transformers.AutoConfig.for_model(family, **MODELS[family], use_cache=False),
                                 attn_implementation="sdpa")
    layers = list(model.get_submodule(layers_of(family)))
    if way in ("true", "every_1_layers_reentrant"):
        model.gradient_checkpointing_enable({"use_reentrant": way != "true"})
    if "trainable" in tuning:
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name.startswith(tuning["trainable"][:-1]))
    if "lora" in tuning:
        model = peft.get_peft_model(model, peft.LoraConfig(**tuning["lora"]))
        if way != "false":
            model.enable_input_require_grads()
    if way == "groups_of_2_layers":
        group_layers(layers, 2)
    return model.train()


def measure(row):
    family, kind, way, knobs = row
    torch.manual_seed(0)
    torch.distributed.init_process_group(backend="fake", rank=0, world_size=RANKS, store=FakeStore())
    deepspeed.init_distributed(dist_backend="fake", verbose=False)
    zero = dict(stage=3, **KNOBS[knobs])
    config = dict(train_micro_batch_size_per_gpu=MICRO_BATCH, gradient_clipping=1.0, zero_optimization=zero,
                  optimizer=dict(type="AdamW", params=dict(lr=1e-4, torch_adam=True)))
    tuning = tuning_of(family, kind)
    model = make_model(family, config, tuning, way)
    engine = deepspeed.initialize(model=model, config=config,
                                  model_parameters=[p for p in model.parameters() if p.requires_grad])[0]
    sent = {}
    phase = "forward"
    backend = deepspeed.comm.comm.cdb
    gather = backend.all_gather_into_tensor

    def count(output_tensor, **kwargs):
        calls, elements = sent.get(phase, (0, 0))
        sent[phase] = [calls + 1, elements + output_tensor.numel()]
        return gather(output_tensor=output_tensor, **kwargs)

    backend.all_gather_into_tensor = count
    tokens = torch.randint(0, 512, (MICRO_BATCH, SEQUENCE_LENGTH))
    for _ in range(STEPS):
        sent.clear()
        phase = "forward"
        loss = engine(input_ids=tokens, labels=tokens).loss
        phase = "backward"
        engine.backward(loss)
        phase = "update"
        engine.step()
    checkpointing = {"false": False, "true": True}.get(way, way)
    return dict(model=family, **tuning, activation_checkpointing=checkpointing, zero_optimization=zero,
                **{name: sent.get(name, [0, 0]) for name in ("forward", "backward", "update")})


def try_to_measure(row):
    try:
        return measure(row)
    except Exception as fault:  # the program is asked for the same
        return dict(row=row, fault=f"{type(fault).__name__}: {fault}")


def lines_of(rows):
    return ",\n".join("  " + json.dumps(row) for row in rows)


def main():
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        rows = pool.map(try_to_measure, drawn(), chunksize=1)
    for row in rows:
        if "fault" in row:
            print(row, file=sys.stderr)
    models = [f'  "{name}": {json.dumps(dict(model_type=name, **config))}' for name, config in MODELS.items()]
    text = (f'{{\n "made_by": "scripts/make_gather_fixture.py", "torch": "{torch.__version__}", '
            f'"transformers": "{transformers.__version__}",\n "peft": "{peft.__version__}", '
            f'"deepspeed": "{deepspeed.__version__}", "ranks": {RANKS}, "micro_batch": {MICRO_BATCH}, '
            f'"sequence_length": {SEQUENCE_LENGTH},\n "models": {{\n' + ",\n".join(models) +
            f'\n }},\n "rows": [\n{lines_of(row for row in rows if "fault" not in row)}\n ]\n}}\n')
    (ROOT / "tests/data/lora_gathers.json").write_text(text, encoding="utf-8")
    print(len(rows), "rows")


if __name__ == "__main__":
    main()
