#!/usr/bin/env python3
"""Writes tests/data/loss_memory.json: what the losses of a small Llama allocate, by torch's own events.

    pip install torch transformers numpy
    pip download --no-deps -d W trl==1.14.0 trl==1.16.0 liger-kernel==0.8.5, each unpacked
    python3 scripts/measure_loss_memory.py TRL_1_14 TRL_1_16 LIGER tests/data/loss_memory.json

A step of the model runs on the CPU under torch.profiler with profile_memory; the events of torch's
allocator are summed up from the moment when the last hidden states are there to the moment when their
gradient is. The code that runs is transformers', TRL's and Liger's own. What is for GPUs only, or takes
memory on the CPU alone (Triton kernels, 16-bit products into given memory), NumPy does here, in place, in
memory that torch does not know of: so the tensors are those of a GPU.
"""
import ast
import contextlib
import json
import sys
import types
from pathlib import Path

import numpy
import torch
import torch.nn.functional as F
import transformers
from torch.autograd.profiler import record_function

BATCH, SEQUENCE = 2, 512
SHAPES = ((32000, 256), (128256, 256), (3200, 2048))  # words, hidden size
BEGIN, TURN, END = "loss begins", "loss is there", "gradient is there"


def mark(name):
    with record_function(name):
        pass


def floats(tensor):
    """Its values as NumPy's fp32: a copy that torch's allocator does not see."""
    tensor = tensor.detach()
    if tensor.dtype == torch.float32:
        return tensor.numpy()
    bits = tensor.view(torch.int16).numpy().view(numpy.uint16).astype(numpy.uint32)
    return (bits << 16).view(numpy.float32)


def write(tensor, values):
    """Rounds to bf16 to the nearest, ties to even."""
    tensor = tensor.detach()
    if tensor.dtype == torch.float32:
        tensor.numpy()[...] = values
        return
    bits = numpy.ascontiguousarray(values, numpy.float32).view(numpy.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    tensor.view(torch.int16).numpy()[...] = rounded.astype(numpy.uint16).view(numpy.int16)


def definitions(path, names, scope):
    """The named functions, classes and constants of a source file, and nothing else of it."""
    tree = ast.parse(Path(path).read_text())
    tree.body = [node for node in tree.body if getattr(node, "name", None) in names or (
        isinstance(node, ast.Assign) and node.targets[0].id in names)]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            node.returns = None
    exec(compile(tree, str(path), "exec"), scope)
    return scope


def trl_chunked(root):
    scope = definitions(root / "trl/trainer/sft_trainer.py",
                        {"_chunk", "_chunked_cross_entropy_loss", "_CHUNKED_LM_HEAD_CHUNK_SIZE"},
                        {"torch": torch, "F": F,
                         "maybe_gather_lm_head_ctx": lambda *_: contextlib.nullcontext()})

    def loss(hidden, weight, labels):
        return scope["_chunked_cross_entropy_loss"](
            hidden, weight, scope["_CHUNKED_LM_HEAD_CHUNK_SIZE"], labels=labels,
            num_items_in_batch=count(labels))[0]
    return loss


def fold_tile(tile, _stride, targets, largest, sums, *others, **_flags):
    logit, first, cols = others[4], others[5], others[6]
    z = floats(tile)
    now = numpy.maximum(largest.numpy(), z.max(-1))
    sums.numpy()[...] = (sums.numpy() * numpy.exp(largest.numpy() - now) +
                         numpy.exp(z - now[:, None]).sum(-1))
    largest.numpy()[...] = now
    local = targets.numpy() - first
    rows = numpy.nonzero((local >= 0) & (local < cols))[0]
    logit.numpy()[rows] = z[rows, local[rows]]


def gradient_tile(tile, _stride, targets, log_z, _entropy, grad_logprobs, _grad_entropy, first, cols,
                  *_, **_flags):
    p = numpy.exp(floats(tile) - log_z.numpy()[:, None])
    local = targets.numpy() - first
    rows = numpy.nonzero((local >= 0) & (local < cols))[0]
    p = -p
    p[rows, local[rows]] += 1
    write(tile, grad_logprobs.numpy()[:, None] * p)


def add_product(total, a, b):
    total.detach().numpy()[...] += floats(a) @ floats(b)


class TorchOfGpu:
    """torch, but that products of 16-bit matrices take no memory beside their results, as cuBLAS."""

    def __getattr__(self, name):
        return getattr(torch, name)

    def mm(self, a, b, out=None):
        if out is None:
            out = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype)
        write(out, floats(a) @ floats(b))
        return out

    def addmm(self, total, a, b, out):
        write(out, floats(total) + floats(a) @ floats(b))


