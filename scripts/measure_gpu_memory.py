#!/usr/bin/env python3
"""Measures the peaks of the real DeepSpeed on one GPU that plays rank 0 of several.

    scripts/measure_gpu_memory.py [--configs NAME ...] [--write tests/data/deepspeed_gpu_memory.json]

Needs torch, transformers, deepspeed and a GPU. Collectives do nothing (torch's "fake" process group), so one GPU has
the memory of a rank of any group, and whatever a gathered tensor holds is random: losses mean nothing. Each
configuration is trained by a process of its own, since an engine that is destroyed leaves memory behind. The peak is
what torch's allocator was asked for in the last of five steps; `workspaces_bytes` of it are cuBLAS's, which torch
allocates for two threads, and 1 MiB of cuBLASLt's where a product has a bias: what they are on Hopper, not measured. The
file is written only if all that was asked for ran. Eleven rows of it were measured together on an H200.

--trial runs tiny models on the CPU to see that the script works: no peaks.
"""
import argparse
import gc
import json
import os
import subprocess
import sys

STEPS = 5
MIB = 1 << 20
NO_DROPOUT = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
MODELS = {
    "gpt2": dict(model_type="gpt2", vocab_size=50257, n_positions=1024, n_embd=768, n_layer=12, n_head=12, **NO_DROPOUT),
    "gpt2-medium": dict(model_type="gpt2", vocab_size=50257, n_positions=1024, n_embd=1024, n_layer=24, n_head=16,
                        **NO_DROPOUT),
    "llama-1b": dict(model_type="llama", vocab_size=128256, hidden_size=2048, intermediate_size=8192,
                     num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, head_dim=64,
                     max_position_embeddings=2048, tie_word_embeddings=True),
}
TINY = {"gpt2": dict(vocab_size=64, n_embd=32, n_layer=1, n_head=2),
        "llama": dict(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
                      num_key_value_heads=2, head_dim=16)}
CLASSES = {"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM"}
BATCHES = {"gpt2": 16, "gpt2-medium": 4, "llama-1b": 2}
RANKS = {"gpt2": 1, "gpt2-medium": 8, "llama-1b": 8}
SEQUENCE = 1024


def cases():
    """name: (model, zero_optimization, checkpointing)"""
    found = {}

    def add(model, what, zero, checkpointing=False):
        found[f"{model} {what}, {RANKS[model]} rank{'s' if RANKS[model] > 1 else ''}"] = (model, zero, checkpointing)

    for model in MODELS:
        for stage in (0, 1, 2, 3):
            add(model, f"z{stage}", {"stage": stage})
        for stage in (2, 3):
            add(model, f"z{stage} checkpointing", {"stage": stage}, True)
        add(model, "z2 overlap_comm", {"stage": 2, "overlap_comm": True})
        add(model, "z3 no overlap_comm", {"stage": 3, "overlap_comm": False})
        add(model, "z3 live 1e8", {"stage": 3, "stage3_max_live_parameters": 1e8, "stage3_max_reuse_distance": 1e8})
        add(model, "z3 no prefetch", {"stage": 3, "stage3_prefetch_bucket_size": 0})
    return found


def ds_config_of(model, zero):
    return {"train_micro_batch_size_per_gpu": BATCHES[model], "gradient_accumulation_steps": 1,
            "gradient_clipping": 1.0, "bf16": {"enabled": True}, "zero_optimization": zero,
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}


