#!/usr/bin/env python3
"""Writes tests/data/lora_gathers.json: what stage 3 gathers and holds of models that are trained in part.

    pip install torch transformers peft deepspeed && python3 scripts/make_gather_fixture.py

DeepSpeed trains small models of transformers on the CPU for four steps, as rank 0 of two whose collectives do nothing
(torch's "fake" process group): in fp32 made under zero.Init, in bf16 handed to deepspeed.initialize, where adapters
get the model's type. A row has the all-gathers of the last step in forward, backward and update, which is their number
and the elements of the full tensors, how many tensors the coordinator gathered for modules, and the largest sum of torch's allocations in any step (count_allocations.cpp).
Each configuration runs in a process of its own. The rows are drawn from all configurations so that each pair of values
occurs. What an interrupted run has measured is in lora_gathers.part, with which the next one begins.

    ... make_gather_fixture.py --older   adds the rows of another release, which is the one that Python finds

Those have each gathered weight kept by torch's own linear, for which releases before 0.19.4 ask without zero.Init.
"""
import argparse
import contextlib
import gc
import itertools
import json
import multiprocessing
import os
import pathlib
import random
import sys

os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="2", DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1",
                  CUDA_VISIBLE_DEVICES="")

import deepspeed
import peft
import torch
import transformers
from count_allocations import AllocationCounter
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import checkpoint

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts/calibration"))
from gathers import GatherCounter  # noqa: E402: it is beside the calibration's
from hooks import HookCounter  # noqa: E402

RANKS = 2
PART = ROOT / "tests/data/lora_gathers.part"
SEQUENCE_LENGTH = 64
MICRO_BATCH = 2
STEPS = 4
BUCKET = 1_000_000  # elements
ROWS = 144
# The matrices of a layer are larger than the default persistence threshold, keys and values of fewer heads smaller.
DECODER = dict(vocab_size=512, hidden_size=320, intermediate_size=480, num_hidden_layers=3, num_attention_heads=5,
               max_position_embeddings=64)