def trl_tiled(root):
    import math
    utils = definitions(root / "trl/trainer/utils.py", {"_CHUNKED_LOGPROB_CHUNK_SIZE"}, {})
    # Backward imports maybe_gather_lm_head_ctx from there.
    package, trainer = types.ModuleType("head"), types.ModuleType("head.trainer")
    kernels, module = types.ModuleType("head.kernels"), types.ModuleType("head.trainer.utils")
    module.maybe_gather_lm_head_ctx = lambda *_: contextlib.nullcontext()
    for part in (package, trainer, kernels, module):
        part.__path__ = []
        sys.modules[part.__name__] = part
    scope = definitions(root / "trl/kernels/chunked_logprob.py",
                        {"TOKEN_CHUNK_SIZE", "OPTIONAL_OUTPUTS", "_BLOCK_SIZE", "ChunkedLogProbFunction"},
                        {"torch": torch, "math": math, "__package__": "head.kernels",
                         "__name__": "head.kernels.logprob", "_use_triton": lambda _: False,
                         "_forward_tile": fold_tile, "_backward_tile": gradient_tile,
                         "_addmm_fp32": add_product})

    # As _fused_forward of trl/trainer/utils.py and SFTTrainer.compute_loss on a GPU.
    def loss(hidden, weight, labels):
        hidden, labels = hidden[:, :-1], labels[:, 1:]
        mask = labels != -100
        per_token = scope["ChunkedLogProbFunction"].apply(
            hidden[mask], weight, None, labels[mask], 1.0, utils["_CHUNKED_LOGPROB_CHUNK_SIZE"], None,
            1.0, ("log_probs", "entropy", "is_top1"))
        log_probs = per_token[0].new_zeros(mask.shape).masked_scatter(mask, per_token[0])
        return (-log_probs).sum() / mask.sum()
    return loss


class CrossEntropyKernel:
    """Stands for liger_cross_entropy_kernel[grid](...)."""

    def __getitem__(self, _grid):
        return self

    def __call__(self, X_ptr, Y_ptr, loss_ptr, ignore_index, **_):
        for row, (label, x) in enumerate(zip(Y_ptr.tolist(), X_ptr)):
            if label == ignore_index:
                write(x, numpy.zeros(x.shape, numpy.float32))
                continue
            z = floats(x)
            log_sum = z.max() + numpy.log(numpy.exp(z - z.max()).sum())
            loss_ptr.numpy()[row] = log_sum - z[label]
            p = numpy.exp(z - log_sum)
            p[label] -= 1
            write(x, p)


class MultiplyKernel:
    """Stands for element_mul_kernel[grid](...)."""

    def __getitem__(self, _grid):
        return self

    def __call__(self, tensor, _stride, factor, _cols, **_):
        write(tensor, floats(tensor) * factor.item())


