#!/usr/bin/env python3
"""Writes a random sample of configurations of a small GPT-2 for measure_list and bench_predictor.

usage: predictor_sample.py FOLDER [--backend cpu|sim] [--ranks N] [--count N] [--seed N]

Makes FOLDER/base.json and FOLDER/list.jsonl; the same ones for a seed. Then:
  mpirun -n RANKS+1 measure_list FOLDER/base.json FOLDER/list.jsonl FOLDER/journal.jsonl
  bench_predictor FOLDER/journal.jsonl
"""

import argparse
import json
import pathlib
import random

MODELS = {
    "cpu": {"model_type": "gpt2", "vocab_size": 4096, "n_positions": 128, "n_embd": 256,
            "n_layer": 4, "n_head": 4},
    "sim": "gpt2",
}


def sample(rng, ranks):
    stage = rng.choice([0, 1, 2, 3])
    zero = {"stage": stage,
            "reduce_bucket_size": rng.choice([100_000, 500_000, 2_000_000, 10_000_000]),
            "overlap_comm": rng.choice([True, False])}
    if stage in (1, 2):
        zero["contiguous_gradients"] = rng.choice([True, False])
        zero["round_robin_gradients"] = rng.choice([True, False])
    if stage == 3:
        zero["stage3_prefetch_bucket_size"] = rng.choice([0, 200_000, 2_000_000])
        zero["stage3_param_persistence_threshold"] = rng.choice([0, 1_000, 300_000])
        zero["stage3_max_live_parameters"] = rng.choice([0, 2_000_000, 1_000_000_000])
        zero["stage3_max_reuse_distance"] = rng.choice([0, 2_000_000, 1_000_000_000])
        zero["sub_group_size"] = rng.choice([500_000, 1_000_000_000])
    micro_batch = rng.choice([1, 2, 4, 8])
    accumulation = rng.choice([1, 2, 4])
    return {"train_batch_size": micro_batch * accumulation * ranks,
            "train_micro_batch_size_per_gpu": micro_batch,
            "gradient_accumulation_steps": accumulation,
            "gradient_clipping": rng.choice([0.0, 1.0]),
            "zero_optimization": zero}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--backend", default="cpu", choices=MODELS)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    base = {"autotuning": {"enabled": True},
            "dstune": {"model": MODELS[arguments.backend], "sequence_length": 64,
                       "memory_limit": "8GiB", "backend": arguments.backend,
                       "warmup_steps": 1, "measure_steps": 5}}
    (arguments.folder / "base.json").write_text(json.dumps(base))
    with open(arguments.folder / "list.jsonl", "w") as out:
        for _ in range(arguments.count):
            print(json.dumps(sample(rng, arguments.ranks)), file=out)


if __name__ == "__main__":
    main()
