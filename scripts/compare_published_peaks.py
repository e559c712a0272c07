#!/usr/bin/env python3
"""Holds plans against the memory that DeepSpeed's own example published, on GPUs that nobody here has.

    scripts/compare_published_peaks.py PROGRAM

PROGRAM is dstune-mpi. published_peaks.json has what was published, with its source. The example's model is written by
hand; the nearest that can be planned is an OPT with its norms behind, and what is otherwise in the example's code is
added by a formula, which the table shows beside the plan:

- nn.MultiheadAttention is asked for its weights: it keeps the probabilities and the scaled queries, which sdpa does not;
- the loss is of 16-bit logits: 8 bytes per logit at its peak, not the 14 of the fp32 loss of transformers;
- cuBLAS takes its workspace from torch's allocator: 64 MiB, which plans leave out.

Between two steps the plan's is what an update works on, without its temporaries, and the logits, which stay alive.
"""
import json
import pathlib
import sys

from plans import planned

ROOT = pathlib.Path(__file__).resolve().parent
GIB = 2**30
BF16 = 2
LOSS_BYTES_PER_LOGIT = {"transformers": 14, "example": 8}
# So that the peak is in the update: hardly any activations, and no weight stays gathered.
SHORT_SEQUENCE = 8
NOTHING_LIVE = {"stage3_max_live_parameters": 0, "stage3_max_reuse_distance": 0, "stage3_prefetch_bucket_size": 0}


def plan_of(program, published, row, sequence_length, zero, zero_init):
    model, ds_config = {**published["model"], **published["models"][row["model"]]}, published["ds_config"]
    ds_config = {**ds_config, "zero_optimization": {**ds_config["zero_optimization"], **zero},
                 "train_micro_batch_size_per_gpu": row["micro_batch"]}
    return planned(program, ds_config, {
        "model": model, "sequence_length": sequence_length, "keep_logits": True, "zero_init": zero_init,
        "activation_checkpointing": row["checkpointing"], "deepspeed_version": published["deepspeed_version"]},
        row["ranks"])


def logits_of(published, row, sequence_length):
    return row["micro_batch"] * sequence_length * published["model"]["vocab_size"]


def of_the_examples_code(published, row):
    """What its model keeps more at the peak of backward, and its loss less."""
    model, tokens = published["models"][row["model"]], row["micro_batch"] * published["sequence_length"]
    probabilities = model["num_attention_heads"] * tokens * published["sequence_length"]
    attention = model["num_hidden_layers"] * (probabilities + tokens * model["hidden_size"]) * BF16
    loss = LOSS_BYTES_PER_LOGIT["example"] - LOSS_BYTES_PER_LOGIT["transformers"]
    return attention + loss * logits_of(published, row, published["sequence_length"])


def peak(program, published, row):
    """(bytes of the plan, bytes added)"""
    outcome = plan_of(program, published, row, published["sequence_length"], {}, zero_init=False)
    added = published["cublas_workspace_bytes"]
    if outcome["peak_memory_phase"] != "update":
        added += of_the_examples_code(published, row)
    return outcome["peak_memory_bytes"], added


def rest(program, published, row):
    outcome = plan_of(program, published, row, SHORT_SEQUENCE, NOTHING_LIVE, zero_init=True)
    if outcome["peak_memory_phase"] != "update":
        sys.exit(f"{row}: the peak of a short sequence is in {outcome['peak_memory_phase']}")
    update = outcome["peak_memory_bytes_by_category_at_peak"]
    kept = sum(update[category] for category in ("parameters", "gradients", "optimizer", "buckets"))
    logits = logits_of(published, row, published["sequence_length"]) * BF16
    return kept + logits, published["cublas_workspace_bytes"]


def rows_of(program, published):
    """{model, ranks, ..., "what", published, plan and added in GiB, off: a share} of each published figure."""
    rows = []
    for row in published["rows"]:
        for what, of_plan in (("peak", peak), ("rest", rest)):
            plan, added = of_plan(program, published, row)
            figure = row[f"{what}_gib"]
            rows.append({**row, "what": what, "published": figure, "plan": plan / GIB, "added": added / GIB,
                         "off": (plan + added) / GIB / figure - 1})
    return rows


def read():
    return json.loads((ROOT / "published_peaks.json").read_text(encoding="utf-8"))


def table(rows):
    lines = ["| model | GPUs | micro-batch | checkpointing | what | published | plan | added | off |",
             "| :-- | --: | --: | :-- | :-- | --: | --: | --: | --: |"]
    words = {"peak": "peak", "rest": "between steps"}
    lines += [f"| {row['model']} | {row['ranks']} | {row['micro_batch']} | {'yes' if row['checkpointing'] else 'no'} | "
              f"{words[row['what']]} | {row['published']:.2f} | {row['plan']:.2f} | {row['added']:+.2f} | "
              f"{row['off'] * 100:+.1f} % |" for row in rows]
    return "\n".join(lines)


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.exit(__doc__)
    print(table(rows_of(arguments[0], read())))


if __name__ == "__main__":
    main(sys.argv[1:])
