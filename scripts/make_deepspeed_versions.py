#!/usr/bin/env python3
"""Writes the default of every key in every release of DeepSpeed, as each release itself tells.

    pip download --no-deps --no-build-isolation --no-binary :all: deepspeed==0.15.4   # and others; unpack them
    python3 scripts/make_deepspeed_versions.py tests/data/deepspeed_versions.json deepspeed-0.15.4 ...

Needs torch, and pydantic; nothing is installed or compiled. Each folder is a release's sources, an unpacked
sdist or a checkout of its tag, and called deepspeed-VERSION. A key stands in the file with the releases from which on its default is
another: {"/gradient_clipping": {"0.15.0": 0.0, "0.19.3": 1.0}}; "absent" is a key that a release does not read.
Sections that a release reads as pydantic models are asked for their fields; what it reads from plain
dictionaries is seen by handing it dictionaries that write down which keys it asks for.
"""
import json
import logging
import os
import pathlib
import subprocess
import sys

ABSENT = "absent"
SECTIONS = ("zero_optimization", "fp16", "bf16", "activation_checkpointing", "flops_profiler", "data_types",
            "comms_logger", "timers", "compile", "torch_autocast", "checkpoint", "aio")
BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "steps_per_print")


class Seen(dict):
    """A dictionary that writes down the defaults of what it is asked for."""

    def __init__(self, content, log, place=""):
        super().__init__({key: Seen(value, log, f"{place}/{key}") if isinstance(value, dict) else value
                          for key, value in content.items()})
        self.log, self.place = log, place

    def get(self, key, default=None):
        self.log.setdefault(f"{self.place}/{key}", default)
        return super().get(key, default)

    def __copy__(self):
        return self


def plain(value):
    """A default as JSON, or None for what is none (a class, a path, ...)."""
    value = getattr(value, "value", value)
    return value if isinstance(value, (bool, int, float, str)) else None


def fields_of(model, place):
    import pydantic
    found = {}
    for name, field in model.model_fields.items():
        here = f"{place}/{field.alias or name}"
        kinds = [kind for kind in (field.annotation, *getattr(field.annotation, "__args__", ()))
                 if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)]
        for kind in kinds:
            found.update(fields_of(kind, here))
        if not kinds:
            found[here] = plain(field.get_default(call_default_factory=True))
    return found


def precision_models():
    try:
        from deepspeed.runtime.precision_config import DeepSpeedBF16Config, DeepSpeedFP16Config
        return {"/fp16": DeepSpeedFP16Config, "/bf16": DeepSpeedBF16Config}
    except ImportError:
        return {}


def defaults():
    """Of the release that is imported: {pointer: default}."""
    from deepspeed.runtime import config as ds
    from deepspeed.runtime.zero.config import DeepSpeedZeroConfig
    found, log = {}, {}
    for precision in ({"fp16": {"enabled": True, "initial_scale_power": 16}}, {"bf16": {"enabled": True}}):
        full = {"train_batch_size": 1, **precision}
        full.update({section: {} for section in SECTIONS if section not in ("fp16", "bf16", "aio")})
        ds.DeepSpeedConfig(Seen(full, log))
    # Only given so that the others are asked for.
    log.update({"/fp16/enabled": False, "/fp16/initial_scale_power": 16, "/bf16/enabled": False})
    for pointer, default in log.items():
        parts = pointer.split("/")
        if len(parts) == 2 and (parts[1] in SECTIONS or parts[1] in BATCH):
            continue
        if len(parts) == 2 or parts[1] in SECTIONS:
            found[pointer] = plain(default)
    for place, model in {"/zero_optimization": DeepSpeedZeroConfig, **precision_models()}.items():
        found.update(fields_of(model, place))
    return found


def version_key(version):
    return tuple(int(part) for part in version.split("."))


def ask(folder):
    """What the release in `folder` answers, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(folder.resolve()), "DS_ACCELERATOR": "cpu"}
    done = subprocess.run([sys.executable, __file__, "--defaults"], env=environment, check=True,
                          stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def histories(releases):
    """{version: {pointer: default}} as {pointer: {version: default from there on}}."""
    versions = sorted(releases, key=version_key)
    pointers = sorted({pointer for found in releases.values() for pointer in found})
    table = {}
    for pointer in pointers:
        history = {}
        for version in versions:
            default = releases[version].get(pointer, ABSENT)
            last = list(history.values())[-1:]
            if not last or json.dumps(last[0]) != json.dumps(default):
                history[version] = default
        table[pointer] = history
    return table


def main():
    if sys.argv[1:] == ["--defaults"]:
        logging.disable(logging.WARNING)
        print(json.dumps(defaults()))
        return
    out, folders = sys.argv[1], [pathlib.Path(name) for name in sys.argv[2:]]
    releases = {folder.name.removeprefix("deepspeed-"): ask(folder) for folder in folders}
    table = histories(releases)
    lines = [f'{json.dumps(pointer)}: {json.dumps(history)}' for pointer, history in table.items()]
    versions = json.dumps(sorted(releases, key=version_key))
    pathlib.Path(out).write_text('{"versions": ' + versions + ',\n"defaults": {\n' + ",\n".join(lines) + "\n}}\n")


if __name__ == "__main__":
    main()
