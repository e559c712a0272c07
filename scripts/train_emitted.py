#!/usr/bin/env python3
"""Trains what `--emit` writes: two optimizer steps by the real Trainer and by accelerate.

    scripts/train_emitted.py PROGRAM [--cases NAME ...]

PROGRAM is dstune-mpi; mpirun must be on the PATH, and torch, transformers, accelerate, deepspeed and peft in the Python
that runs this. Each case is tuned on the simulated backend by two workers; its training_arguments_optimal.txt and its
accelerate_optimal.yaml then train the model on two CPU ranks. That the losses are finite, that two steps were made,
and that DeepSpeed's engine has the optimum's stage, batch and buckets is checked. Exit code 1 if anything is not so.
"""
import argparse
import json
import math
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import tempfile

RANKS, STEPS, SEQUENCE = 2, 2, 16
OPTIMIZER = {"optimizer": {"type": "AdamW", "params": {"lr": 3e-4, "weight_decay": 0.1}}}
BF16 = {"bf16": {"enabled": True}}
LLAMA = {"model_type": "llama", "vocab_size": 97, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
         "num_attention_heads": 2, "num_key_value_heads": 1, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
MODELS = {
    "gpt2": {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 2, "vocab_size": 97, "n_positions": 64,
             "bos_token_id": 1, "eos_token_id": 2},
    "llama": LLAMA, "qwen2": {**LLAMA, "model_type": "qwen2"},
    "opt": {"model_type": "opt", "vocab_size": 97, "hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 2,
            "num_attention_heads": 2, "max_position_embeddings": 64, "word_embed_proj_dim": 32},
    "gpt_neox": {"model_type": "gpt_neox", "vocab_size": 97, "hidden_size": 32, "intermediate_size": 64,
                 "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 64,
                 "bos_token_id": 1, "eos_token_id": 2}}
LORA = {"r": 4, "target_modules": ["q_proj", "v_proj"]}


def case(model, stage, root=None, zero=None, **dstune):
    return {"model": model, "config": {"zero_optimization": {"stage": stage, **(zero or {})}, **(root or {})},
            "dstune": dstune}


CASES = {
    "gpt2 z0": case("gpt2", 0), "gpt2 z1 bf16": case("gpt2", 1, BF16),
    "llama z2 bf16": case("llama", 2, {**BF16, "gradient_accumulation_steps": 2}),
    "llama z3 bf16": case("llama", 3, BF16, {"reduce_bucket_size": 4096, "stage3_prefetch_bucket_size": 2048}),
    "opt z2 lists": case("opt", 2, OPTIMIZER, {"contiguous_gradients": False, "overlap_comm": True}),
    "opt z3": case("opt", 3, {**OPTIMIZER, "gradient_accumulation_steps": 2}, {"stage3_max_live_parameters": 4096}),
    "qwen2 z3 checkpointing": case("qwen2", 3, BF16, activation_checkpointing=True),
    "llama z2 lora": case("llama", 2, BF16, lora=LORA),
    "llama z3 lora checkpointing": case("llama", 3, zero={"stage3_param_persistence_threshold": 100}, lora=LORA,
                                        activation_checkpointing=True),
    "gpt_neox z1": case("gpt_neox", 1, {"gradient_clipping": 0.5, "gradient_accumulation_steps": 3})}


def tune(program, each, folder):
    """The results folder of a tuning of each, with what `--emit` writes."""
    config = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1, **each["config"],
              "autotuning": {"enabled": True, "tuner_type": "gridsearch", "max_train_micro_batch_size_per_gpu": 4},
              "dstune": {"model": MODELS[each["model"]], "sequence_length": SEQUENCE, "memory_limit": "8GiB",
                         "backend": "sim", **each["dstune"]}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    subprocess.run(["mpirun", "--oversubscribe", "-n", str(RANKS + 1), program, "--emit", "accelerate", "--emit",
                    "transformers", "config.json"], cwd=folder, check=True, capture_output=True)
    return folder / "autotuning_results" / "latest"


def train(launcher, script_arguments, folder):
    """What the training wrote of itself: {"losses": [...], "engine": {...}}."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    environment = {**os.environ, "DS_ACCELERATOR": "cpu", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-m", *launcher, __file__, *script_arguments, str(report)], cwd=folder,
                          env=environment, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(what_failed(done.stdout + done.stderr))
    return json.loads(report.read_text(encoding="utf-8"))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def what_failed(output):
    """The last line of the first rank's traceback."""
    errors = [line for line in output.splitlines() if re.match(r"(\[rank\d+\]: )?[\w.]*(Error|Exception)\b", line)]
    return errors[0] if errors else "\n".join(output.splitlines()[-10:])


def faults_of(report, optimum):
    """What is otherwise than the optimum says, in words."""
    faults = []
    if len(report["losses"]) != STEPS or not all(map(math.isfinite, report["losses"])):
        faults.append(f"losses {report['losses']}")
    zero = optimum.get("zero_optimization", {})
    asked = {"stage": zero.get("stage", 0), "micro_batch": optimum["train_micro_batch_size_per_gpu"],
             "accumulation": optimum["gradient_accumulation_steps"], "bf16": "bf16" in optimum}
    if "reduce_bucket_size" in zero:
        asked["reduce_bucket_size"] = zero["reduce_bucket_size"]
    return faults + [f"{key} {report['engine'].get(key)}, not {value}" for key, value in asked.items()
                     if report["engine"].get(key) != value]


def check(program, each):
    """({"Trainer": faults, "accelerate": faults}, the optimum)"""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        results = tune(program, each, folder)
        optimum = json.loads((results / "ds_config_optimal.json").read_text(encoding="utf-8"))
        flags = shlex.split((results / "training_arguments_optimal.txt").read_text(encoding="utf-8"))
        described = json.dumps({"model": MODELS[each["model"]], "lora": each["dstune"].get("lora"),
                                "micro_batch": optimum["train_micro_batch_size_per_gpu"],
                                "checkpointing": each["dstune"].get("activation_checkpointing", False)})
        ways = {"Trainer": (["torch.distributed.run", "--nproc_per_node", str(RANKS),
                             "--master_port", str(free_port())],
                            ["trainer", described, *flags]),
                "accelerate": (["accelerate.commands.launch", "--config_file",
                                str(results / "accelerate_optimal.yaml"), "--main_process_port", str(free_port())],
                               ["accelerate", described])}
        faults = {}
        for way, (launcher, arguments) in ways.items():
            try:
                faults[way] = faults_of(train(launcher, arguments, folder), optimum)
            except RuntimeError as fault:
                faults[way] = [str(fault)]
        return faults, optimum


def engine_facts(engine):
    return {"stage": engine.zero_optimization_stage(), "micro_batch": engine.train_micro_batch_size_per_gpu(),
            "accumulation": engine.gradient_accumulation_steps(), "bf16": engine.bfloat16_enabled(),
            "reduce_bucket_size": engine.zero_reduce_bucket_size()}


def make_model(described):
    import transformers
    settings = dict(described["model"])
    config = transformers.AutoConfig.for_model(settings.pop("model_type"), **settings)
    model = transformers.AutoModelForCausalLM.from_config(config)
    if described["lora"]:
        import peft
        model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **described["lora"]))
    return model


