#!/usr/bin/env python3
"""Writes tests/data/totals/FAMILY.json: how many parameters published models have.

    pip install torch transformers && python3 scripts/make_totals_fixture.py [FAMILY...]

scripts/published_configs/FAMILY.json has, by the names of Hugging Face's hub, what the models'
config.json files say; `auto_class` (default AutoModelForCausalLM) is not a key of theirs. The models
are built by transformers on the meta device, so nothing is allocated and nothing is downloaded.
"""
import json
import pathlib
import sys

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFIGS = ROOT / "scripts/published_configs"
FIXTURES = ROOT / "tests/data/totals"


def count(name, config):
    config = dict(config)
    auto_class = config.pop("auto_class", "AutoModelForCausalLM")
    with torch.device("meta"):
        model = getattr(transformers, auto_class).from_config(transformers.AutoConfig.for_model(**config))
    if auto_class == "AutoModelForSeq2SeqLM" and config.get("tie_word_embeddings") is False:
        # Their checkpoints have a head of its own, which from_pretrained() does not tie.
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    sizes = [parameter.numel() for parameter in model.parameters()]
    row = dict(name=name, parameters=sum(sizes), tensors=len(sizes))
    if auto_class != "AutoModelForCausalLM":
        row["auto_class"] = auto_class
    return dict(row, config=config)


def main(families):
    FIXTURES.mkdir(parents=True, exist_ok=True)
    for family in families or sorted(path.stem for path in CONFIGS.glob("*.json")):
        configs = json.loads((CONFIGS / f"{family}.json").read_text(encoding="utf-8"))
        rows = [count(name, config) for name, config in configs.items()]
        lines = ",\n".join("  " + json.dumps(row) for row in rows)
        text = (f'{{\n "made_by": "scripts/make_totals_fixture.py", "torch": "{torch.__version__}", '
                f'"transformers": "{transformers.__version__}",\n "models": [\n{lines}\n ]\n}}\n')
        (FIXTURES / f"{family}.json").write_text(text, encoding="utf-8")
        for row in rows:
            print(row["name"], row["parameters"])


if __name__ == "__main__":
    main(sys.argv[1:])
