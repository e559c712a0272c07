"""Journals of measured configurations, as scripts/verify reads them."""

import itertools
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "scripts"))

from verify import tuned  # noqa: E402

SENT = [{"kind": "all_reduce", "dtype": "fp32", "calls": 2, "elements": 25, "bytes": 100},
        {"kind": "all_gather", "dtype": "bf16", "calls": 1, "elements": 25, "bytes": 50},
        {"kind": "all_reduce", "dtype": "fp32", "calls": 1, "elements": 1, "bytes": 4}]
MEMORY_LIMIT = 3 * 2**30
PEAK = 2**28
CHECK_RESULT = {"losses": [3.0, 2.9, 3.1, 3.0, 2.5, 2.45, 2.6, 2.52], "loss_cycle": 4, "norms": [1.5, 1.4, 1.3],
                "peak_bytes": PEAK, "collectives": {"all_reduce fp32": [3, 26, 104], "all_gather bf16": [1, 25, 50]}}
SPEC = dict(model_type="gpt2", vocab_size=16, n_embd=8, n_layer=1, embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0)


def record(name, step_s, stage=0, micro_batch=4, accumulation=1, bf16=False, bucket=100, status="measured", **settings):
    """A line of the journal."""
    config = {"train_micro_batch_size_per_gpu": micro_batch, "gradient_accumulation_steps": accumulation,
              "zero_optimization": {"stage": stage, "reduce_bucket_size": bucket}, "bf16": {"enabled": bf16}}
    outcome = {"status": status, "step_time_s": {"median": step_s}, "noise_percent": 1.0, "peak_memory_bytes": PEAK,
               "ledger": {"collectives": SENT}}
    return {"type": "finished", "outcome": outcome, "experiment": {
        "name": name, "ds_config": config, "ranks": 2, "repetition": 0,
        "settings": dict({"model": SPEC, "sequence_length": 8, "backend": "cpu", "threads_per_rank": 1,
                          "memory_limit_bytes": MEMORY_LIMIT}, **settings)}}


def journal(records):
    return "".join(json.dumps(line) + "\n" for line in records)


def configurations(records):
    return tuned.configurations_of(journal(records))


def grid(**settings):
    """Stages 0 to 3, two batches, two types, two buckets; later ones are slower."""
    cases = itertools.product((1, 2), (False, True), range(4), (100, 200))
    lines = []
    for accumulation, bf16, stage, bucket in cases:
        name = f"z{stage}_{'b' if bf16 else 'f'}_{accumulation}_{bucket}"
        lines.append(record(name, 1 + 0.1 * len(lines), stage, 4 // accumulation, accumulation, bf16, bucket,
                            **settings))
    return lines