def rows(count):
    import torch
    tokens = torch.randint(3, 97, (count, SEQUENCE), generator=torch.Generator().manual_seed(1))
    return [{"input_ids": row, "labels": row} for row in tokens]


def by_trainer(described, flags):
    import deepspeed
    import transformers
    more = ["--output_dir", "out", "--max_steps", str(STEPS), "--logging_steps", "1", "--report_to", "none",
            "--save_strategy", "no", "--use_cpu", "True"]
    if described["checkpointing"]:
        more += ["--gradient_checkpointing", "True"]
    arguments, = transformers.HfArgumentParser(transformers.TrainingArguments).parse_args_into_dataclasses(
        [*flags, *more])
    arguments.device  # joins the ranks, as what a script logs first does
    # On GPUs that was DeepSpeed's too; with --use_cpu it is not, and zero.Init would count one rank.
    deepspeed.init_distributed(verbose=False)
    trainer = transformers.Trainer(make_model(described), arguments, train_dataset=rows(64))
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return losses, trainer.model_wrapped


def by_accelerate(described):
    import accelerate
    import torch
    accelerator = accelerate.Accelerator()
    model = make_model(described)
    if described["checkpointing"]:
        model.gradient_checkpointing_enable()
    if described["checkpointing"] and described["lora"]:
        model.enable_input_require_grads()
    trained = [each for each in model.parameters() if each.requires_grad]
    in_json = "optimizer" in accelerator.state.deepspeed_plugin.deepspeed_config
    optimizer = accelerate.utils.DummyOptim(trained) if in_json else torch.optim.AdamW(trained, lr=1e-4)
    loader = torch.utils.data.DataLoader(rows(64), batch_size=described["micro_batch"])
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    losses, micro_steps, batches = [], [], iter(loader)
    while len(losses) < STEPS:
        with accelerator.accumulate(model):
            loss = model(**next(batches)).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        micro_steps.append(float(loss))
        if len(micro_steps) == accelerator.gradient_accumulation_steps:
            losses.append(sum(micro_steps) / len(micro_steps))
            micro_steps.clear()
    return losses, model


def trained_here(way, described, *rest):
    """On every rank, in the processes that the launchers start; rank 0 writes the report."""
    *flags, report = rest
    described = json.loads(described)
    losses, engine = by_trainer(described, flags) if way == "trainer" else by_accelerate(described)
    if int(os.environ.get("RANK", "0")) == 0:
        pathlib.Path(report).write_text(json.dumps({"losses": losses, "engine": engine_facts(engine)}))


def main(arguments):
    if arguments and arguments[0] in ("trainer", "accelerate"):
        trained_here(*arguments)
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    options = parser.parse_args(arguments)
    failed = False
    for name in options.cases:
        faults, optimum = check(str(options.program.resolve()), CASES[name])
        for way, found in faults.items():
            failed = failed or bool(found)
            print(f"{name}: {way}: {'; '.join(found) if found else 'trained'}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
