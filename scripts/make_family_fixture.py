#!/usr/bin/env python3
"""Writes tests/data/families/NAME.json: what Hugging Face's model of a small config.json computes.

    pip install torch transformers peft && python3 scripts/make_family_fixture.py [NAME...]

A case is scripts/family_cases/NAME.json, all of them without NAME:

    config      the config.json: small, and every dropout 0
    task        causal_lm, unless it says another: whose labels are drawn as dstune draws them in a
                micro-step of seed 0
    auto_class  the task's, unless it says another
    micro_batch, sequence_length
    target_sequence_length  of seq2seq_lm: the labels', whose tokens stand behind the others
    dtypes      of on_cuda, unless float32 and bfloat16
    dropouts    of on_cuda, unless 0 and 0.1
    settings    keyword arguments of the model's forward beside tokens and labels, if any
    attentions  those that transformers has for it: sdpa and eager, unless it says fewer
    trainable   patterns of parameter names, if not all are trained
    lora        keyword arguments of PEFT's LoraConfig, if adapters are

The fixture has, beside the case:

    parameters  as in named_parameters(), tied ones once: name, shape, center, gradient. Element e of
                tensor t is center + value_of(t, e): no values are stored. LayerNorm weights have
                the center 1: zeros and ones hide faults. Frozen ones have no gradient
    loss        as everything computed in fp64 from parameters that are exact in fp32
    modules     [name, class] of those whose forward ran, as in named_modules(); of PEFT's without
                PeftModel, LoraModel and ModulesToSaveWrapper, which stand around others and have no
                parameters
    calls       their names in the order of the calls
    arrival     parameters in the order in which backward completes their gradients
    saved       bytes that autograd holds at the end of forward, in fp32, by attention: storages of
                saved tensors, each once, without parameters, buffers, inputs and single numbers: what
                each layer adds, and all of them together. Without cache, as the Trainer runs. With
                output_router_logits these count too: the model's output holds them. 0 for the first
                layer of a second stack, before which other things are made
    on_cuda     likewise on a GPU, by attention, type and dropout: there dropout keeps masks of a
                byte and LayerNorm fp32. By PyTorch's shape rules of CUDA's kernels (fake tensors),
                so no GPU is needed; sdpa is its flash kernel, whose random state (16 bytes) does
                not count. Empty where a model's forward depends on values
    dropout_keys  of config: those that are `dropout` there, instead of 0; lora_dropout is too
"""
import copy
import fnmatch
import json
import pathlib
import sys
import unittest.mock

import numpy
import torch
import transformers
import transformers.integrations.moe as moe
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode

from drawn_batches import drawn_tokens, masked_tokens, seed_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "scripts/family_cases"
FIXTURES = ROOT / "tests/data/families"
DATA_DEPENDENT = (DataDependentOutputException, DynamicOutputShapeException)
# Torch's kernel takes no fp64; that a GPU has it cannot be asked without one.
moe._can_use_grouped_mm = lambda rows, weight, offsets: rows.dtype != torch.float64
AUTO_CLASSES = dict(causal_lm="AutoModelForCausalLM", masked_lm="AutoModelForMaskedLM",
                    sequence_classification="AutoModelForSequenceClassification",
                    seq2seq_lm="AutoModelForSeq2SeqLM")


def value_of(tensor, elements):
    """Numbers from -0.25 to 0.25, exact in fp32: a hash of the indices of tensor and element."""
    x = (numpy.uint64(tensor + 1) * numpy.uint64(0x9E3779B1)
         + numpy.arange(elements, dtype=numpy.uint64) * numpy.uint64(0x85EBCA77)) & numpy.uint64(0xFFFFFFFF)
    x ^= x >> numpy.uint64(15)
    x = x * numpy.uint64(0x2C1B3C6D) & numpy.uint64(0xFFFFFFFF)
    x ^= x >> numpy.uint64(12)
    return ((x & numpy.uint64(0xFFFF)).astype(numpy.float64) / 65536 - 0.5) / 2


def task_of(case):
    return case.get("task", "causal_lm")


def attentions_of(case):
    return case.get("attentions", ["sdpa", "eager"])


