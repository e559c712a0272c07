#!/usr/bin/env python3
"""Times whole optimizer steps of small models on one CPU rank beside PyTorch's, in turn in one run.

    bench/step_beside_torch.py build/default/bench/steps_on_request [--models gpt2 llama ...] [--types fp32 bf16]

Both train the same config.json with as many threads, bf16 with fp32 master weights: forward, backward, the norm of the gradients
clipped to 1, AdamW (PyTorch's fused one). PyTorch's model is transformers', with sdpa and without cache and
dropout. A round is a step of each; what is printed is processor time, since what else the machine does
costs turns: medians and minima over the rounds, and the ratio of ours over PyTorch's (aim: 1 or less).
Exit codes: 0 measured, 1 a ratio of medians above --most, 2 wrong usage or a failed program.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

SHARED = dict(vocab_size=8192, hidden_size=512, num_hidden_layers=6, num_attention_heads=8)
MODELS = {
    "gpt2": dict(model_type="gpt2", vocab_size=8192, n_embd=512, n_layer=6, n_head=8, n_positions=512,
                 resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
    "llama": dict(SHARED, model_type="llama", intermediate_size=1408, num_key_value_heads=4,
                  max_position_embeddings=512),
    "bert": dict(SHARED, model_type="bert", intermediate_size=2048, max_position_embeddings=512,
                 hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
    "mixtral": dict(SHARED, model_type="mixtral", num_hidden_layers=3, intermediate_size=704,
                    num_key_value_heads=4, num_local_experts=4, num_experts_per_tok=2,
                    max_position_embeddings=512),
}
WARM_UP = 2


class Ours:
    """The program, a step for every line that it is sent."""

    def __init__(self, options, folder, dtype):
        command = [options.program, folder, str(options.micro_batch), str(options.sequence), str(options.threads),
                   dtype]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def step(self):
        try:
            self.process.stdin.write("step\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"steps_on_request: exit code {self.process.wait()}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Theirs:
    """transformers' model of the same configuration."""

    def __init__(self, options, config, dtype):
        import torch
        import transformers
        self.torch, self.options = torch, options
        torch.set_num_threads(options.threads)
        torch.manual_seed(1)
        made = transformers.AutoConfig.for_model(**config)
        self.masks = made.model_type == "bert"
        kind = transformers.AutoModelForMaskedLM if self.masks else transformers.AutoModelForCausalLM
        types = {"fp32": torch.float32, "bf16": torch.bfloat16}
        self.model = kind.from_config(made, attn_implementation="sdpa", dtype=types[dtype]).train()
        self.parameters = list(self.model.parameters())
        self.masters = self.parameters
        if dtype != "fp32":
            self.masters = [parameter.detach().float() for parameter in self.parameters]
        self.optimizer = torch.optim.AdamW(self.masters, lr=1e-4, weight_decay=0.01, fused=True)

    def batch(self):
        torch, shape = self.torch, (self.options.micro_batch, self.options.sequence)
        tokens = torch.randint(0, self.model.config.vocab_size, shape)
        if not self.masks:
            return dict(input_ids=tokens, labels=tokens, use_cache=False)
        labels = torch.where(torch.rand(shape) < 0.15, tokens, -100)
        return dict(input_ids=tokens, labels=labels)

    def step(self):
        begin = time.process_time()
        loss = self.model(**self.batch()).loss
        loss.backward()
        self.update()
        return {"cpu_s": time.process_time() - begin, "loss": float(loss.detach())}

    def update(self):
        if self.masters is not self.parameters:
            for master, parameter in zip(self.masters, self.parameters):
                master.grad = parameter.grad.float()
        self.torch.nn.utils.clip_grad_norm_(self.masters, 1.0)
        self.optimizer.step()
        if self.masters is not self.parameters:
            with self.torch.no_grad():
                self.torch._foreach_copy_(self.parameters, self.masters)
        self.optimizer.zero_grad(set_to_none=True)
        self.model.zero_grad(set_to_none=True)


def measured(options, name, dtype):
    """(ours, theirs): what each step said."""
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(MODELS[name], file)
        program, torch_side = Ours(options, folder, dtype), Theirs(options, MODELS[name], dtype)
        try:
            for _ in range(WARM_UP + options.rounds):
                ours.append(program.step())
                theirs.append(torch_side.step())
        finally:
            program.close()
    return ours, theirs


def row(name, ours, theirs):
    """(a line of the table, ratio of medians)"""
    def of(steps, take):
        return take([step["cpu_s"] for step in steps[WARM_UP:]])

    ratios = [of(ours, take) / of(theirs, take) for take in (statistics.median, min)]
    return (f"| {name} | {of(ours, statistics.median) * 1e3:.0f} | {of(theirs, statistics.median) * 1e3:.0f} | "
            f"{ratios[0]:.2f} | {ratios[1]:.2f} | {ours[0]['loss']:.3f}, {theirs[0]['loss']:.3f} |"), ratios[0]


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="steps_on_request")
    parser.add_argument("--models", nargs="+", default=["gpt2", "llama", "bert"], choices=sorted(MODELS))
    parser.add_argument("--types", nargs="+", default=["fp32"], choices=["fp32", "bf16"])
    parser.add_argument("--micro-batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--most", type=float, default=float("inf"), help="of a ratio of medians")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    print("| model | ours (ms) | PyTorch (ms) | ratio of medians | of minima | first loss of both |\n"
          "|:--|--:|--:|--:|--:|--:|")
    highest = 0
    try:
        for name in options.models:
            for dtype in options.types:
                line, ratio = row(f"{name} {dtype}", *measured(options, name, dtype))
                print(line, flush=True)
                highest = max(highest, ratio)
    except RuntimeError as fault:
        print(f"step_beside_torch.py: {fault}", file=sys.stderr)
        return 2
    return 0 if highest <= options.most else 1


if __name__ == "__main__":
    sys.exit(main())
