#!/usr/bin/env python3
"""Writes tests/data/lengths/batches.json: the batches of dstune.lengths, simulated from their definition.

    python3 scripts/simulate_lengths.py

Written from src/core/train/draw_lengths.hpp alone. Each row: the settings as an experiment's record has
them, how training is split, the lengths of the first sequences, and of BATCHES optimizer steps

    real, padded        mean tokens of a step, over all ranks
    p95_row, worst_row  tokens of a row of a micro-batch, the longest of a step: 95 % of the steps have
                        none longer, and the longest of all
    longest_row         of the longest batch that there is, which decides what fits
    p95_slowest         tokens that the slowest rank of a step computes
    p95_squares         packed: sum of the squares of a step's sequences, what attention costs
"""
import json
import math
import pathlib

from drawn_batches import BITS, GOLDEN
from drawn_batches import mix as finish

TARGET = pathlib.Path(__file__).resolve().parent.parent / "tests/data/lengths/batches.json"
BATCHES = 200
SHOWN = 40

HISTOGRAM = [[3, 400], [17, 250], [64, 200], [120, 100], [500, 3]]
ROWS = [
    (dict(law="histogram", counts=HISTOGRAM, least=3, most=500), dict(ranks=2, micro_batch=4, accumulation=2)),
    (dict(law="histogram", counts=HISTOGRAM, least=3, most=500, pad_to_multiple_of=64),
     dict(ranks=1, micro_batch=2, accumulation=1)),
    (dict(law="lognormal", mean=200.0, sigma=0.5, least=16, most=1024),
     dict(ranks=4, micro_batch=8, accumulation=1)),
    (dict(law="uniform", least=10, most=90), dict(ranks=2, micro_batch=1, accumulation=3)),
    (dict(law="lognormal", mean=300.0, sigma=0.9, least=16, most=1024, packed=True),
     dict(ranks=2, micro_batch=2, accumulation=2, row_length=1024)),
]


def mix(x):
    return finish((x + GOLDEN) & BITS)


def fraction(bits):
    return (bits >> 11) * 2.0**-53


def length_of(settings, seed, index):
    bits = mix(mix(mix(seed) ^ 0x6C656E67746873) ^ index)
    u = fraction(bits)
    if settings["law"] == "histogram":
        every = [length for length, count in settings["counts"] for _ in range(count)]
        length = every[math.floor(u * len(every))]
    elif settings["law"] == "uniform":
        length = settings["least"] + math.floor(u * (settings["most"] - settings["least"] + 1))
    else:
        z = math.sqrt(-2 * math.log1p(-u)) * math.cos(2 * math.pi * fraction(mix(bits)))
        mu = math.log(settings["mean"]) - settings["sigma"] ** 2 / 2
        length = math.floor(math.exp(mu + settings["sigma"] * z) + 0.5)
    return min(max(length, settings["least"]), settings["most"])


def micro_batch(settings, seed, first, split):
    """Lengths of its sequences, and tokens of a row."""
    rows = range(first, first + split["micro_batch"])
    if not settings.get("packed"):
        lengths = [length_of(settings, seed, row) for row in rows]
        multiple = settings["pad_to_multiple_of"]
        return lengths, math.ceil(max(lengths) / multiple) * multiple
    lengths = []
    for row in rows:
        left, n = split["row_length"], 0
        while left > 0:
            lengths.append(min(left, length_of(settings, seed, (row << 20) + n)))
            left -= lengths[-1]
            n += 1
    return lengths, split["row_length"]


def p95(values):
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def simulate(settings, split, seed):
    settings.setdefault("pad_to_multiple_of", 1)
    per_step = split["ranks"] * split["micro_batch"] * split["accumulation"]
    real, padded, rows, slowest, squares = [], [], [], [], []
    for batch in range(BATCHES):
        by_rank, longest, of_real, of_squares = [0] * split["ranks"], 0, 0, 0
        for micro in range(split["accumulation"]):
            for rank in range(split["ranks"]):
                first = batch * per_step + (micro * split["ranks"] + rank) * split["micro_batch"]
                lengths, row = micro_batch(settings, seed, first, split)
                by_rank[rank] += row * split["micro_batch"]
                longest = max(longest, row)
                of_real += sum(lengths)
                of_squares += sum(length**2 for length in lengths)
        real.append(of_real), padded.append(sum(by_rank)), rows.append(longest)
        slowest.append(max(by_rank)), squares.append(of_squares)
    multiple = settings["pad_to_multiple_of"]
    whole = split.get("row_length", math.ceil(settings["most"] / multiple) * multiple)
    return dict(settings=settings, split=split, seed=seed, batches=BATCHES,
                lengths=[length_of(settings, seed, index) for index in range(SHOWN)],
                real=sum(real) / BATCHES, padded=sum(padded) / BATCHES, p95_row=p95(rows),
                worst_row=max(rows), longest_row=whole, p95_slowest=p95(slowest), p95_squares=p95(squares))


def main():
    rows = [json.dumps(simulate(settings, split, 7)) for settings, split in ROWS]
    TARGET.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")
    for row in rows:
        print({key: value for key, value in json.loads(row).items() if key not in ("lengths", "settings")})


if __name__ == "__main__":
    main()