MODELS = {
    "llama": dict(DECODER, num_key_value_heads=1, head_dim=64, tie_word_embeddings=False),
    "qwen2": dict(DECODER, num_key_value_heads=1, tie_word_embeddings=True),
    "gemma": dict(DECODER, num_key_value_heads=1, head_dim=64),
    "gpt2": dict(vocab_size=512, n_embd=320, n_layer=3, n_head=5, n_positions=64, resid_pdrop=0.0, embd_pdrop=0.0,
                 attn_pdrop=0.0),
    "opt": dict(vocab_size=512, hidden_size=320, ffn_dim=480, num_hidden_layers=3, num_attention_heads=5,
                max_position_embeddings=64, word_embed_proj_dim=320, dropout=0.0, attention_dropout=0.0),
    "gpt_neox": dict(DECODER, hidden_dropout=0.0, attention_dropout=0.0, tie_word_embeddings=False),
    "bert": dict(DECODER, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
}
FURTHER = {
    "qwen3": dict(DECODER, num_key_value_heads=1, head_dim=64, tie_word_embeddings=True),
    "mistral": dict(DECODER, num_key_value_heads=1, head_dim=64, tie_word_embeddings=False, sliding_window=None),
    "gemma2": dict(DECODER, num_key_value_heads=1, head_dim=64),
}
ALL_MODELS = {**MODELS, **FURTHER}
ATTENTION_KERNEL = {"gemma2": "eager"}  # transformers refuses sdpa there
LAYERS = {"gpt2": "transformer.h", "opt": "model.decoder.layers", "gpt_neox": "gpt_neox.layers",
          "bert": "bert.encoder.layer"}
ATTENTION = {"gpt2": ["c_attn", "c_fc"], "gpt_neox": ["query_key_value", "dense_4h_to_h"], "bert": ["query", "value"]}
TUNINGS = ("everything", "two", "all-linear", "layer")
# As dstune.activation_checkpointing is written in experiments.
CHECKPOINTING = ("false", "true", "every_1_layers_reentrant", "groups_of_2_layers")
NOTHING_STAYS = dict(stage3_prefetch_bucket_size=0, stage3_max_reuse_distance=0, stage3_param_persistence_threshold=0)
KNOBS = {
    "defaults": dict(),
    "little_live": dict(stage3_max_live_parameters=400_000, stage3_max_reuse_distance=300_000,
                        stage3_param_persistence_threshold=1000),
    "no_prefetch": dict(stage3_prefetch_bucket_size=0, stage3_max_reuse_distance=500_000,
                        stage3_param_persistence_threshold=10_000),
    "small_prefetch": dict(stage3_prefetch_bucket_size=200_000, stage3_param_persistence_threshold=0),
    # torch's linear keeps what it multiplies with, however soon DeepSpeed releases it
    "kept": dict(memory_efficient_linear=False, **NOTHING_STAYS),
}
PRECISIONS = ("fp32", "bf16")
AXES = (MODELS, TUNINGS, CHECKPOINTING, KNOBS, PRECISIONS)


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
    every = list(itertools.product(*AXES))
    places = range(len(AXES))
    pairs = lambda rows: {((i, row[i]), (j, row[j])) for row in rows for i, j in itertools.combinations(places, 2)}
    for seed in itertools.count():
        rows = sorted(random.Random(seed).sample(every, ROWS), key=every.index)
        if pairs(rows) == pairs(every):
            return rows


def older():
    """Of a release that gives a model that was not made under zero.Init torch's linear."""
    return [(family, tuning, way, "older", "bf16") for family in ("llama", "gpt2", "bert")
            for tuning in ("everything", "all-linear") for way in ("false", "true")]


def further():
    """Of families that are not drawn from."""
    return list(itertools.product(FURTHER, ("everything", "all-linear", "layer"), ("false", "true"),
                                  ("defaults", "little_live"), ("bf16",)))


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
    with contextlib.nullcontext() if "bf16" in config else deepspeed.zero.Init(config_dict_or_path=config):
        model = task.from_config(transformers.AutoConfig.for_model(family, **ALL_MODELS[family], use_cache=False),
                                 attn_implementation=ATTENTION_KERNEL.get(family, "sdpa"))
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


def count_gathers(sent, phase):
    """Adds what is gathered to sent[phase[0]]: [calls, elements]."""
    backend = deepspeed.comm.comm.cdb
    gather = backend.all_gather_into_tensor

    def count(output_tensor, **kwargs):
        calls, elements = sent.get(phase[0], (0, 0))
        sent[phase[0]] = [calls + 1, elements + output_tensor.numel()]
        return gather(output_tensor=output_tensor, **kwargs)

    backend.all_gather_into_tensor = count


def measure(row, counter):
    family, kind, way, knobs, precision = row
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.backends.mkldnn.set_flags(False)  # its scratch for 16-bit products is not a GPU's
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group(backend="fake", rank=0, world_size=RANKS, store=FakeStore())
        deepspeed.comm.torch.build_shm_op = lambda: None  # it would be compiled, and nothing is communicated
        deepspeed.init_distributed(dist_backend="fake", verbose=False)
    gc.collect()
    counter.begin()
    counter.take_peak()
    before = counter.take_peak()
    zero = dict(stage=3, reduce_bucket_size=BUCKET, **(NOTHING_STAYS if knobs == "older" else KNOBS[knobs]))
    config = dict(train_micro_batch_size_per_gpu=MICRO_BATCH, gradient_clipping=1.0, zero_optimization=zero,
                  zero_allow_untested_optimizer=True)
    if precision == "bf16":
        config["bf16"] = dict(enabled=True)
    tuning = tuning_of(family, kind)
    model = make_model(family, config, tuning, way)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4, fused=True)
    engine = deepspeed.initialize(model=model, config=config, optimizer=optimizer)[0]
    del model, optimizer
    sent, phase, peaks = {}, ["forward"], []
    count_gathers(sent, phase)
    tokens = torch.randint(0, 512, (MICRO_BATCH, SEQUENCE_LENGTH))
    for _ in range(STEPS):
        sent.clear()
        gc.collect()
        counter.take_peak()
        phase[0] = "forward"
        with GatherCounter(engine.module.parameters()) as gathered, HookCounter(engine.optimizer) as hooks:
            loss = engine(input_ids=tokens, labels=tokens).loss
            phase[0] = "backward"
            engine.backward(loss)
            del loss  # as the Trainer does: its graph may hold the embedded tokens and their gradient
            phase[0] = "update"
            engine.step()
        peaks.append(counter.take_peak())
    checkpointing = {"false": False, "true": True}.get(way, way)
    release = dict(deepspeed=deepspeed.__version__.strip(), zero_init=False) if knobs == "older" else {}
    return dict(model=family, **release, **tuning, activation_checkpointing=checkpointing, precision=precision,
                zero_optimization=zero, **{name: sent.get(name, [0, 0]) for name in ("forward", "backward", "update")},
                gathered_tensors=gathered.tensors, module_hooks=list(hooks.calls.values()),
                peak=max(peaks[0], min(peaks[1:])) - before)


