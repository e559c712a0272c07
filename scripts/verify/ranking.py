"""Whether two columns of numbers have the same order."""
import math

from compare_step_with_torch import ranks, spearman  # noqa: F401 (ranks is used by report.py)


def sign(number):
    return (number > 0) - (number < 0)


def agreement(ours, theirs):
    """(pairs of the same order less those of the other, pairs untied in ours, pairs untied in theirs)"""
    sums = [0, 0, 0]
    for i in range(len(ours)):
        for j in range(i):
            a, b = sign(ours[i] - ours[j]), sign(theirs[i] - theirs[j])
            sums = [sums[0] + a * b, sums[1] + abs(a), sums[2] + abs(b)]
    return sums


def kendall(ours, theirs):
    """tau-b; None where one of them is constant."""
    return kendall_within([(ours, theirs)])


def kendall_within(groups):
    """tau-b of the pairs inside groups of (ours, theirs)."""
    sums = [sum(column) for column in zip(*(agreement(*group) for group in groups))]
    if not sums or not sums[1] or not sums[2]:
        return None
    return sums[0] / math.sqrt(sums[1] * sums[2])


def spearman_within(groups):
    """The mean over groups, each weighted by its size less one; None if no group has three."""
    values = [(spearman(*group), len(group[0]) - 1) for group in groups if len(group[0]) >= 3]
    values = [(value, weight) for value, weight in values if value is not None]
    if not values:
        return None
    return sum(value * weight for value, weight in values) / sum(weight for _, weight in values)


def regret(ours, theirs):
    """How much slower than the fastest is what ours puts first, as a share."""
    return theirs[ours.index(min(ours))] / min(theirs) - 1
