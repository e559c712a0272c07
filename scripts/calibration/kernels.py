"""What timers of torch's kernels on a CPU share: types, directions, and which of their times count."""
import statistics

# No fp16: without instructions for it torch multiplies half a GFLOP a second, and nobody trains so.
TYPES = {"fp32": "float32", "bf16": "bfloat16"}
DIRECTIONS = ("forward", "backward")


def least(tries):
    """(direction, seconds) of both, of tries that have (of forward, of backward)."""
    return zip(DIRECTIONS, map(min, zip(*tries)))


def typical(rounds, part):
    """{key: torch's seconds} of a part of the rounds, the median: ranks compute at once, as in a step, and where they
    share a core's units some rounds are luckier than any step."""
    return {key: statistics.median(measured[part][key] for measured in rounds) for key in rounds[0].get(part, {})}
