"""The config.json of what was tuned, as transformers reads it."""
import importlib
import json
import pathlib

from verify.tuned import InputFault, read_configuration

PUBLISHED = pathlib.Path(__file__).resolve().parent.parent / "published_configs"
ATTENTION = {None: None, "eager": "eager", "flash": "flash_attention_2"}
NOT_CONFIG = ("auto_class", "architectures", "transformers_version", "torch_dtype")
# Of ModelSpec: what says that a config.json is another model's, in the words of the families.
SIZES = {"vocab_size": ("vocab_size",), "n_embd": ("hidden_size", "n_embd", "d_model", "dim"),
         "n_layer": ("num_hidden_layers", "n_layer", "num_layers", "n_layers")}


def preset(name):
    """A published config.json by the last part of its name, or None."""
    for path in sorted(PUBLISHED.glob("*.json")):
        for published, config in json.loads(path.read_text(encoding="utf-8")).items():
            if published.split("/")[-1].lower() == name.lower():
                return dict({"model_type": path.stem}, **config)
    return None


def config_json(config, path):
    """The object that dstune.model of CONFIG.json at `path` stands for."""
    model = config.get("dstune", {}).get("model")
    if isinstance(model, dict):
        return {key: value for key, value in model.items() if key not in NOT_CONFIG}
    if not isinstance(model, str):
        raise InputFault(f"{path} has no dstune.model")
    for folder in (pathlib.Path(path).parent, pathlib.Path()):
        for candidate in (folder / model, folder / model / "config.json"):
            if candidate.is_file():
                return config_json({"dstune": {"model": read_configuration(candidate)}}, candidate)
    found = preset(model)
    if found is None:
        raise InputFault(f"dstune.model {model} is neither a file nor among scripts/published_configs: name its "
                         "config.json")
    return {key: value for key, value in found.items() if key not in NOT_CONFIG}


def check_sizes(model, spec):
    """That `model` is what was tuned, whose ModelSpec the journal has."""
    for key, names in SIZES.items():
        given = [model[name] for name in names if name in model]
        if given and given[0] != spec[key]:
            raise InputFault(f"dstune.model has {given[0]} for {key}, the tuned model had {spec[key]}: tune again, or "
                             "name the results of this file by --results")


def with_dropout_of(model, spec):
    """No dropout where it was tuned without."""
    if any(spec[key] for key in ("embd_pdrop", "attn_pdrop", "resid_pdrop")):
        return model
    names = ("embd_pdrop", "attn_pdrop", "resid_pdrop", "attention_dropout", "hidden_dropout", "hidden_dropout_prob",
             "attention_probs_dropout_prob", "dropout", "activation_dropout", "classifier_dropout", "dropout_rate",
             "summary_first_dropout", "seq_classif_dropout", "pooler_dropout", "cls_dropout")
    return dict(model, no_dropout=names)


def class_of(transformers, task, name=None):
    """(what makes a model of a config), by the task, or "MODULE:CLASS" of a trainer's own."""
    if name is not None:
        module, _, own = name.partition(":")
        return getattr(importlib.import_module(module), own)._from_config
    kind = {"masked_lm": "MaskedLM", "sequence_classification": "SequenceClassification",
            "seq2seq_lm": "Seq2SeqLM"}.get(task, "CausalLM")
    return getattr(transformers, f"AutoModelFor{kind}").from_config


def make(transformers, model, task, attention, own_class=None):
    """A fresh model with random weights in fp32, as AutoModel makes it; attention None is transformers' own choice. T5
    ties its head whatever the file says, and from_pretrained() unties what differs in the checkpoint: so it does where
    the file says that it is not tied."""
    model = dict(model)
    off, is_tied = model.pop("no_dropout", ()), model.get("tie_word_embeddings", True)
    config = transformers.AutoConfig.for_model(model.pop("model_type"), **model)
    for name in off:
        if getattr(config, name, None):
            setattr(config, name, 0.0)
    if hasattr(config, "use_cache"):
        config.use_cache = False
    made = class_of(transformers, task, own_class)(config, attn_implementation=ATTENTION[attention])
    if task == "seq2seq_lm" and not is_tied:
        head = made.get_output_embeddings()
        head.weight = type(head.weight)(head.weight.detach().clone())
    return made


def decays(transformers, torch, model):
    """Names of the parameters that Hugging Face's Trainer gives weight decay."""
    from transformers.trainer_pt_utils import get_parameter_names
    forbidden = [r"bias", r"layernorm", r"rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)"]
    return set(get_parameter_names(model, [torch.nn.LayerNorm], forbidden))


def trainers_optimizer(transformers, torch, model):
    """Of a file without an optimizer section: the Trainer's AdamW with its two groups."""
    names = decays(transformers, torch, model)
    parameters = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
    groups = [{"params": [each for name, each in parameters if name in names], "weight_decay": 0.0},
              {"params": [each for name, each in parameters if name not in names], "weight_decay": 0.0}]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=5e-5)