def freeze(case, model):
    """The model with what of the case is not trained frozen: PEFT's, if it has adapters, whose type is the
    model's, as deepspeed.initialize leaves them."""
    if "lora" in case:
        import peft
        task_type = dict(causal_lm="CAUSAL_LM", sequence_classification="SEQ_CLS").get(task_of(case))
        return peft.get_peft_model(model, peft.LoraConfig(task_type=task_type, **case["lora"]),
                                   autocast_adapter_dtype=False)
    if "trainable" in case:
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(any(fnmatch.fnmatchcase(name, each) for each in case["trainable"]))
    return model


def freeze_fakes(case, model, dtype):
    """Likewise of fake tensors, which no module can move: adapters are made where they belong."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with unittest.mock.patch.object(torch.nn.Module, "to", lambda self, *_, **__: self):
            return freeze(case, model)
    finally:
        torch.set_default_dtype(before)


def is_in_front(module):
    """Of PEFT's: around others, without parameters of its own."""
    kind = type(module).__name__
    return kind.startswith("PeftModel") or kind in ("LoraModel", "ModulesToSaveWrapper")


def build(case, attention, dtype):
    """T5 ties its head whatever the config says, and from_pretrained() unties what differs in the
    checkpoint: so it does in those whose config says that it is not tied."""
    config = transformers.AutoConfig.for_model(**copy.deepcopy(case["config"]))
    auto_class = getattr(transformers, case.get("auto_class", AUTO_CLASSES[task_of(case)]))
    model = auto_class.from_config(config, attn_implementation=attention, dtype=dtype)
    if task_of(case) == "seq2seq_lm" and case["config"].get("tie_word_embeddings") is False:
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    model.train()
    return model


def make_model(case, attention=None):
    attention = attention or attentions_of(case)[0]
    torch.manual_seed(1)
    model = freeze(case, build(case, attention, torch.float32))
    model.train()
    centers = {}
    with torch.no_grad():
        for index, (name, parameter) in enumerate(model.named_parameters()):
            ones = parameter.dim() == 1 and bool((parameter == 1).all())
            centers[name] = 1 if ones else 0
            values = centers[name] + value_of(index, parameter.numel())
            parameter.copy_(torch.from_numpy(values).reshape(parameter.shape).to(parameter.dtype))
    return model, centers


def make_inputs(case, model):
    """Tokens by the same hash; none is a padding token, whose row of the embedding has no gradient."""
    count = case["micro_batch"] * (case["sequence_length"] + case.get("target_sequence_length", 0))
    vocabulary = model.config.vocab_size
    padding = getattr(model.config, "pad_token_id", None)
    allowed = [token for token in range(vocabulary) if token != padding]
    hashed = ((value_of(1000, count) + 0.25) * 131072).astype(numpy.int64)
    tokens = torch.tensor([allowed[int(h) % len(allowed)] for h in hashed])
    return tokens if "target_sequence_length" in case else tokens.reshape(case["micro_batch"], -1)


def mask_token_of(config):
    """What dstune takes for it: bert-base-uncased's, DeBERTa's, or the last."""
    last = config.vocab_size - 1
    if config.model_type == "deberta-v2":
        return min(128000, last)
    return last if config.model_type == "roberta" else min(103, last)


def make_batch(case, model):
    """input_ids and labels of a micro-step of seed 0."""
    tokens, seed = make_inputs(case, model), seed_of(0, 0)
    if task_of(case) == "masked_lm":
        config = model.config
        inputs, labels = masked_tokens(tokens.flatten().tolist(), seed, mask_token_of(config),
                                       config.pad_token_id, config.vocab_size)
        return dict(input_ids=torch.tensor(inputs).reshape(tokens.shape),
                    labels=torch.tensor(labels).reshape(tokens.shape))
    if task_of(case) == "sequence_classification":
        labels = drawn_tokens(len(tokens), model.config.num_labels, seed)
        return dict(input_ids=tokens, labels=torch.tensor(labels))
    if task_of(case) == "seq2seq_lm":
        inputs, labels = tokens.split([case["micro_batch"] * case[key]
                                       for key in ("sequence_length", "target_sequence_length")])
        return dict(input_ids=inputs.reshape(case["micro_batch"], -1),
                    labels=labels.reshape(case["micro_batch"], -1))
    return dict(input_ids=tokens, labels=tokens)


def run_forward(case, model, batch):
    settings = dict(case.get("settings", {}))
    if hasattr(model.config, "use_cache"):
        settings.setdefault("use_cache", False)
    return model(**batch, **settings).loss