class Rank:
    """Rank 0 of `ranks`, in a process of its own."""

    def __init__(self, ranks, trial):
        os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(ranks), DS_ACCELERATOR="cpu" if trial else "cuda")
        import torch
        import transformers
        from torch.testing._internal.distributed.fake_pg import FakeStore
        torch.distributed.init_process_group(backend="fake", rank=0, world_size=ranks, store=FakeStore())
        import deepspeed
        deepspeed.init_distributed(dist_backend="fake", verbose=False)
        self.torch, self.transformers, self.deepspeed = torch, transformers, deepspeed
        self.ranks, self.trial, self.device = ranks, trial, "cpu" if trial else "cuda"

    def model(self, name, ds_config, checkpointing):
        settings = dict(MODELS[name])
        kind = settings.pop("model_type")
        if self.trial:
            settings.update(TINY[kind])
        config = self.transformers.AutoConfig.for_model(kind, use_cache=False, attn_implementation="sdpa", **settings)
        model_class = getattr(self.transformers, CLASSES[kind])  # AutoModel's way is another under zero.Init
        if ds_config["zero_optimization"]["stage"] == 3:
            with self.deepspeed.zero.Init(config_dict_or_path=ds_config, dtype=self.torch.bfloat16):
                model = model_class(config)
        else:
            model = model_class(config).to(self.device, self.torch.bfloat16)
        if checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        return model.train()

    def peak_bytes(self, name, zero, checkpointing):
        ds_config = ds_config_of(name, zero)
        ds_config["train_batch_size"] = BATCHES[name] * self.ranks
        if self.trial:
            ds_config["optimizer"]["params"]["torch_adam"] = True
        model = self.model(name, ds_config, checkpointing)
        engine, *_ = self.deepspeed.initialize(model=model, config=ds_config, model_parameters=model.parameters())
        length = 8 if self.trial else SEQUENCE
        tokens = self.torch.randint(0, model.config.vocab_size, (BATCHES[name], length), device=self.device)
        peak = 0
        for _ in range(STEPS):
            gc.collect()
            if not self.trial:
                self.torch.cuda.synchronize()
                self.torch.cuda.reset_peak_memory_stats()
            loss = engine(input_ids=tokens, labels=tokens).loss
            engine.backward(loss)
            loss = None
            engine.step()
            if not self.trial:
                self.torch.cuda.synchronize()
                peak = self.torch.cuda.memory_stats()["requested_bytes.all.peak"]
        return peak

    def row(self, case):
        name, zero, checkpointing = cases()[case]
        return {"name": case, "model": name, "ranks": self.ranks, "sequence_length": SEQUENCE, "attention": "sdpa",
                "keep_logits": False, "checkpointing": checkpointing, "ds_config": ds_config_of(name, zero),
                "deepspeed_bytes": self.peak_bytes(name, zero, checkpointing),
                "workspaces_bytes": (65 if name.startswith("gpt2") else 64) * MIB}

    def about(self):
        device = "cpu" if self.trial else self.torch.cuda.get_device_name()
        return {"device": device, "deepspeed": self.deepspeed.__version__, "torch": self.torch.__version__,
                "transformers": self.transformers.__version__}


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--configs", nargs="+", metavar="NAME", choices=list(cases()), default=list(cases()))
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--trial", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.trial and options.write:
        parser.error("--trial measures nothing to write")
    return options


def measured(options, case):
    command = [sys.executable, __file__, "--one", case]
    done = subprocess.run(command + (["--trial"] if options.trial else []), stdout=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        print(f"{case}: exit code {done.returncode}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def main():
    options = parse(sys.argv[1:])
    if options.one:
        rank = Rank(RANKS[cases()[options.one][0]], options.trial)
        print(json.dumps({"about": rank.about(), "row": rank.row(options.one)}), flush=True)
        return 0
    found = [each for each in (measured(options, case) for case in options.configs) if each]
    for each in found:
        print(f"{each['row']['name']}: {each['row']['deepspeed_bytes']:,} bytes")
    if options.write and len(found) == len(options.configs):
        with open(options.write, "w", encoding="utf-8") as file:
            json.dump(dict(found[0]["about"], models=MODELS, rows=[each["row"] for each in found]), file, indent=1)
            file.write("\n")
    return 0 if len(found) == len(options.configs) else 1


if __name__ == "__main__":
    sys.exit(main())
