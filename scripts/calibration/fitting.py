"""Least squares of relative errors, none of the numbers negative, and how far they can be trusted.

Needs nothing but the standard library.
"""
import random
import statistics

from hooks import HOOK

EVENTS = ("gradient_hook", HOOK, "collective", "optimizer_tensor", "synchronization")


def solve(matrix, vector):
    """x of the symmetric matrix * x = vector; None where the matrix has no inverse."""
    size = len(vector)
    rows = [list(line) + [value] for line, value in zip(matrix, vector)]
    for k in range(size):
        pivot = max(range(k, size), key=lambda i: abs(rows[i][k]))
        if abs(rows[pivot][k]) < 1e-12:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(size):
            if i != k:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k])]
    return [rows[k][size] / rows[k][k] for k in range(size)]


def scaled(rows):
    """(rows whose columns have length 1, the lengths): a hook in 10 us and one in 1 ms are alike."""
    lengths = [sum(row[k] ** 2 for row in rows) ** 0.5 for k in range(len(rows[0]))]
    return [[x / (y or 1) for x, y in zip(row, lengths)] for row in rows], lengths


def gram(rows, columns):
    return [[sum(row[i] * row[k] for row in rows) for k in columns] for i in columns]


def non_negative(rows, targets):
    """x >= 0 with the smallest sum of squares of rows * x - targets (Lawson and Hanson's active sets)."""
    rows, lengths = scaled(rows)
    square = gram(rows, range(len(lengths)))
    slope = [sum(row[k] * target for row, target in zip(rows, targets)) for k in range(len(lengths))]
    x, positive, left_out = [0.0] * len(lengths), [], {k for k, length in enumerate(lengths) if length == 0}
    while True:
        gains = {k: slope[k] - sum(square[k][i] * x[i] for i in positive)
                 for k in range(len(lengths)) if k not in left_out and k not in positive}
        entering = max(gains, key=gains.get, default=None)
        if entering is None or gains[entering] < 1e-10:
            return [value / (length or 1) for value, length in zip(x, lengths)]
        positive.append(entering)
        while positive:
            solved = solve([[square[i][k] for k in positive] for i in positive], [slope[k] for k in positive])
            if solved is None:  # nothing tells it from the others
                left_out.add(positive.pop())
                continue
            target = dict(zip(positive, solved))
            blocking = [k for k in positive if target[k] <= 0]
            if not blocking:
                x = [target.get(k, 0.0) for k in range(len(lengths))]
                break
            first = min(blocking, key=lambda k: x[k] / (x[k] - target[k]))
            share = x[first] / (x[first] - target[first])
            x = [x[k] + share * (target[k] - x[k]) if k in target else 0.0 for k in range(len(lengths))]
            x[first] = 0.0
            positive.remove(first)
            if first == entering:
                left_out.add(first)


def standard_errors(rows, targets, x):
    """Of each number, from what `x` leaves unexplained. Infinite for what cannot be told at all.

    With weights alike this is the errors of the rows times sqrt(reduced chi squared): what the model
    cannot explain counts as noise does.
    """
    rows, lengths = scaled(rows)
    used = [k for k, length in enumerate(lengths) if length > 0]
    left = sum((sum(a * b * length for a, b, length in zip(row, x, lengths)) - target) ** 2
               for row, target in zip(rows, targets))
    freedom = len(rows) - len(used)
    errors = [float("inf")] * len(lengths)
    square = gram(rows, used)
    for i, k in enumerate(used):
        column = solve(square, [float(j == i) for j in range(len(used))])
        if column is not None and freedom >= 1:
            errors[k] = (max(column[i], 0) * left / freedom) ** 0.5 / lengths[k]
    return errors


def relative_rows(samples, terms):
    """Rows whose target is 1, so that a long step does not outweigh a short one.

    Steps that took no longer than without DeepSpeed say nothing and are left out.
    """
    return [[counts.get(term, 0) / seconds for term in terms] for counts, seconds in samples if seconds > 0]


def fit(samples, terms=EVENTS):
    """Seconds per event, each >= 0, that explain `samples` best: a list of (counts by event, seconds)."""
    rows = relative_rows(samples, terms)
    return dict(zip(terms, non_negative(rows, [1.0] * len(rows)) if rows else [0.0] * len(terms)))


def errors_of(cost, samples, terms=EVENTS):
    """Standard error of each of `cost`, seconds."""
    rows = relative_rows(samples, terms)
    if not rows:
        return dict.fromkeys(terms, float("inf"))
    x = [cost[term] for term in terms]
    return dict(zip(terms, standard_errors(rows, [1.0] * len(rows), x)))


def predicted(cost, counts):
    return sum(cost[term] * count for term, count in counts.items())


def relative_errors(cost, samples):
    return [abs(predicted(cost, counts) - seconds) / seconds
            for counts, seconds in samples if seconds > 0]


def fit_line(points):
    """(seconds of a call, seconds per byte) and the standard error of each; points: {bytes: seconds}."""
    rows = [[1 / seconds, size / seconds] for size, seconds in points.items()]
    targets = [1.0] * len(rows)
    x = non_negative(rows, targets)
    return x, standard_errors(rows, targets, x)


def resampled(rounds, generator):
    """As many rounds, drawn in blocks of neighbours, since a machine's pace drifts."""
    count = len(rounds)
    block = max(1, round(count ** (1 / 3)))
    drawn = []
    while len(drawn) < count:
        start = generator.randrange(count)
        drawn += [rounds[(start + i) % count] for i in range(block)]
    return drawn[:count]


def bootstrap(rounds, estimate, resamples=100, seed=1):
    """Standard deviation of each number of estimate(rounds), a flat dict, over resampled rounds."""
    generator = random.Random(seed)
    drawn = [estimate(resampled(rounds, generator)) for _ in range(resamples)]
    return {name: statistics.stdev([numbers[name] for numbers in drawn if name in numbers] or [0, 0])
            for name in drawn[0]}
