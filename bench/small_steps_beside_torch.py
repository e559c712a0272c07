#!/usr/bin/env python3
"""Times forward and backward of small models on CPU ranks beside PyTorch's, of which the host takes nearly everything.

    bench/small_steps_beside_torch.py build/default/bench/steps_on_request PROFILE [CONFIG.json ...]

PROFILE is this machine's profile of host overhead (`scripts/tune.sh --calibrate`), of which our steps take what is
PyTorch's own: operators, module calls, micro-steps. CONFIG.json are files of bench/verify, by default those of small
models. Each is trained in fp32 by as many processes of as many threads as the profile was made with, all of which
compute at once, as ranks do that share cores, and do not communicate. A round is a step of ours, of ours without the
profile, and of PyTorch's in turn; times are wall times, so the machine is to be quiet: medians over the rounds, means
over the ranks, and the ratio of ours over PyTorch's. Without the profile the step is arithmetic alone: the baseline.
Exit codes: 0 measured, 2 wrong usage or a failed program.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import types

from step_beside_torch import WARM_UP, Ours, Theirs

VERIFY = pathlib.Path(__file__).resolve().parent / "verify"
sys.path.append(str(VERIFY.parents[1] / "scripts" / "calibration"))
import commented_json  # noqa: E402 (its folder is known only now)

SMALL = [VERIFY / f"{name}.json" for name in ("deep_gpt2", "small", "narrow_llama", "shallow_bert")]
NO_DROPOUT = {"gpt2": dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0), "llama": {},
              "bert": dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)}
WITHIN = 0.15


class PlainTheirs(Theirs):
    """PyTorch's forward and backward."""

    def step(self):
        begin = time.perf_counter()
        loss = self.model(**self.batch()).loss
        loss.backward()
        seconds = time.perf_counter() - begin
        self.model.zero_grad(set_to_none=True)
        return seconds


def serve(micro_batch, sequence, threads, folder):
    """PyTorch's side, a step for every line of standard input, answered as steps_on_request does."""
    config = json.loads(pathlib.Path(folder, "config.json").read_text(encoding="utf-8"))
    theirs = PlainTheirs(types.SimpleNamespace(micro_batch=micro_batch, sequence=sequence, threads=threads), config,
                          "fp32")
    for _ in sys.stdin:
        print(json.dumps({"forward_s": 0.0, "backward_s": theirs.step()}), flush=True)


class Server(Ours):
    """A process of either side."""

    def __init__(self, command):
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def begin(self):
        with contextlib.suppress(BrokenPipeError):  # end() says what became of it
            self.process.stdin.write("step\n")
            self.process.stdin.flush()

    def end(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args[0]}: exit code {self.process.wait()}")
        said = json.loads(line)
        return said["forward_s"] + said["backward_s"]


class Side:
    """The same command on every rank."""

    def __init__(self, command, ranks, keep):
        self.servers = [keep.enter_context(contextlib.closing(Server(command))) for _ in range(ranks)]

    def step(self):
        for server in self.servers:
            server.begin()
        return statistics.mean([server.end() for server in self.servers])


def medians(options, model, micro_batch, sequence):
    """Seconds of forward and backward: ours, ours without the profile, PyTorch's."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as keep:
        pathlib.Path(folder, "config.json").write_text(json.dumps(model), encoding="utf-8")
        ours = [options.program, folder, micro_batch, sequence, options.threads, "fp32"]
        theirs = [sys.executable, __file__, "--serve", micro_batch, sequence, options.threads, folder]
        sides = [Side(command, options.ranks, keep)
                 for command in ([*ours, os.path.abspath(options.profile)], ours, theirs)]
        times = [[side.step() for side in sides] for _ in range(WARM_UP + options.rounds)][WARM_UP:]
    return [statistics.median(of_side) for of_side in zip(*times)]


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="steps_on_request")
    parser.add_argument("profile")
    parser.add_argument("configs", nargs="*", default=SMALL)
    parser.add_argument("--micro-batches", nargs="+", type=int, default=[1, 2, 4, 8, 16])
    parser.add_argument("--rounds", type=int, default=31)
    options = parser.parse_args(arguments)
    measured_on = json.loads(pathlib.Path(options.profile).read_text(encoding="utf-8")).get("measured_on", {})
    options.ranks, options.threads = measured_on.get("ranks", 2), measured_on.get("threads", 1)
    return options


def table(options):
    """Prints it row by row. Returns [(ratio with the profile, ratio without)]."""
    print("| model | micro-batch | ours (ms) | PyTorch (ms) | ratio | without the profile |\n"
          "|:--|--:|--:|--:|--:|--:|")
    ratios = []
    for path in options.configs:
        dstune = commented_json.read(path)["dstune"]
        model = {**dstune["model"], **NO_DROPOUT.get(dstune["model"]["model_type"], {})}
        for micro_batch in options.micro_batches:
            ours, bare, theirs = medians(options, model, micro_batch, dstune["sequence_length"])
            ratios.append((ours / theirs, bare / theirs))
            print(f"| {pathlib.Path(path).stem} | {micro_batch} | {ours * 1e3:.2f} | {theirs * 1e3:.2f} | "
                  f"{ours / theirs:.2f} | {bare / theirs:.2f} |", flush=True)
    return ratios


def main():
    if sys.argv[1:2] == ["--serve"]:
        serve(*map(int, sys.argv[2:5]), sys.argv[5])
        return 0
    try:
        ratios = table(parse(sys.argv[1:]))
    except (RuntimeError, OSError, ValueError) as fault:
        print(f"small_steps_beside_torch.py: {fault}", file=sys.stderr)
        return 2
    for name, column in zip(("with the profile", "without it"), zip(*ratios)):
        within = sum(abs(ratio - 1) <= WITHIN for ratio in column)
        print(f"{name}: {within} of {len(column)} within {1 - WITHIN:.2f} to {1 + WITHIN:.2f}, from {min(column):.2f} "
              f"to {max(column):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
