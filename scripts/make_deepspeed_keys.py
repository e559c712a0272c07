#!/usr/bin/env python3
"""Writes the keys that DeepSpeed reads, as DeepSpeed itself tells.

    pip install torch deepspeed==0.19.8
    python3 scripts/make_deepspeed_keys.py src/core/config/deepspeed/deepspeed_table.hpp

Sections that are pydantic models are listed from the models. What DeepSpeed reads from plain
dictionaries is listed by handing it dictionaries that write down which keys it asks for.
"""
import enum
import json
import logging
import os
import pathlib
import sys
import typing

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed  # noqa: E402
import pydantic  # noqa: E402
from deepspeed.comm.config import CommsLoggerConfig  # noqa: E402
from deepspeed.compile.config import CompileConfig  # noqa: E402
from deepspeed.inference.config import WeightQuantConfig  # noqa: E402
from deepspeed.monitor.config import DeepSpeedMonitorConfig  # noqa: E402
from deepspeed.runtime import config as ds  # noqa: E402
from deepspeed.runtime.config_utils import DeepSpeedConfigModel  # noqa: E402
from deepspeed.runtime.precision_config import DeepSpeedBF16Config, DeepSpeedFP16Config  # noqa: E402
from deepspeed.runtime.tensor_parallel.config import TPTrainingConfig  # noqa: E402
from deepspeed.runtime.zero.config import DeepSpeedZeroConfig  # noqa: E402
from deepspeed.utils.config import DeepSpeedThroughputTimerConfig  # noqa: E402

MONITORS = {name: field.annotation for name, field in DeepSpeedMonitorConfig.model_fields.items()}
MODELS = {
    "zero_optimization": DeepSpeedZeroConfig, "fp16": DeepSpeedFP16Config,
    "bf16": DeepSpeedBF16Config, "comms_logger": CommsLoggerConfig, "compile": CompileConfig,
    "hybrid_engine": ds.HybridEngineConfig, "tensor_parallel": TPTrainingConfig,
    "weight_quantization": WeightQuantConfig, "timers/throughput": DeepSpeedThroughputTimerConfig,
    **MONITORS,
}
# Whatever makes DeepSpeed look further into the sections that it reads as dictionaries.
FULL = {
    "train_batch_size": 1, "optimizer": {"type": "Adam", "params": {}},
    "scheduler": {"type": "WarmupLR", "params": {}}, "activation_checkpointing": {},
    "flops_profiler": {}, "aio": {}, "data_types": {}, "torch_autocast": {}, "timers": {},
    "checkpoint": {"writer": {}, "parallel_write": {}}, "expert_parallel": {"enabled": False},
    "data_efficiency": {"data_sampling": {"curriculum_learning": {}, "dynamic_batching": {}},
                        "data_routing": {"random_ltd": {}}},
    "autotuning": {},
}
UNKNOWN = object()  # the default of a key that is only looked for with `in`

class Seen(dict):
    """A dictionary that writes down what it is asked for, with the default."""

    def __init__(self, content, log, place):
        super().__init__({key: Seen(value, log, f"{place}/{key}") if isinstance(value, dict) else value
                          for key, value in content.items()})
        self.log, self.place = log, place

    def note(self, key, default=UNKNOWN):
        keys = self.log.setdefault(self.place, {})
        if keys.get(key, UNKNOWN) is UNKNOWN:
            keys[key] = default

    def get(self, key, default=None):
        self.note(key, default)
        return super().get(key, default)

    def __contains__(self, key):
        self.note(key)
        return super().__contains__(key)

    def keys(self):
        return self

    def __copy__(self):
        return self


def text(value):
    return json.dumps(str(value))


def bound(field, kind):
    for rule in field.metadata:
        if getattr(rule, kind, None) is not None:
            return getattr(rule, kind)
    return None


def numeric(name, field, whole):
    low, above, high = bound(field, "ge"), bound(field, "gt"), bound(field, "le")
    if whole:
        smallest = above + 1 if above is not None else low
        return f"integer({text(name)}, {'kLowest' if smallest is None else smallest})"
    if high is not None:
        return f"within({text(name)}, {low}, {high})"
    if bound(field, "lt") is not None:
        return f"between({text(name)}, {above}, {bound(field, 'lt')})"
    return f"number({text(name)})" if low is None else f"at_least({text(name)}, {low})"


def kind_rule(name, kind, field):
    origin = typing.get_origin(kind)
    if kind is bool:
        return f"boolean({text(name)})"
    if kind in (int, float):
        return numeric(name, field, kind is int)
    if kind in (str, pathlib.Path):
        return f"any_text({text(name)})"
    if origin is typing.Literal:
        return f"choice({text(name)}, {text('|'.join(typing.get_args(kind)))})"
    if isinstance(kind, type) and issubclass(kind, enum.Enum) and issubclass(kind, str):
        return f"choice({text(name)}, {text('|'.join(member.value for member in kind))})"
    if isinstance(kind, type) and issubclass(kind, enum.Enum) and issubclass(kind, int):
        numbers = [member.value for member in kind]
        return f"integer({text(name)}, {min(numbers)}, {max(numbers)})"
    if origin is list and typing.get_args(kind)[0] is str:
        return f"texts({text(name)})"
    if origin is list and typing.get_origin(typing.get_args(kind)[0]) is typing.Literal:
        return f"texts({text(name)}, {text('|'.join(typing.get_args(typing.get_args(kind)[0])))})"
    if kind is list or origin is list:
        return f"list({text(name)})"
    if kind is dict or origin is dict or isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
        return f"object({text(name)})"
    return f"any({text(name)})"


