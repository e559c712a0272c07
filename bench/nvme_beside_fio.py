#!/usr/bin/env python3
"""Times the engine of NVMe offload beside fio with libaio on the same directory, in turns, pass by pass.

    bench/nvme_beside_fio.py build/default/bench/bench_nvme DIR [--points 1:32:1 8:32:1]

Needs fio (Debian's package). A turn is one pass of each over --mib of a file of its own that is there already, in one
direction, with the same block (MiB), queue depth and threads, and O_DIRECT; fio keeps as many requests under way as
overlap_events does. With several threads the comparison favours fio, which times each of its jobs from that job's own
start, though they do not start together. What is compared are the medians of the rates. A measurement is repeated in
new processes. The ratio (ours over fio's, aim: at least 0.9) is what can be compared. How much it writes (14 * mib for
each point and repetition of 5 turns) it says first; nothing of it stays. Exit codes: 0 measured, 1 a ratio below
--least (of medians, the median of the repetitions), 2 wrong usage or a failed program.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

DIRECTIONS = ("read", "write")


class Ours:
    """The program, a pass for every line that it is sent."""

    def __init__(self, options, point):
        self.bytes = options.mib << 20
        self.process = subprocess.Popen([options.program, options.directory, str(options.mib), *map(str, point)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def rate(self, direction):
        try:
            self.process.stdin.write(f"{direction}\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(f"bench_nvme: exit code {self.process.wait()}")
        return self.bytes / float(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Fio:
    """A file in `folder`, of which each job has an equal part."""

    def __init__(self, options, point, folder):
        self.block, self.depth, self.jobs = point
        self.part = (options.mib << 20) // self.jobs
        self.file = folder / "fio"
        self.rate("write")  # makes the file

    def rate(self, direction):
        command = ["fio", "--name=beside", f"--filename={self.file}", "--ioengine=libaio", "--direct=1", "--thread",
                   f"--rw={direction}", f"--bs={self.block}m", f"--iodepth={self.depth}", f"--numjobs={self.jobs}",
                   f"--size={self.part}", f"--offset_increment={self.part}", "--group_reporting",
                   "--output-format=json"]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode != 0:
            raise RuntimeError(f"fio: {finished.stderr or finished.stdout}")
        job = json.loads(finished.stdout[finished.stdout.index("{"):])["jobs"][0][direction]
        if job["io_bytes"] != self.part * self.jobs:
            raise RuntimeError(f"fio moved {job['io_bytes']} bytes instead of {self.part * self.jobs}")
        return job["bw_bytes"]


def measured(options, point, direction):
    """The median rates of ours and of fio's, in new processes."""
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="dstune-fio-") as folder:
        ours, theirs = Ours(options, point), Fio(options, point, pathlib.Path(folder))
        turns = []
        for turn in range(options.turns):
            sides = (ours, theirs) if turn % 2 == 0 else (theirs, ours)
            rates = {}
            for side in sides:
                time.sleep(options.pause)  # a drive that is rationed, or has a cache, is as rested for both
                rates[side] = side.rate(direction)
            turns.append((rates[ours], rates[theirs]))
        ours.close()
    return [statistics.median(side) for side in zip(*turns)]


def point_of(text):
    point = tuple(map(int, text.split(":")))
    if len(point) != 3 or min(point) < 1:
        raise ValueError(text)
    return point


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="bench_nvme")
    parser.add_argument("directory")
    parser.add_argument("--points", nargs="+", type=point_of, metavar="MIB:DEPTH:THREADS",
                        default=[(1, 8, 1), (1, 32, 1), (1, 128, 1), (8, 32, 1)])
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds before each pass; fio takes some to start")
    parser.add_argument("--least", type=float, default=0.0)
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    # Both sides make a file for each direction, and write it in each turn of one direction.
    passes = len(options.points) * options.repeat * 2 * (options.turns + len(DIRECTIONS))
    print(f"Writes {passes * options.mib / 1024:.1f} GiB to {options.directory}.\n")
    print("| block | depth | threads | direction | ours GB/s, median | fio's | ratio, median | least | most |\n"
          "|--:|--:|--:|---|--:|--:|--:|--:|--:|")
    ratios = []
    try:
        for point in options.points:
            for direction in DIRECTIONS:
                pairs = [measured(options, point, direction) for _ in range(options.repeat)]
                of_point = [ours / theirs for ours, theirs in pairs]
                cells = [f"{statistics.median(side) / 1e9:.2f}" for side in zip(*pairs)]
                cells += [f"{figure(of_point):.2f}" for figure in (statistics.median, min, max)]
                print(f"| {' | '.join(map(str, point))} | {direction} | {' | '.join(cells)} |", flush=True)
                ratios.append(statistics.median(of_point))
    except (OSError, RuntimeError) as fault:
        print(f"nvme_beside_fio.py: {fault}", file=sys.stderr)
        return 2
    return 0 if min(ratios) >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