def watch(model):
    """Names of modules in the order of calls, of parameters in the order of their gradients."""
    calls, arrival = [], []
    for name, module in model.named_modules():
        if not is_in_front(module):
            module.register_forward_pre_hook(lambda *_, name=name: calls.append(name), with_kwargs=True)
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        parameter.register_post_accumulate_grad_hook(lambda _, name=name: arrival.append(name))
    return calls, arrival


def is_layer(name):
    """Of "model.layers.3" and its like, not of what is inside."""
    return name.split(".")[-1].isdigit() and not any(part.isdigit() for part in name.split(".")[:-1])


def watch_logits(model, pack):
    """pack() for the logits of routers, where the model keeps them for its loss."""
    for module in model.modules():
        if getattr(model.config, "output_router_logits", False) and type(module).__name__.endswith("TopKRouter"):
            module.register_forward_hook(lambda _, args, output: pack(output[0]) is None or None)


def by_layer(layers):
    """0 for the first of a second stack."""
    names = list(layers)
    return [layers[name] if i == 0 or not name.endswith(".0") else 0 for i, name in enumerate(names)]


def measure_saved(case, attention):
    model, _ = make_model(case, attention)
    batch = make_batch(case, model)
    held_before = [*model.parameters(), *model.buffers(), *batch.values()]
    known = {tensor.untyped_storage().data_ptr() for tensor in held_before}
    held, layers, inside = [], {}, []
    for name, module in model.named_modules():
        if not is_layer(name):
            continue
        layers[name] = 0
        module.register_forward_pre_hook(lambda _, args, kwargs, name=name: enter(name, kwargs), with_kwargs=True)
        module.register_forward_hook(lambda *_: inside.pop() and None)

    def enter(name, kwargs):
        for tensor in kwargs.get("position_embeddings") or ():
            pack(tensor)  # of no layer, whichever saves it first
        inside.append(name)

    def pack(tensor):
        storage = tensor.untyped_storage()
        if tensor.dim() > 0 and storage.data_ptr() not in known:
            known.add(storage.data_ptr())
            held.append(tensor)  # so that no address comes twice
            if inside:
                layers[inside[-1]] += storage.nbytes()
        return tensor

    watch_logits(model, pack)
    usual = torch.nn.functional.scaled_dot_product_attention
    torch.nn.functional.scaled_dot_product_attention = without_mask_gradient
    try:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            run_forward(case, model, batch)
    finally:
        torch.nn.functional.scaled_dot_product_attention = usual
    total = sum(tensor.untyped_storage().nbytes() for tensor in held)
    return dict(layers=by_layer(layers), total=total)


SDPA = torch.nn.functional.scaled_dot_product_attention


def without_mask_gradient(*args, attn_mask=None, **kwargs):
    """The CPU's fused kernel has no gradient of a mask, so that sdpa would keep all scores for one."""
    return SDPA(*args, attn_mask=attn_mask if attn_mask is None else attn_mask.detach(), **kwargs)


class Keep(torch.autograd.Function):
    """`x`, and `kept` for its backward."""

    @staticmethod
    def forward(ctx, x, kept):
        ctx.save_for_backward(kept)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def flash(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
          enable_gqa=False):
    """What sdpa calls on a GPU. With a mask that is the memory-efficient kernel, which keeps the mask as
    numbers (convert_boolean_attn_mask), and else what flash keeps."""
    out = torch.ops.aten._scaled_dot_product_flash_attention(
        query, key, value, dropout_p, is_causal or attn_mask is not None, scale=scale)[0]
    if attn_mask is None:
        return out
    numbers = attn_mask if attn_mask.dtype == query.dtype else torch.zeros_like(attn_mask, dtype=query.dtype)
    return Keep.apply(out, numbers.detach())


