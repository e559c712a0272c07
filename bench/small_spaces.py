"""Three small models of three families, and a space of 141 distinct configurations for each on two ranks."""

import json
import statistics

from measure_space import NO_END, launch

SIZES = {"vocab_size": 4096, "hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4,
         "max_position_embeddings": 128, "intermediate_size": 512}
MODELS = {
    "gpt2": {"model_type": "gpt2", "vocab_size": 4096, "n_positions": 128, "n_embd": 128, "n_layer": 4, "n_head": 4},
    "llama": {"model_type": "llama", **SIZES},
    "bert": {"model_type": "bert", **SIZES},
}
SPACE = {
    "/zero_optimization/reduce_bucket_size": ["4*h*h", 500_000_000],
    "/zero_optimization/overlap_comm": [False, True],
    "/zero_optimization/contiguous_gradients": [False, True],
    "z3": {"/zero_optimization/stage3_prefetch_bucket_size": [0, "4*h*h"],
           "/zero_optimization/stage3_param_persistence_threshold": [0, "16*h*h"]},
}


def tuning(model, tuner, space=None, seed=1, **autotuning):
    """A configuration without host overhead, so that every time in it is the machine's."""
    return {
        "train_micro_batch_size_per_gpu": [2, 4, 8], "zero_optimization": {"stage": "all"},
        "autotuning": {"enabled": True, **autotuning},
        "dstune": {"tuner": tuner, "model": MODELS[model], "sequence_length": 64, "memory_limit": "3GiB", "backend": "cpu",
                   "host_overhead": "none", "learnt": False, "warmup_steps": 1, "measure_steps": 5, "seed": seed,
                   "space": SPACE if space is None else space},
    }


def exhaustive(model, seed, **changes):
    """Every configuration once, in an order of its own."""
    return tuning(model, "random", seed=seed, tuner_num_trials=NO_END, tuner_early_stopping=NO_END, **changes)


def run(arguments, name, config, existing="--resume"):
    """Tunes in the folder NAME, with the results in results and all that was printed in log. @returns that folder"""
    folder = arguments.folder / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.json"
    path.write_text(json.dumps(config, indent=1), encoding="utf-8")
    with open(folder / "log", "w", encoding="utf-8") as log:
        if launch(arguments, "--results-dir", str(folder / "results"), existing, str(path), stdout=log, stderr=log) != 0:
            raise RuntimeError(f"{name} failed, see {folder / 'log'}")
    return folder


def finished(results, with_references=False):
    """The lines of the configurations that were measured, in order."""
    beside = ["measures_machine"] if with_references else ["measures_machine", "is_reference"]
    lines = [json.loads(line) for line in (results / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["type"] == "finished" and "step_time_s" in line["outcome"]
            and not any(line["experiment"].get(kind) for kind in beside)]


def samples_per_s(line):
    return line["outcome"]["samples_per_s"]


def level(rates):
    """What rates of a whole sweep are divided by, so that a machine that is faster at times does not count."""
    return statistics.geometric_mean(rates)
