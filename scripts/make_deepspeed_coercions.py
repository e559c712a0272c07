#!/usr/bin/env python3
"""Writes what the pydantic models of DeepSpeed make of values of the wrong type.

    pip install torch deepspeed==0.19.8
    python3 scripts/make_deepspeed_coercions.py tests/data/deepspeed_coercions.json
"""
import json
import logging
import pathlib
import sys

from make_deepspeed_keys import MODELS, deepspeed, nested_models, pydantic, text

# Values that files hold where another type was meant.
ODD_VALUES = [None, True, False, 0, 1, 2, 5, -1, 0.0, 1.0, 0.5, 5e8, 1e300, "", "true", "False", "yes",
              "off", "t", "N", "1", "0", " 1 ", "500000000", "5e8", "5.0", "1_000", "+2", "0.5",
              "nan", "inf", "1e", "0x10", "none", "cpu", "auto", "a text", [], ["a"], [1], {},
              {"a": 1}]


def outcome(model, key, value):
    """[what it becomes], "same", "dropped" or "refused"."""
    try:
        made = model(**{key: value})
    except Exception:  # noqa: BLE001
        return "refused"
    if value == "auto":
        return "dropped"
    name = next(n for n, field in model.model_fields.items() if key in (n, field.alias))
    got = made.__dict__.get(name, value)
    as_given = value is None or isinstance(got, (pydantic.BaseModel, pathlib.Path, list, dict))
    return "same" if as_given or got is value else [json.loads(json.dumps(got))]


def write_coercions(path, models):
    rows = {}
    for place, model in models.items():
        for name, field in model.model_fields.items():
            if (field.json_schema_extra or {}).get("deprecated"):
                continue
            key = field.alias or name
            results = json.dumps([outcome(model, key, value) for value in ODD_VALUES])
            rows.setdefault(results, []).append(f"/{place}/{key}")
    with open(path, "w") as out:
        out.write(f'{{"deepspeed": {text(deepspeed.__version__.split("+")[0])},\n "values": ')
        out.write(json.dumps(ODD_VALUES) + ',\n "fields": [')
        out.write(",".join(f'\n  {{"keys": {json.dumps(keys)},\n   "outcomes": {results}}}'
                           for results, keys in rows.items()))
        out.write("\n]}\n")


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    write_coercions(sys.argv[1], nested_models(MODELS))