def forward_on_cuda(case, attention, dtype, count):
    """A forward of fake tensors: count(model, batch)."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        with torch.device("cuda"):
            model = build(case, attention, getattr(torch, dtype))
            shape = (case["micro_batch"], case["sequence_length"])
            model = freeze_fakes(case, model, getattr(torch, dtype))
            tokens = torch.zeros(shape, dtype=torch.long)
            classes = task_of(case) == "sequence_classification"
            labels = torch.zeros(shape[:1], dtype=torch.long) if classes else tokens
            if task_of(case) == "seq2seq_lm":
                labels = torch.zeros((shape[0], case["target_sequence_length"]), dtype=torch.long)
        return count(model, dict(input_ids=tokens, labels=labels))


def measure_on_cuda(case, attention, dtype):
    def count(model, batch):
        held_before = [*model.parameters(), *model.buffers(), *batch.values()]
        known = {tensor.untyped_storage()._cdata for tensor in held_before}
        held, layers, inside = [], {}, []
        for name, module in model.named_modules():
            if is_layer(name):
                layers[name] = 0
                module.register_forward_pre_hook(
                    lambda _, args, kwargs, name=name: enter(name, kwargs), with_kwargs=True)
                module.register_forward_hook(lambda *_: inside.pop() and None)

        def enter(name, kwargs):
            for tensor in kwargs.get("position_embeddings") or ():
                pack(tensor)
            inside.append(name)

        def pack(tensor):
            storage = tensor.untyped_storage()
            if tensor.dim() > 0 and tensor.dtype != torch.uint64 and storage._cdata not in known:
                known.add(storage._cdata)
                held.append(tensor)
                if inside:
                    layers[inside[-1]] += storage.nbytes()
            return tensor

        watch_logits(model, pack)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            run_forward(case, model, batch)
        return by_layer(layers)

    return forward_on_cuda(case, attention, dtype, count)


def rows_on_cuda(case, keys):
    rows = []
    usual = torch.nn.functional.scaled_dot_product_attention
    packed = transformers.masking_utils.find_packed_sequence_indices
    transformers.masking_utils.find_packed_sequence_indices = lambda _: None  # fake positions do not tell
    torch.nn.functional.scaled_dot_product_attention = flash
    try:
        for attention in attentions_of(case):
            for dtype in case.get("dtypes", ("float32", "bfloat16")):
                for dropout in case.get("dropouts", (0.0, 0.1)):
                    changed = dict(case, config=dict(case["config"], **{key: dropout for key in keys}))
                    if "lora" in case:
                        changed["lora"] = dict(case["lora"], lora_dropout=dropout)
                    layers = measure_on_cuda(changed, attention, dtype)
                    rows.append(dict(attention=attention, dtype=dtype, dropout=dropout, layers=layers))
    except DATA_DEPENDENT:
        rows = []
    finally:
        torch.nn.functional.scaled_dot_product_attention = usual
        transformers.masking_utils.find_packed_sequence_indices = packed
    return rows


def rounded(values):
    return [float(f"{value:.7g}") for value in values]


def make_fixture(name):
    case = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    model, centers = make_model(case)
    model = model.to(torch.float64)
    batch = make_batch(case, model)
    calls, arrival = watch(model)
    loss = run_forward(case, model, batch)
    loss.backward()
    parameters = [dict(name=name, shape=list(parameter.shape), center=centers[name],
                       gradient=rounded(parameter.grad.flatten().tolist() if parameter.requires_grad else []))
                  for name, parameter in model.named_parameters()]
    keys = sorted(key for key in case["config"] if "drop" in key and case["config"][key] == 0)
    modules = [[name, type(module).__name__] for name, module in model.named_modules() if name in calls]
    return dict(made_by="scripts/make_family_fixture.py", torch=torch.__version__,
                transformers=transformers.__version__, **case, tokens=make_inputs(case, model).flatten().tolist(),
                loss=loss.item(), parameters=parameters, modules=modules, calls=calls, arrival=arrival,
                saved={attention: measure_saved(case, attention) for attention in attentions_of(case)},
                dropout_keys=keys, on_cuda=rows_on_cuda(case, keys))


def as_text(fixture):
    """A key per line, a parameter per line."""
    lines = []
    for key, value in fixture.items():
        if key in ("parameters", "on_cuda"):
            rows = ",\n".join("  " + json.dumps(row, separators=(",", ":")) for row in value)
            lines.append(f' "{key}": [\n{rows}\n ]')
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(names):
    FIXTURES.mkdir(parents=True, exist_ok=True)
    for name in names or sorted(path.stem for path in CASES.glob("*.json")):
        text = as_text(make_fixture(name))
        (FIXTURES / f"{name}.json").write_text(text, encoding="utf-8")
        print(name, len(text), "bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
