#!/usr/bin/env python3
r"""Tunes a model over all ZeRO stages with one worker, and says what the run was worth.

    scripts/gpu_tuning.py build/cuda/dstune-mpi
    scripts/gpu_tuning.py build/default/dstune-mpi --config examples/tiny.json --backend cpu \
        --experiments 12

Without --config the model is gpt2-large in bf16 with sequences of 1024. Prints experiments per
minute, the share of the wall time that steps take, warm-up and measured ones (aim: 80 %), the largest micro-batch of
each stage beside PyTorch's own, which is found by doubling and halving (left out where there is no
PyTorch); then runs a tiny model --experiments times more and looks whether the GPU's memory grows.

Exit codes: 0 done, 1 an aim is missed, 2 wrong usage or a run that failed.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading

SHARE = 0.8
GPT2_LARGE = {
    "bf16": {"enabled": True},
    "gradient_clipping": 1.0,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
    "zero_optimization": {"stage": "all"},
    "autotuning": {"enabled": True},
    "dstune": {"tuner": "fast",  # which looks for the largest micro-batch of every stage
               "model": "gpt2-large", "sequence_length": 1024, "warmup_steps": 1, "measure_steps": 3},
}
TINY = {
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": "all", "reduce_bucket_size": 1e5},
    "autotuning": {"enabled": True, "fast": False},
    "dstune": {"model": {"model_type": "gpt2", "vocab_size": 512, "n_positions": 64, "n_embd": 64, "n_layer": 1,
                         "n_head": 2},
               "sequence_length": 16, "warmup_steps": 0, "measure_steps": 1,
               "warmup_seconds": 0, "measure_seconds": 0, "host_overhead": "none"},
}


def finished_records(journal):
    """The finished experiments of a journal's lines; what is no line of it is left out."""
    records = []
    for line in journal:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and record.get("type") == "finished":
            records.append(record)
    return records


def stage_of(record):
    return record["experiment"]["ds_config"].get("zero_optimization", {}).get("stage", 0)


def micro_batch_of(record):
    return record["experiment"]["ds_config"]["train_micro_batch_size_per_gpu"]


class Figures:
    """What a run was worth: wall time from the first start to the last end."""

    def __init__(self, records):
        self.records = records
        self.wall = max(r["finished_s"] for r in records) - min(r["started_s"] for r in records)
        measured = [r["outcome"] for r in records if r["outcome"]["status"] == "measured"]
        self.measured = len(measured)
        self.per_minute = 60 * len(records) / self.wall
        self.share = sum(outcome["warmup_time_s"] + outcome["measure_time_s"] for outcome in measured) / self.wall

    def stages(self):
        return sorted({stage_of(record) for record in self.records})

    def micro_batches(self, stage, status):
        return [micro_batch_of(r) for r in self.records
                if stage_of(r) == stage and r["outcome"]["status"] == status]


def tuning_table(figures, torch_largest):
    lines = ["| what | figure | aim | verdict |", "|:--|--:|--:|:--|",
             f"| experiments (measured) | {len(figures.records)} ({figures.measured}) | | |",
             f"| wall time | {figures.wall:.1f} s | | |",
             f"| experiments per minute | {figures.per_minute:.1f} | | |",
             f"| share of the wall time in steps | {100 * figures.share:.1f} % | "
             f"{100 * SHARE:.0f} % | {'met' if figures.share >= SHARE else 'missed'} |", "",
             "| stage | largest micro-batch that ran | smallest that was out of memory | PyTorch's largest |",
             "|--:|--:|--:|--:|"]
    for stage in figures.stages():
        ran = figures.micro_batches(stage, "measured")
        did_not = figures.micro_batches(stage, "out_of_memory")
        lines.append(f"| {stage} | {max(ran, default='none')} | {min(did_not, default='none')} | {torch_largest} |")
    return "\n".join(lines)


def largest_that_fits(fits, most=1 << 16):
    """By doubling until one does not fit, then by halving the gap; 0 if 1 does not fit."""
    low, high = 0, 1
    while high <= most and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def growth(samples):
    """MiB from the second tenth of the samples to the last; None for fewer than 20."""
    if len(samples) < 20:
        return None
    tenth = len(samples) // 10
    return statistics.median(samples[-tenth:]) - statistics.median(samples[tenth:2 * tenth])


class MemoryWatch(threading.Thread):
    """Asks nvidia-smi again and again how much of the first GPU is in use."""

    def __init__(self):
        super().__init__(daemon=True)
        self.samples, self.ended = [], threading.Event()

    def run(self):
        command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"]
        while not self.ended.is_set():
            try:
                self.samples.append(int(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
            except (OSError, ValueError, subprocess.CalledProcessError):
                return
            self.ended.wait(0.2)

    def stop(self):
        self.ended.set()
        self.join()
        return self.samples


def tune(options, config, results):
    """The records of one run."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl_vader_single_copy_mechanism="none")
    command = [options.mpirun, "-np", "2", options.program, str(config), "--backend", options.backend,
               "--results-dir", str(results), "--overwrite"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {' '.join(last)}")
    with open(results / "journal.jsonl", encoding="utf-8") as journal:
        return finished_records(journal)


def torch_largest(options):
    """The largest micro-batch of gpt2-large, or why there is none to compare with."""
    if options.config or options.backend != "cuda":
        return "not asked"
    if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers")):
        return "no PyTorch"
    import compare_step_with_torch as compare
    side = compare.Torch(compare.parse(["-", "--model", "gpt2-large", "--steps", "1"]))
    return largest_that_fits(lambda micro_batch: side.step_times("gpt2-large", micro_batch)[0] is not None)


def memory_text(options, folder):
    """(a line about the memory after many experiments, whether the aim is met)"""
    config = dict(TINY, train_micro_batch_size_per_gpu=list(range(1, -(-options.experiments // 4) + 1)))
    path = folder / "many.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    watch = MemoryWatch()
    watch.start()
    records = tune(options, path, folder / "many")
    grown = growth(watch.stop())
    if grown is None:
        return f"Memory over {len(records)} experiments: not measured (no nvidia-smi, or too few samples)", True
    return (f"Memory over {len(records)} experiments: {grown:+.0f} MiB (aim 0): "
            f"{'met' if grown <= 0 else 'missed'}"), grown <= 0


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="dstune-mpi")
    parser.add_argument("--config", help="instead of gpt2-large")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--experiments", type=int, default=200)
    return parser.parse_args(arguments)


def report(options, folder):
    config = folder / "gpt2-large.json"
    config.write_text(json.dumps(GPT2_LARGE), encoding="utf-8")
    figures = Figures(tune(options, options.config or config, folder / "tuning"))
    print(tuning_table(figures, torch_largest(options)), flush=True)
    text, met = memory_text(options, folder)
    print(f"\n{text}")
    return 0 if met and figures.share >= SHARE else 1


def main():
    options = parse(sys.argv[1:])
    try:
        with tempfile.TemporaryDirectory() as folder:
            return report(options, pathlib.Path(folder))
    except (OSError, RuntimeError) as fault:
        print(f"gpu_tuning.py: {fault}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
