"""What of a model is trained, how its loss is made, and which layers run again in backward: as dstune.lora, trainable,
loss and activation_checkpointing say."""
import fnmatch
import functools
import importlib
import re

FORMS = re.compile(r"(every|groups_of)_(\d+)_layers(_reentrant|_by_deepspeed)?")
LORA_KEYS = ("r", "lora_alpha", "use_rslora", "lora_dropout", "bias")
LORA_LISTS = ("target_modules", "exclude_modules", "layers_to_transform", "modules_to_save")  # empty: none
# Of Liger's kernels, what is no loss: dstune.loss "fused" is of the loss alone.
NOT_LOSS = ("rope", "rms_norm", "swiglu", "geglu", "layer_norm", "cross_entropy")


def way_of(ds_config):
    """(unit, layers in one, kind) of an experiment's activation checkpointing, or None: "every" second layer, or
    "groups_of" two; kind "" (not reentrant), "_reentrant" or "_by_deepspeed"."""
    form = ds_config.get("dstune", {}).get("activation_checkpointing", False)
    if isinstance(form, bool):
        return ("every", 1, "") if form else None
    found = FORMS.fullmatch(form)
    if found is None:
        raise ValueError(f"activation checkpointing {form} is not known")
    return found[1], int(found[2]), found[3] or ""


def lora_options(lora):
    """Of a ModelSpec's "lora", the arguments of PEFT's LoraConfig."""
    options = {key: lora[key] for key in LORA_KEYS if key in lora}
    return {**options, **{key: lora[key] for key in LORA_LISTS if lora.get(key)}}


def prepare(model, configuration, torch, deepspeed):
    """The model as it is given to DeepSpeed: with its loss, adapters, frozen parameters and checkpoints."""
    settings = configuration["settings"]
    spec, way = settings["model"], way_of(configuration["ds_config"])
    give_loss(model, settings.get("loss", "plain"))
    stacks = stacks_of(model, torch) if way is not None and way[0] == "groups_of" else []
    if way is not None and way[0] == "every":
        switch_on(model, way)
    if "trainable" in spec:
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(any(fnmatch.fnmatchcase(name, each) for each in spec["trainable"]))
    if "lora" in spec:
        peft = importlib.import_module("peft")
        task = {"task_type": "SEQ_CLS"} if spec.get("task") == "sequence_classification" else {}
        model = peft.get_peft_model(model, peft.LoraConfig(**lora_options(spec["lora"]), **task))
        if way is not None:
            model.enable_input_require_grads()
    if stacks:
        group(stacks, way, torch, deepspeed)
    return model.train()


def give_loss(model, loss):
    if loss == "tiled":
        from trl.trainer.utils import add_fused_lm_head
        add_fused_lm_head(model, outputs=("log_probs", "entropy", "is_top1"))
    elif loss == "fused":
        from liger_kernel.transformers import _apply_liger_kernel_to_instance
        _apply_liger_kernel_to_instance(model, fused_linear_cross_entropy=True, **dict.fromkeys(NOT_LOSS, False))


def options_of_forward(loss):
    return {"fused_lm_head": True} if loss == "tiled" else {}


def switch_on(model, way):
    kind = {"use_reentrant": way[2] == "_reentrant"}
    if way[1] == 1:
        model.gradient_checkpointing_enable(kind)
    else:
        model.activation_checkpointing_enable(kind, every_n_layers=way[1])


def stacks_of(model, torch):
    """The lists of the layers that transformers can checkpoint."""
    stacks = [list(module) for module in model.modules() if isinstance(module, torch.nn.ModuleList) and
              any(hasattr(each, "gradient_checkpointing") for each in module)]
    if not stacks:
        raise ValueError("the model has no layers to checkpoint")
    return stacks


def group(stacks, way, torch, deepspeed):
    """Has `way[1]` layers at a time checkpointed, in the place of the model's own loop over them: the first of a group
    runs them all, the others return what they are given. undo() ends it."""
    call, count = torch.nn.Module.__call__, way[1]
    groups = {id(layers[i]): layers[i:i + count] for layers in stacks for i in range(0, len(layers), count)}
    others = {id(layer) for layers in stacks for layer in layers} - set(groups)
    checkpoint = (deepspeed.checkpointing.checkpoint if way[2] == "_by_deepspeed" else
                  functools.partial(importlib.import_module("torch.utils.checkpoint").checkpoint,
                                    use_reentrant=way[2] == "_reentrant"))

    def run(members, arguments, options, hidden):
        for layer in members:
            out = call(layer, hidden, *arguments, **options)
            hidden = out[0] if isinstance(out, tuple) else out
        return hidden

    def call_module(self, *arguments, **options):
        if id(self) in groups:
            return checkpoint(functools.partial(run, groups[id(self)], arguments[1:], options), arguments[0])
        return arguments[0] if id(self) in others else call(self, *arguments, **options)

    torch.nn.Module.__call__ = call_module


def undo(torch):
    torch.nn.Module.__call__ = torch.nn.Module._wrapped_call_impl