def import_all(counter):
    """What the first step imports, so that the forks have it."""
    measure(("llama", "all-linear", "true", "kept", "bf16"), counter)


def try_to_measure(row):
    os.dup2(2, 1)  # what DeepSpeed prints
    try:
        return row, measure(row, try_to_measure.counter)
    except Exception as fault:  # the program is asked for the same
        return row, dict(fault=f"{type(fault).__name__}: {fault}")


def lines_of(rows):
    return ",\n".join("  " + json.dumps(row) for row in rows)


def text_of(rows):
    models = [f'  "{name}": {json.dumps(dict(model_type=name, **config))}' for name, config in ALL_MODELS.items()]
    return (f'{{\n "made_by": "scripts/make_gather_fixture.py", "torch": "{torch.__version__}", '
            f'"transformers": "{transformers.__version__}",\n "peft": "{peft.__version__}", '
            f'"deepspeed": "{deepspeed.__version__}", "ranks": {RANKS}, "micro_batch": {MICRO_BATCH}, '
            f'"sequence_length": {SEQUENCE_LENGTH},\n "models": {{\n' + ",\n".join(models) +
            f'\n }},\n "rows": [\n{lines_of(rows)}\n ]\n}}\n')


def measure_all(rows):
    """Those that the file of an interrupted run lacks, which it gets."""
    key = lambda row: " ".join(row)
    known = {} if not PART.exists() else dict(json.loads(line) for line in PART.read_text().splitlines())
    missing = [row for row in rows if key(row) not in known]
    try_to_measure.counter = AllocationCounter(torch)  # forks have it
    try_to_measure.counter.leave_out(torch, "get_rng_state")  # a checkpoint's; a GPU's is in the host's memory
    import_all(try_to_measure.counter)
    gc.collect()
    gc.freeze()  # so that collecting does not copy the pages of what the forks share
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool, open(PART, "a") as part:
        for row, result in pool.imap_unordered(try_to_measure, missing, chunksize=1):
            if "fault" in result:
                print(key(row), result["fault"], file=sys.stderr)
                continue
            known[key(row)] = result
            print(json.dumps([key(row), result]), file=part, flush=True)
    return [known[key(row)] for row in rows if key(row) in known]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--older", action="store_true")
    parser.add_argument("--only", nargs=5, help="prints one row: family, tuning, checkpointing, knobs, precision")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.only, AllocationCounter(torch))), file=sys.stderr)
        return
    file = ROOT / "tests/data/lora_gathers.json"
    if options.older:
        before = file.read_text(encoding="utf-8")
        file.write_text(before.replace("\n ]\n}", ",\n" + lines_of(measure_all(older())) + "\n ]\n}"), encoding="utf-8")
    else:
        file.write_text(text_of(measure_all([*drawn(), *further()])), encoding="utf-8")
    PART.unlink()


if __name__ == "__main__":
    main()
