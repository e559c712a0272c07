#!/usr/bin/env python3
"""Writes tests/data/rotary_fixture.json: angles of Hugging Face's rotary embeddings by config.json.

    pip install torch transformers && python3 scripts/make_rotary_fixture.py tests/data/rotary_fixture.json

Each case is a config.json of a Llama with its rotary settings, a sequence length, and what
LlamaRotaryEmbedding makes of them: the angle of every pair at position 1, and the factor of cosines
and sines.
"""
import json
import sys

import torch
import transformers
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

SHORT = [1.0, 1.05, 1.2, 1.6, 2.0, 2.5, 3.0, 4.5]
LONG = [1.0, 1.5, 3.0, 6.0, 12.0, 20.0, 31.0, 40.0]
LONGROPE = dict(rope_type="longrope", short_factor=SHORT, long_factor=LONG,
                original_max_position_embeddings=64)
CASES = [
    (dict(), 8),
    (dict(rope_theta=500.0), 8),
    (dict(rope_parameters=dict(rope_type="default", rope_theta=1000000.0)), 8),
    (dict(rope_scaling=dict(type="linear", factor=4.0), rope_theta=1000.0), 8),
    (dict(rope_scaling=dict(rope_type="dynamic", factor=2.0)), 256),
    (dict(rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                            original_max_position_embeddings=64), rope_theta=500000.0), 8),
    (dict(rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                            high_freq_factor=4.0)), 8),
    (dict(rope_scaling=dict(type="yarn", factor=4.0, original_max_position_embeddings=64)), 8),
    (dict(rope_scaling=dict(rope_type="yarn", factor=40.0, original_max_position_embeddings=32,
                            beta_fast=16, beta_slow=2, mscale=1.0, mscale_all_dim=0.8,
                            truncate=False)), 8),
    (dict(rope_scaling=dict(rope_type="yarn", factor=4.0, attention_factor=1.5)), 8),
    (dict(rope_scaling=LONGROPE), 64),
    (dict(rope_scaling=LONGROPE), 65),
    (dict(rope_scaling=dict(LONGROPE, factor=2.0)), 8),
    (dict(rope_scaling=dict(LONGROPE, attention_factor=1.25)), 8),
]
DIMENSIONS = dict(hidden_size=64, num_attention_heads=4, max_position_embeddings=256)


def make_case(settings, sequence):
    config = transformers.LlamaConfig(**DIMENSIONS, **json.loads(json.dumps(settings)))
    rotary = LlamaRotaryEmbedding(config)
    rotary(torch.zeros(1), torch.arange(sequence).unsqueeze(0))
    return dict(config=dict(DIMENSIONS, **settings), sequence_length=sequence,
                values=rotary.inv_freq.tolist(), scaling=float(rotary.attention_scaling))


def main(path):
    fixture = dict(made_by="scripts/make_rotary_fixture.py", torch=torch.__version__,
                   transformers=transformers.__version__,
                   cases=[make_case(settings, sequence) for settings, sequence in CASES])
    with open(path, "w", encoding="utf-8") as file:
        json.dump(fixture, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
