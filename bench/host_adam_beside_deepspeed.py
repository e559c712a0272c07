#!/usr/bin/env python3
"""Times Adam over host memory beside DeepSpeed's own DeepSpeedCPUAdam, in turns, pass by pass.

    bench/host_adam_beside_deepspeed.py build/default/bench/bench_host_passes [--threads 1 2]

Needs torch, deepspeed, ninja and a C++ compiler, with which DeepSpeed builds its kernel for this machine. A turn is
one pass of each over as many elements, with as many threads (OMP_NUM_THREADS), AdamW with decay; what is compared are
the medians of their wall times, and beside them the fastest, of which a busy machine spoils less. A measurement is
repeated in new processes, since where memory lies differs between them. The ratio (ours over DeepSpeed's, aim: 0.9 to
1.1) is what can be compared. Exit codes: 0 measured, 1 a ratio outside --bounds (of medians, the median of the
repetitions), 2 wrong usage or a failed program.
"""
import argparse
import multiprocessing
import os
import statistics
import subprocess
import sys
import time

BYTES_PER_ELEMENT = 28  # gradient, parameter and moments are read, and all but the gradient written


class Ours:
    """The program, a pass for every line that it is sent."""

    def __init__(self, program, elements, threads):
        self.process = subprocess.Popen([program, str(elements), str(threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def time(self):
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(f"bench_host_passes: exit code {self.process.wait()}")
        return float(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class DeepSpeeds:
    """Its optimizer for one parameter, with the numbers that the program has."""

    def __init__(self, elements, threads):
        import torch
        from deepspeed.ops.adam import DeepSpeedCPUAdam
        torch.set_num_threads(threads)
        parameter = torch.nn.Parameter(torch.full((elements,), 0.01))
        parameter.grad = torch.full((elements,), 0.01)
        self.optimizer = DeepSpeedCPUAdam([parameter], weight_decay=0.01, adamw_mode=True)

    def time(self):
        begin = time.perf_counter()
        self.optimizer.step()
        return time.perf_counter() - begin


def measure(options, threads, answer):
    """Sends the times of both, turn by turn, or a text that says what failed."""
    try:
        ours, theirs = Ours(options.program, options.elements, threads), DeepSpeeds(options.elements, threads)
        turns = []
        for _ in range(options.turns + 1):
            turn = []
            for side in (ours, theirs):
                time.sleep(0.02)  # OpenMP's threads look for work for a while before they leave their cores
                turn.append(side.time())
            turns.append(turn)
        ours.close()
        answer.send(turns[1:])  # the first one touches the moments' memory
    except Exception as fault:
        answer.send(f"{type(fault).__name__}: {fault}")


def measured(options, threads):
    """The times of ours and of DeepSpeed's, in a new process, whose OpenMP reads the variable when it starts."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=measure, args=(options, threads, sender))
    process.start()
    sender.close()
    try:
        turns = receiver.recv()
    except EOFError:
        turns = "the process ended"
    process.join()
    if isinstance(turns, str):
        raise RuntimeError(turns)
    return list(zip(*turns))


def ratio_of(figure, times):
    ours, theirs = map(figure, times)
    return ours / theirs


def line_of(threads, repetition, times, elements):
    medians = (f"{seconds * 1e3:.1f} ms ({BYTES_PER_ELEMENT * elements / seconds / 1e9:.1f} GB/s)"
               for seconds in map(statistics.median, times))
    return (f"| {threads} | {repetition} | {' | '.join(medians)} | {ratio_of(statistics.median, times):.2f} | "
            f"{ratio_of(min, times):.2f} |")


def summary_of(threads, ratios):
    cells = (f"{statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})" for each in zip(*ratios))
    return f"| {threads} | all | | | {' | '.join(cells)} |"


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="bench_host_passes")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--elements", type=int, default=1 << 25, help="of each of the four arrays")
    parser.add_argument("--turns", type=int, default=11)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--bounds", nargs=2, type=float, default=[0, float("inf")], metavar=("LEAST", "MOST"))
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    os.environ.update(DS_ACCELERATOR="cpu", CUDA_VISIBLE_DEVICES="")
    print("| threads | repetition | ours, median | DeepSpeed's | ratio | of the fastest |\n|--:|--:|--:|--:|--:|--:|")
    medians = []
    try:
        for threads in options.threads:
            ratios = []
            for repetition in range(1, options.repeat + 1):
                times = measured(options, threads)
                ratios.append((ratio_of(statistics.median, times), ratio_of(min, times)))
                print(line_of(threads, repetition, times, options.elements), flush=True)
            print(summary_of(threads, ratios), flush=True)
            medians.append(statistics.median(ratio for ratio, _ in ratios))
    except (OSError, RuntimeError) as fault:
        print(f"host_adam_beside_deepspeed.py: {fault}", file=sys.stderr)
        return 2
    least, most = options.bounds
    return 0 if all(least <= ratio <= most for ratio in medians) else 1


if __name__ == "__main__":
    sys.exit(main())