def inner_type(annotation):
    """The type inside Optional[...], and whether there is one."""
    arms = [arm for arm in typing.get_args(annotation) if arm is not type(None)]
    if typing.get_origin(annotation) is typing.Union and len(arms) < len(typing.get_args(annotation)):
        return arms[0] if len(arms) == 1 else typing.Union[tuple(arms)], True
    return annotation, False


def model_rule(name, field):
    kind, nullable = inner_type(field.annotation)
    rule = kind_rule(field.alias or name, kind, field)
    rule += f".also({text(name)})" if field.alias else ""
    return rule + (".or_null()" if nullable else "")


def nested_models(models):
    found = dict(models)
    for place, model in models.items():
        for name, field in model.model_fields.items():
            kind, _ = inner_type(field.annotation)
            if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
                found.update(nested_models({f"{place}/{field.alias or name}": kind}))
    return found


def plain_rule(name, default, is_section):
    if is_section:
        return f"object({text(name)})"
    for kind, rule in ((bool, "boolean({})"), (int, "integer({}, kLowest)"), (float, "number({})"),
                       (str, "any_text({})"), (list, "list({})"), (dict, "object({})")):
        if isinstance(default, kind):
            return rule.format(text(name))
    return f"any({text(name)})"


def read_keys():
    """All that DeepSpeed asks dictionaries for: {place: {key: default}}."""
    log = {}
    ds.DeepSpeedConfig(Seen(FULL, log, ""))
    log.pop("/autotuning")  # autotuning_section.cpp knows them: they are what this program does
    for key in ("zero_optimization", *ds._REMOVED_TOP_LEVEL_CONFIG_KEYS):
        log[""].pop(key)
    return log


def accepts(config):
    try:
        ds.DeepSpeedConfig(config)
        return True
    except Exception:  # noqa: BLE001: whatever it is, DeepSpeed does not start
        return False


def null_is_absent(key):
    return accepts({"train_batch_size": 1, key: None})


def table_name(place):
    return "k" + "".join(part.capitalize() for part in place.replace("/", "_").split("_")) if place else "kTop"


def plain_tables(log):
    tables = {}
    for place, keys in sorted(log.items()):
        rules = []
        for key, default in keys.items():
            child = f"{place}/{key}"
            is_section = child in log or child.lstrip("/") in MODELS or key == "autotuning"
            if key == "bfloat16":
                continue  # another name of bf16
            rule = plain_rule(key, default, is_section)
            if not place and is_section and null_is_absent(key):
                rule += ".or_null()"
            rules.append(rule)
        tables[place.lstrip("/")] = rules
    tables[""].insert(0, 'object("zero_optimization")')
    tables[""] = [rule.replace('object("bf16")', 'object("bf16").also("bfloat16")') for rule in tables[""]]
    return tables


HEAD = """// Every key that DeepSpeed {version} reads. Made by scripts/make_deepspeed_keys.py: do not edit.
#pragma once

#include "core/input/key_rules.hpp"

// clang-format off
namespace dstune::deepspeed_table {{

using namespace rules;  // NOLINT(google-build-using-namespace,google-global-names-in-headers)

inline constexpr std::string_view kVersion = "{version}";
inline constexpr std::string_view kUnknown =
    "is not known to DeepSpeed {version}; passed on, not modelled";

/// Keys of earlier versions: a file with one of them is refused, whatever its value.
inline constexpr std::string_view kRemovedAtTop[] = {{{top}}};
inline constexpr std::string_view kRemovedInZero[] = {{{zero}}};

/// Keys that DeepSpeed replaces itself: {{old, new}}.
inline constexpr std::string_view kDeprecatedInZero[][2] = {{{deprecated}}};

"""


def quoted(words):
    return "\n    " + "\n    ".join(packed([text(word) for word in words])) + "\n"


def deprecated_keys(model):
    pairs = []
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra or {}
        if extra.get("deprecated") and extra.get("set_new_param", True):
            new = model.model_fields[extra["new_param"]].alias or extra["new_param"]
            pairs.append(f"{{{text(name)}, {text(new)}}}")
    return "\n    " + "\n    ".join(packed(pairs)) + "\n"


def packed(rules, width=94):
    """Rules with a comma each, as many to a line as fit."""
    lines = [""]
    for rule in rules:
        if lines[-1] and len(lines[-1]) + len(rule) + 2 > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + rule + ","
    return lines


def write_table(path, tables):
    top, zero = ds._REMOVED_TOP_LEVEL_CONFIG_KEYS, ds._REMOVED_ZERO_CONFIG_KEYS
    with open(path, "w") as out:
        out.write(HEAD.format(version=deepspeed.__version__.split("+")[0], top=quoted(top),
                              zero=quoted(zero), deprecated=deprecated_keys(DeepSpeedZeroConfig)))
        for place, rules in tables.items():
            out.write(f"/// /{place}\ninline constexpr KeyRule {table_name(place)}[] = {{\n")
            out.writelines(f"    {line}\n" for line in packed(rules))
            out.write("};\n")
        out.write("\n}  // namespace dstune::deepspeed_table\n// clang-format on\n")


def main():
    logging.disable(logging.WARNING)
    models = nested_models(MODELS)
    tables = {place: [model_rule(*item) for item in model.model_fields.items()]
              for place, model in models.items()}
    write_table(sys.argv[1], {**tables, **plain_tables(read_keys())})


if __name__ == "__main__":
    main()
