#!/usr/bin/env python3
"""Writes docs/fidelity-tables.md: plans beside what the real DeepSpeed sent and held.

    scripts/make_fidelity_tables.py PROGRAM [--write docs/fidelity-tables.md]

PROGRAM is dstune-mpi, whose dry runs are made anew. DeepSpeed's side is in tests/data, by the scripts that each table
names, and in published_peaks.json. Without --write the page is printed.
"""
import argparse
import concurrent.futures
import json
import pathlib

import compare_published_peaks
from plans import planned

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALIKE = 0.001  # of peaks


def read(name):
    return json.loads((ROOT / "tests/data" / name).read_text(encoding="utf-8"))


def part_of(row):
    """What is trained, in a word."""
    if "lora" in row:
        return "LoRA, all linear" if row["lora"]["target_modules"] == "all-linear" else "LoRA, two"
    return "a layer" if "trainable" in row else "everything"


def plan_of_gathers(program, row, fixture):
    ds_config = {"train_micro_batch_size_per_gpu": fixture["micro_batch"], "gradient_accumulation_steps": 1,
                 "gradient_clipping": 1.0, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
                 "zero_optimization": row["zero_optimization"]}
    if row["precision"] != "fp32":
        ds_config[row["precision"]] = {"enabled": True}
    dstune = {"model": fixture["models"][row["model"]], "sequence_length": fixture["sequence_length"],
              "activation_checkpointing": row["activation_checkpointing"], "zero_init": row.get("zero_init", True),
              "deepspeed_version": row.get("deepspeed", fixture["deepspeed"])}
    dstune.update((key, row[key]) for key in ("lora", "trainable") if key in row)
    return planned(program, ds_config, dstune, fixture["ranks"])


def compared_gathers(program, row, fixture):
    """{"release", "model", "part", "sends_alike", "peak": difference as a share}"""
    outcome = plan_of_gathers(program, row, fixture)
    gathers = [line for line in outcome["ledger"]["collectives"] if line["kind"] == "all_gather"]
    ours = [sum(line[key] for line in gathers) for key in ("calls", "elements")]
    theirs = [sum(row[phase][place] for phase in ("forward", "backward", "update")) for place in (0, 1)]
    return {"release": row.get("deepspeed", fixture["deepspeed"]), "model": row["model"], "part": part_of(row),
            "sends_alike": ours == theirs, "peak": outcome["peak_memory_bytes"] / row["peak"] - 1}


def table(header, numbers, lines):
    rules = ["--:" if place in numbers else ":--" for place in range(len(header))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rules, *lines])


def share(value):
    return f"{value * 100:+.3f} %"


def gathers_table(rows):
    """A line per release and model, and one of all."""
    groups = {}
    for row in rows:
        groups.setdefault((row["release"], row["model"]), []).append(row)
    groups["all", ""] = rows
    lines = []
    for (release, model), group in groups.items():
        worst = max(group, key=lambda row: abs(row["peak"]))
        lines.append([release, model, str(len(group)), str(sum(row["sends_alike"] for row in group)),
                      str(sum(abs(row["peak"]) <= ALIKE for row in group)), share(worst["peak"]), worst["part"]])
    return table(["DeepSpeed", "model", "configurations", "gathers equal", "peaks within 0.1 %", "worst peak",
                  "trained there"], {2, 3, 4, 5}, lines)


def peak_rows(program, fixture):
    """(name, DeepSpeed's peak less cuBLAS's workspaces, ours) in bytes"""
    for row in fixture["rows"]:
        dstune = {"model": fixture["models"][row["model"]], "sequence_length": row["sequence_length"],
                  "attention": row["attention"], "keep_logits": row["keep_logits"],
                  "activation_checkpointing": row.get("checkpointing", False)}
        outcome = planned(program, row["ds_config"], dstune, row.get("ranks", fixture.get("ranks")))
        yield row["name"], row["deepspeed_bytes"] - row.get("workspaces_bytes", 0), outcome["peak_memory_bytes"]


def peaks_line(where, rows):
    rows = list(rows)
    worst = max(rows, key=lambda row: abs(row[2] / row[1] - 1))
    alike = sum(abs(ours / theirs - 1) <= ALIKE for _, theirs, ours in rows)
    return [where, str(len(rows)), str(alike), share(worst[2] / worst[1] - 1), worst[0]]


PAGE = """# Fidelity in tables

Made by [make_fidelity_tables.py](../scripts/make_fidelity_tables.py): dry runs of dstune-mpi beside what the real
DeepSpeed did. Many of these rows found bugs that have been fixed since, so they say less about a new configuration than
rows that were compared when nothing was left to fix because of them: those of `qwen3`, `mistral`, `gemma2`, 0.19.4
and 0.19.6 in the first table, and the published ones ([memory.md](memory.md), [lora.md](lora.md)).

## What stage 3 gathers, and its peak

Small models of transformers, trained as a whole, with LoRA on two or all linear layers, or with one layer trained; with
activation checkpointing in four ways, in fp32 and bf16, with five settings of prefetch, reuse, live and persistent
parameters, and of torch's linear. "Equal" is the number of all-gathers and the number of their elements
([make_gather_fixture.py](../scripts/make_gather_fixture.py); [why peaks are off](lora.md#what-deepspeed-makes-of-it)).

{gathers}

## Peaks of all stages

[compare_memory_with_deepspeed.py](../scripts/compare_memory_with_deepspeed.py) and
[measure_gpu_memory.py](../scripts/measure_gpu_memory.py), the latter without cuBLAS's workspaces.

{peaks}

## Published peaks of GPUs

[DeepSpeed's own example]({source}) publishes what torch's allocator
had at the peak and between two steps, in GiB. It hands its model to `deepspeed.initialize` of a release before 0.19.4,
so torch keeps each gathered weight, without which the plan of the third model's peak would be 31.32 GiB. "Added" is
what is otherwise in the example's code, by formulas, and cuBLAS's workspace
([compare_published_peaks.py](../scripts/compare_published_peaks.py)). The example's rows with 16-bit masters are not
there, since those are not modelled. Between steps no model of a step is needed: 16 bytes per parameter over the GPUs,
the bucket, the logits and the workspace are as near.

{published}
"""


def page(program):
    fixture, published = read("lora_gathers.json"), compare_published_peaks.read()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda row: compared_gathers(program, row, fixture), fixture["rows"]))
    peaks = [peaks_line("two CPU ranks", peak_rows(program, read("deepspeed_memory.json"))),
             peaks_line("an H200, 1 rank or rank 0 of 8", peak_rows(program, read("deepspeed_gpu_memory.json")))]
    return PAGE.format(
        gathers=gathers_table(rows), source=published["source"],
        peaks=table(["measured on", "configurations", "within 0.1 %", "worst", "which"], {1, 2, 3}, peaks),
        published=compare_published_peaks.table(compare_published_peaks.rows_of(program, published)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="build/default/dstune-mpi")
    parser.add_argument("--write", type=pathlib.Path)
    options = parser.parse_args()
    text = page(options.program)
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
