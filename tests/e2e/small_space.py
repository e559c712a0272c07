"""A small space on the simulated machine, for any tuner."""

RANKS = 3


def space_config(tuner, fast=True, **dstune):
    return {
        "train_micro_batch_size_per_gpu": [1, 2],
        "zero_optimization": {"stage": [1, 2, 3], "reduce_bucket_size": 1_000_000},
        "autotuning": {"enabled": True, "fast": fast, "tuner_num_trials": 20, "tuner_early_stopping": 8},
        "dstune": {
            "model": {"model_type": "gpt2", "vocab_size": 512, "n_positions": 64, "n_embd": 64, "n_layer": 3,
                      "n_head": 2},
            "sequence_length": 32, "memory_limit": "1GiB", "backend": "sim", "learnt": False,
            **({"tuner": tuner} if tuner else {}),
            "space": {"/zero_optimization/reduce_bucket_size": ["h*h", "4*h*h", 1_000_000],
                      "/zero_optimization/overlap_comm": [True, False]},
            **dstune,
        },
    }
