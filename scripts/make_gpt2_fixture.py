#!/usr/bin/env python3
"""Writes tests/data/gpt2_fixture.json: loss and every gradient of a small GPT-2 by Hugging Face.

    pip install torch transformers && python3 scripts/make_gpt2_fixture.py tests/data/gpt2_fixture.json

Everything is computed in fp64 from parameters rounded to fp32, so that the numbers are the exact
ones as far as fp32 can tell. Biases and LayerNorm weights are random too: zeros and ones hide faults.
"""
import base64
import json
import sys

import torch
import transformers

CONFIG = dict(vocab_size=101, n_positions=16, n_embd=32, n_layer=2, n_head=4, n_inner=None,
              activation_function="gelu_new", layer_norm_epsilon=1e-5, initializer_range=0.02,
              embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0)
BATCH, SEQUENCE, SEED = 2, 12, 20240607


def encode(tensor):
    """Little-endian fp32 in base64."""
    return base64.b64encode(tensor.detach().to(torch.float32).contiguous().numpy().tobytes()).decode()


def make_model():
    torch.manual_seed(SEED)
    config = transformers.GPT2Config(**CONFIG, attn_implementation="sdpa")
    model = transformers.GPT2LMHeadModel(config).to(torch.float64)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            center = 1.0 if ".ln_" in name and name.endswith("weight") else 0.0
            noise = torch.randn(parameter.shape) * 0.1
            parameter.copy_((center + noise).to(torch.float32).to(torch.float64))
    return model


def main(path):
    model = make_model()
    tokens = torch.randint(0, CONFIG["vocab_size"], (BATCH, SEQUENCE))
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    tensors = [dict(name=name, shape=list(parameter.shape), value=encode(parameter),
                    gradient=encode(parameter.grad)) for name, parameter in model.named_parameters()]
    fixture = dict(made_by="scripts/make_gpt2_fixture.py", torch=torch.__version__,
                   transformers=transformers.__version__, seed=SEED, config=CONFIG,
                   micro_batch=BATCH, sequence_length=SEQUENCE, tokens=tokens.flatten().tolist(),
                   loss=loss.item(), tensors=tensors)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(fixture, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
