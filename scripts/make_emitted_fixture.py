#!/usr/bin/env python3
"""Makes tests/data/emitted_fixture.json: what `--emit` writes, as Accelerate and Transformers read it.

usage: scripts/make_emitted_fixture.py PROGRAM >tests/data/emitted_fixture.json

PROGRAM is build/default/dstune-mpi; mpirun must be on the PATH, and accelerate, transformers, torch and deepspeed
in the Python that runs this. Each case is tuned on the simulated backend by one worker; then the real parsers take the
files: `accelerate launch --config_file`, its DeepSpeedPlugin with the environment that the launcher sets, and
HfArgumentParser(TrainingArguments) with the flags. What they refuse ends this script.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

OPTIMIZER = {"type": "AdamW", "params": {"lr": 0.0003, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}}
AUTO_OPTIMIZER = {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}}
WARMUP = {"type": "WarmupLR", "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": 100}}

# DeepSpeed's JSON, and flags of the user's own that the Trainer must still accept.
CASES = [
    ({"zero_optimization": {"stage": 2}, "optimizer": OPTIMIZER, "gradient_clipping": 0.5}, []),
    ({"zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}, "bf16": {"enabled": True},
      "gradient_accumulation_steps": 2}, []),
    ({"zero_optimization": {"stage": 1}, "fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"},
      "optimizer": AUTO_OPTIMIZER, "gradient_clipping": "auto"}, ["--learning_rate", "0.0001", "--max_grad_norm", "2"]),
    ({"zero_optimization": {"stage": 0}, "optimizer": OPTIMIZER, "scheduler": WARMUP}, []),
]
PATH = "/results/ds_config_optimal.json"


def tune(program, config, folder):
    """The results folder of a tuning of one small model."""
    config = dict(config, autotuning={"tuner_num_trials": 2},
                  dstune={"model": {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 2, "vocab_size": 97},
                          "sequence_length": 32, "memory_limit": "8GiB", "backend": "sim"})
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    subprocess.run(["mpirun", "--oversubscribe", "-n", "2", program, "--emit", "accelerate", "--emit", "transformers",
                    "config.json"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / "autotuning_results" / "latest"


def accelerate_reads(yaml):
    """The command line's values after the launcher has taken the file, and what its plugin makes of it."""
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils.dataclasses import DeepSpeedPlugin
    from accelerate.utils.launch import prepare_deepspeed_cmd_env
    arguments = launch_command_parser().parse_args(["--config_file", str(yaml), "train.py"])
    arguments, defaults, _ = _validate_launch_command(arguments)
    assert arguments.use_deepspeed
    # As accelerate's launch_command does.
    arguments.deepspeed_fields_from_accelerate_config = ",".join(defaults.deepspeed_config)
    environment = prepare_deepspeed_cmd_env(arguments)[1]
    os.environ.update({name: value for name, value in environment.items() if name.startswith("ACCELERATE_")})
    plugin = DeepSpeedPlugin()
    plugin.set_mixed_precision(arguments.mixed_precision)
    return {"num_processes": arguments.num_processes, "num_machines": arguments.num_machines,
            "deepspeed_config_file": str(arguments.deepspeed_config_file), "zero_stage": plugin.zero_stage,
            "zero3_init_flag": plugin.zero3_init_flag,
            "gradient_accumulation_steps": plugin.gradient_accumulation_steps,
            "precision": [name for name in ("bf16", "fp16") if plugin.get_value(f"{name}.enabled")]}


def trainer_mismatches(flags):
    """What the Trainer would refuse; it refuses at the start of a training, with all mismatches."""
    from transformers import HfArgumentParser, TrainingArguments
    arguments, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(
        [*flags, "--output_dir", "out", "--use_cpu", "True"])
    class Model:
        class config:
            hidden_size = 32
    arguments.hf_deepspeed_config.trainer_config_finalize(arguments, Model, 1000)
    return arguments.hf_deepspeed_config.mismatches


def example(program, config, own_flags):
    with tempfile.TemporaryDirectory() as name:
        results = tune(program, config, pathlib.Path(name))
        optimum = results / "ds_config_optimal.json"
        flags = (results / "training_arguments_optimal.txt").read_text(encoding="utf-8")
        yaml = (results / "accelerate_optimal.yaml").read_text(encoding="utf-8")
        accelerate = accelerate_reads(results / "accelerate_optimal.yaml")
        accelerate["deepspeed_config_file"] = accelerate["deepspeed_config_file"].replace(str(optimum), PATH)
        return {"config": json.loads(optimum.read_text(encoding="utf-8")), "path": PATH,
                "training_arguments": flags.replace(str(optimum), PATH),
                "trainer_mismatches": trainer_mismatches([*shlex.split(flags), *own_flags]),
                "accelerate_yaml": yaml.replace(str(optimum), PATH), "accelerate": accelerate}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    program = str(parser.parse_args().program.resolve())
    import accelerate
    import transformers
    cases = [example(program, config, own_flags) for config, own_flags in CASES]
    fixture = {"accelerate": accelerate.__version__, "transformers": transformers.__version__, "cases": cases}
    json.dump(fixture, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