def liger(root):
    scope = {
        "torch": TorchOfGpu(), "MAX_FUSED_SIZE": 32768, "_CHUNK_MEM_CONST": 1, "_ADDMM_SUPPORTS_OUT_DTYPE": True,
        "_can_use_mm_out": lambda *_: True, "is_hip": lambda: False,
        "liger_cross_entropy_kernel": CrossEntropyKernel(), "element_mul_kernel": MultiplyKernel(),
        "amp_custom_fwd": lambda f: f, "amp_custom_bwd": lambda f: f,
        "triton": types.SimpleNamespace(cdiv=lambda a, b: -(-a // b),
                                        next_power_of_2=lambda n: 1 << (n - 1).bit_length()),
    }
    path = root / "liger_kernel/ops/fused_linear_cross_entropy.py"
    source = path.read_text().replace('.device.type == "cuda"', '.device.type == "cpu"').replace(
        "torch.cuda.get_device_capability(grad_weight.device)[0]", "8")
    patched = Path(root / "as_on_a_gpu.py")
    patched.write_text(source)
    definitions(patched, {"fused_linear_cross_entropy_forward", "fused_linear_cross_entropy_backward",
                          "LigerFusedLinearCrossEntropyFunction"}, scope)

    # As LigerForCausalLMLoss of liger_kernel/transformers/model/loss_utils.py under the Trainer.
    def loss(hidden, weight, labels):
        shifted = F.pad(labels, (0, 1), value=-100)[..., 1:].contiguous()
        total = scope["LigerFusedLinearCrossEntropyFunction"].apply(
            hidden.view(-1, hidden.size(-1)), weight, shifted.view(-1), None, None, -100, 0.0, 0.0,
            "sum")[0]
        return total / count(labels)
    return loss


def count(labels):
    return torch.tensor(labels[:, 1:].numel())


def make_model(words, hidden, dtype):
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=words, hidden_size=hidden, intermediate_size=512, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=SEQUENCE,
        tie_word_embeddings=False, use_cache=False)
    return transformers.LlamaForCausalLM(config).to(dtype).train()


def begin(_module, _inputs, output):
    output.last_hidden_state.register_hook(lambda _: mark(END))
    mark(BEGIN)


def step(model, tokens, own_loss, kept):
    """One forward and backward; what `kept` holds at the end is the model's output."""
    if own_loss is None:
        output = model(input_ids=tokens, labels=tokens, num_items_in_batch=count(tokens))
        loss = output.loss
        if kept is not None:
            kept[:] = [output]
        del output
    else:
        loss = own_loss(model.model(input_ids=tokens).last_hidden_state, model.lm_head.weight, tokens)
    mark(TURN)
    loss.backward()
    return loss.item()


def profile(run):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                profile_memory=True) as profiler:
        loss = run()
    events = profiler.profiler.kineto_results.events()
    changes = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    marks = {event.name(): event.start_ns() for event in events if event.name() in (BEGIN, TURN, END)}
    return loss, changes, marks


def largest(changes, first, last):
    """Live bytes at `first`, most of them until `last`, and at `last`."""
    live = at_first = most = 0
    for time, change in changes:
        if time > last:
            break
        live += change
        if time <= first:
            at_first = most = live
        most = max(most, live)
    return at_first, most, live


def measure(model, tokens, own_loss, keeps):
    model.model.register_forward_hook(begin)
    kept = [] if keeps else None
    for _ in range(2 if keeps else 1):  # what is kept then is the first's
        model.zero_grad(set_to_none=True)
        loss, changes, marks = profile(lambda: step(model, tokens, own_loss, kept))
    start, forward, saved = largest(changes, marks[BEGIN], marks[TURN])
    _, backward, _ = largest(changes, marks[TURN], marks[END])
    return loss, {"forward": forward - start, "saved": saved - start, "backward": backward - start}


def main(trl_1_14, trl_1_16, liger_root, path):
    losses = {"plain": None, "kept": None, "chunked": trl_chunked(Path(trl_1_14)),
              "tiled": trl_tiled(Path(trl_1_16)), "fused": liger(Path(liger_root))}
    rows = []
    for words, hidden in SHAPES:
        for dtype in (torch.float32, torch.bfloat16):
            tokens = torch.randint(words, (BATCH, SEQUENCE), generator=torch.Generator().manual_seed(2))
            for name, own_loss in losses.items():
                loss, peaks = measure(make_model(words, hidden, dtype), tokens, own_loss, name == "kept")
                rows.append({"loss": "plain" if name == "kept" else name, "keep_logits": name == "kept",
                             "dtype": {torch.float32: "fp32", torch.bfloat16: "bf16"}[dtype],
                             "vocab_size": words, "hidden_size": hidden, **peaks})
                print(json.dumps({**rows[-1], "value": loss}), flush=True)
    with open(path, "w") as file:
        json.dump({"torch": torch.__version__, "transformers": transformers.__version__,
                   "micro_batch": BATCH, "sequence_length": SEQUENCE, "rows": rows}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
