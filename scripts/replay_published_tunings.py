#!/usr/bin/env python3
"""Says what DeepSpeed's published tunings of GPT-2 measured: docs/decisions/gpt2-large-table.md.

    python3 scripts/replay_published_tunings.py

A published row says how many experiments a stage took and which was the best, not which sizes ran. So the
control flow of DeepSpeed 0.5.7's autotuner (autotuner.py, fast mode, no largest batch) is replayed here for every
largest micro-batch, activation memory and outcome of a comparison of metrics, and what gives the published
rows is printed: per stage (largest that ran, smallest that was tried in vain or None), and the range of the
activation memory of one sample that the tuner must have found.
"""
import math

MEMORY = 34_089_730_048  # of a V100 with 32 GB, as total_memory says
GPUS = 16
LARGEST = 30  # micro-batches that are looked at
# parameters, and by stage (experiments, best micro-batch or None); no row: not tried
PUBLISHED = {
    "gpt2": (124_439_808, [(9, 11), (6, 15), (1, None), (1, None)]),
    "gpt2-medium": (354_823_168, [(6, 5), (5, 6), (3, 6), (1, None)]),
    "gpt2-large": (774_030_080, [(4, 2), (5, 3), (3, 3), (1, None)]),
    "gpt2-xl": (1_557_611_200, [None, (3, 1), (3, 1), (3, 1)]),
}


class Undecided(Exception):
    """A comparison of metrics that no bit answers yet."""


class Tuning:
    """tune_space() of one stage."""

    def __init__(self, largest, comparisons):
        self.largest, self.comparisons = largest, list(comparisons)
        self.records = []  # (micro-batch, accumulation steps, whether it ran)

    def run(self, size, accumulation=1):
        self.records.append((size, accumulation, size <= self.largest))
        return size <= self.largest

    def is_better(self):
        if not self.comparisons:
            raise Undecided
        return self.comparisons.pop(0)

    def largest_found(self, lowest, calculated):
        """get_min_max_micro_batch_size(); 0: none."""
        used = [lowest]
        if not self.run(lowest):
            return 0
        for size in (math.ceil(1.05 * calculated), calculated, int(0.95 * calculated)):
            if size in used or self.run(size):
                return size
        low, high = lowest, calculated
        while low < high and (middle := (low + high) // 2) != low:
            if middle in used:
                low = middle
            elif self.run(middle):
                low = middle
                used.append(middle)
                if not self.is_better():
                    break
            else:
                high = middle - 1
        return low

    def tune(self, previous, calculated):
        """The largest micro-batch found; what ran before is not run, but recorded once more."""
        lowest = max(previous, 1)
        if calculated < lowest:
            return 0
        largest = self.largest_found(lowest, calculated)
        if largest < lowest:
            return 0
        begin = max(lowest, largest // 2)
        stride = (largest - begin) // 3 or 1
        sizes = [size for size in range(begin, largest, stride) if largest // size != 1] + [largest]
        for size in sizes:
            self.run(size, largest // size)
        begin = sizes[-2] + 1 if len(sizes) > 1 else lowest
        stride = (largest - begin) // 3 or 1
        for size in reversed(range(begin, largest, stride)):
            if not self.run(size, largest // size) or not self.is_better():
                break
        return largest


def tunings(largest, previous, calculated):
    """(records, largest found) for every outcome of the comparisons."""
    open_ends = [()]
    while open_ends:
        comparisons = open_ends.pop()
        tuning = Tuning(largest, comparisons)
        try:
            found = tuning.tune(previous, calculated)
            yield tuning.records, found
        except Undecided:
            open_ends += [comparisons + (False,), comparisons + (True,)]


def states_memory(parameters, stage):
    """get_instantiation_memory_required_per_gpu() with fp16"""
    weights, gradients, optimizer = 2 * parameters, 2 * parameters, 16 * parameters
    return ((weights / GPUS if stage >= 3 else weights) + (gradients / GPUS if stage >= 2 else gradients)
            + (optimizer / GPUS if stage >= 1 else optimizer))


def is_published(records, row):
    experiments, best = row
    if len(records) != experiments:
        return False
    return (best, 1, True) in records if best else not any(ran for _, _, ran in records)


def stage_readings(row, previous, previous_best, calculated):
    """(what ran and did not, largest and best micro-batch for the next stage)"""
    for largest in range(LARGEST):
        for records, found in tunings(largest, previous, calculated):
            if is_published(records, row):
                ran = max((size for size, _, good in records if good), default=0)
                failed = min((size for size, _, good in records if not good), default=None)
                best = row[1] or 0
                yield (ran, failed), *((found, best) if best > previous_best else (previous, previous_best))


def readings(parameters, rows, activations):
    """Of all stages, one behind the other."""
    states = {((), 0, 0)}
    for stage, row in enumerate(rows):
        left = MEMORY - states_memory(parameters, stage)
        if (row is None) != (left <= activations):
            return set()
        if row is None:
            continue
        states = {(known + (reading,), found, best) for known, previous, previous_best in states
                  for reading, found, best in stage_readings(row, previous, previous_best, int(left) // activations)}
    return {known for known, _, _ in states}


def main():
    for name, (parameters, rows) in PUBLISHED.items():
        ranges = {}
        for activations in range(10 ** 9, 2 * 10 ** 10, 10 ** 7):
            for known in readings(parameters, rows, activations):
                ranges.setdefault(known, []).append(activations / 1e9)
        for known, found in sorted(ranges.items(), key=str):
            print(f"{name}: {', '.join(map(str, known))}; {min(found):.2f} to {max(found):.2f} GB of activations")


if __name__ == "__main__":
    main()
