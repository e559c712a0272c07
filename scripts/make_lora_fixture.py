#!/usr/bin/env python3
"""Writes tests/data/lora.json: what PEFT trains of published models.

    pip install torch transformers peft && python3 scripts/make_lora_fixture.py

The models are those of scripts/published_configs, built on the meta device, `lora` is what
LoraConfig gets. A row has the numbers of get_nb_trainable_parameters(), how many tensors are
trained, and how many there are.
"""
import json
import pathlib

import peft
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
EVERY_LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
CLASSES = "AutoModelForSequenceClassification"
CASES = [
    ("llama", "meta-llama/llama-3.1-8b", dict(r=16, target_modules=EVERY_LINEAR)),
    ("llama", "meta-llama/llama-3.2-1b", dict(r=8, target_modules="all-linear")),
    ("llama", "TinyLlama/tinyllama-1.1b",
     dict(r=64, target_modules=["q_proj", "v_proj"], layers_to_transform=[19, 20, 21])),
    ("llama", "meta-llama/llama-2-7b", dict(modules_to_save=["embed_tokens", "lm_head"])),
    ("mistral", None, dict(r=32, target_modules=r".*self_attn\.(q|k|v|o)_proj")),
    ("qwen2", None, dict(target_modules=EVERY_LINEAR, exclude_modules=["up_proj"], bias="lora_only")),
    ("qwen3", None, dict(r=4)),
    ("gemma", None, dict()),
    ("gemma3_text", None, dict(target_modules="all-linear", modules_to_save=["norm"])),
    ("gpt2", "gpt2", dict()),
    ("gpt2", "gpt2-xl", dict(r=3, target_modules="all-linear", bias="all")),
    ("gpt_neox", "EleutherAI/pythia-410m", dict(target_modules="all-linear")),
    ("opt", "facebook/opt-350m", dict(target_modules="all-linear")),
    ("opt", "facebook/opt-125m", dict(bias="lora_only")),
    ("bert", "google-bert/bert-base-uncased", dict()),
    ("bert", "textattack/bert-base-uncased-SST-2", dict(r=2, bias="all")),
    ("roberta", None, dict(target_modules="all-linear")),
    ("distilbert", None, dict(target_modules=["q_lin", "v_lin"])),
]


def find(family, name):
    configs = json.loads((ROOT / f"scripts/published_configs/{family}.json").read_text(encoding="utf-8"))
    name = name or next(iter(configs))
    return name, dict(configs[name])


def count(family, name, lora):
    name, config = find(family, name)
    auto_class = config.pop("auto_class", "AutoModelForCausalLM")
    with torch.device("meta"):
        model = getattr(transformers, auto_class).from_config(transformers.AutoConfig.for_model(**config))
    task = dict(AutoModelForCausalLM="CAUSAL_LM", AutoModelForSequenceClassification="SEQ_CLS").get(auto_class)
    model = peft.get_peft_model(model, peft.LoraConfig(task_type=task, **lora))
    trained, whole = model.get_nb_trainable_parameters()
    tensors = [parameter.requires_grad for parameter in model.parameters()]
    return dict(name=name, auto_class=auto_class, lora=lora, trainable=trained, parameters=whole,
                trainable_tensors=sum(tensors), tensors=len(tensors), config=config)


def main():
    rows = [count(*case) for case in CASES]
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    text = (f'{{\n "made_by": "scripts/make_lora_fixture.py", "torch": "{torch.__version__}", '
            f'"transformers": "{transformers.__version__}", "peft": "{peft.__version__}",\n'
            f' "models": [\n{lines}\n ]\n}}\n')
    (ROOT / "tests/data/lora.json").write_text(text, encoding="utf-8")
    for row in rows:
        print(row["name"], row["trainable"], row["parameters"])


if __name__ == "__main__":
    main()
