#!/usr/bin/env python3
"""Writes tests/data/trainers.json: what transformers and accelerate make of the trainers' files in tests/data/trainers.

    pip install torch transformers accelerate deepspeed && python3 scripts/make_trainer_fixture.py

Of each file: "processed", the DeepSpeed configuration when the Trainer (or the Accelerator) has filled it and before it
knows the model, and "finalized", the same for a model of a hidden size of 64. Files of TrainingArguments and of
LLaMA-Factory give their keys that TrainingArguments has to that class, and those of axolotl what its builder makes of them; those of
accelerate go through `accelerate launch` until it would start the program.

It also writes tests/data/trainers/arguments_zero3.json, a whole TrainingArguments.to_json_string(), and lists the
fields of TrainingArguments.
"""
import dataclasses
import json
import os
import pathlib
import types

os.environ.update(DS_ACCELERATOR="cpu", ACCELERATE_USE_CPU="true")

import accelerate
import transformers
import yaml
from accelerate.commands import launch
from accelerate.utils import DeepSpeedPlugin
from accelerate.utils.launch import prepare_deepspeed_cmd_env
from transformers.integrations.deepspeed import HfTrainerDeepSpeedConfig

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests/data/trainers"
HIDDEN_SIZE = 64
STEPS = 100
MODEL = types.SimpleNamespace(config=types.SimpleNamespace(hidden_size=HIDDEN_SIZE))
FIELDS = [field.name for field in dataclasses.fields(transformers.TrainingArguments) if field.init]


def without_infinity(config):
    """accelerate keeps DeepSpeed from printing by an infinity, which JSON lacks."""
    return {key: value for key, value in json.loads(json.dumps(config)).items() if key != "steps_per_print"}


def arguments_of(values):
    known = {key: value for key, value in values.items() if key in FIELDS and key != "deepspeed"}
    if isinstance(known.get("learning_rate"), str):  # PyYAML's "1e-4" is a text, OmegaConf's is none
        known["learning_rate"] = float(known["learning_rate"])
    return transformers.TrainingArguments(**known | {"use_cpu": True})


def arguments_of_axolotl(values):
    """As axolotl's core/builders/base.py makes them, on a device that has bf16."""
    fp16 = values.get("fp16", False)
    bf16 = values.get("bf16", "auto")
    same = ("adam_beta1", "adam_beta2", "adam_epsilon", "max_grad_norm", "gradient_accumulation_steps",
            "learning_rate", "output_dir", "weight_decay")
    return {"per_device_train_batch_size": values.get("micro_batch_size", 1),
            "fp16": fp16, "bf16": not fp16 if bf16 == "auto" else bf16,
            **{key: values[key] for key in same if key in values}}


def recorded_trainer(values):
    arguments = arguments_of(arguments_of_axolotl(values) if "base_model" in values else values)
    config = HfTrainerDeepSpeedConfig(values["deepspeed"])
    config.trainer_config_process(arguments)
    plugin = DeepSpeedPlugin(hf_ds_config=config)
    plugin.set_mixed_precision(arguments.mixed_precision)
    processed = without_infinity(plugin.deepspeed_config)
    config.trainer_config_finalize(arguments, MODEL, STEPS)
    return {"processed": processed, "finalized": without_infinity(config.config)}


def recorded_accelerate(path):
    parser = launch.launch_command_parser()
    arguments, defaults, has_precision = launch._validate_launch_command(
        parser.parse_args(["--config_file", str(path), "train.py"]))
    fields = list(defaults.deepspeed_config) + (["mixed_precision"] if has_precision else [])
    arguments.deepspeed_fields_from_accelerate_config = ",".join(fields)
    before = dict(os.environ)
    os.environ.update(prepare_deepspeed_cmd_env(arguments)[1])
    plugin = DeepSpeedPlugin()
    plugin.set_mixed_precision(os.environ["ACCELERATE_MIXED_PRECISION"])
    os.environ.clear()
    os.environ.update(before)
    return {"processed": without_infinity(plugin.deepspeed_config), "zero_init": plugin.zero3_init_flag}


def write_whole_arguments():
    arguments = transformers.TrainingArguments(
        output_dir="out", per_device_train_batch_size=1, gradient_accumulation_steps=16, learning_rate=1e-5, bf16=True,
        max_grad_norm=0.3, gradient_checkpointing=True, use_cpu=True, report_to="none")
    text = json.loads(arguments.to_json_string())
    text.update(deepspeed="ds_zero3.json", use_cpu=False)
    (FOLDER / "arguments_zero3.json").write_text(json.dumps(text, indent=1) + "\n")


def main():
    os.chdir(FOLDER)
    write_whole_arguments()
    cases = {}
    for path in sorted([*FOLDER.glob("arguments_*.json"), *FOLDER.glob("*.yaml")]):
        values = yaml.safe_load(path.read_text())
        is_accelerate = path.name.startswith("accelerate")
        cases[path.name] = recorded_accelerate(path) if is_accelerate else recorded_trainer(values)
    (ROOT / "tests/data/trainers.json").write_text(json.dumps(
        {"made_by": "scripts/make_trainer_fixture.py", "transformers": transformers.__version__,
         "accelerate": accelerate.__version__, "hidden_size": HIDDEN_SIZE, "fields": FIELDS, "cases": cases},
        indent=1) + "\n")


if __name__ == "__main__":
    main()
