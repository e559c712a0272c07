"""Machines change their pace: a reference that is run again and again tells by how much."""
import math
import statistics


class Pace:
    """From (seconds since the start, seconds per step) of the reference; 1 at its median, and always without any."""

    def __init__(self, references):
        references = sorted(references)
        middle = statistics.median(step for _, step in references) if references else 1.0
        self.times = [at for at, _ in references]
        logs = [math.log(step / middle) for _, step in references]
        self.raw = logs
        # One outlier is not a pace: the median of three, at the ends too.
        begins = [max(0, min(i - 1, len(logs) - 3)) for i in range(len(logs))]
        self.logs = [statistics.median(logs[begin:begin + 3]) for begin in begins]

    def at(self, time):
        """The factor by which steps are longer than usual at that time."""
        times, logs = self.times or [0.0], self.logs or [0.0]
        if time <= times[0]:
            return math.exp(logs[0])
        for i in range(1, len(times)):
            if time <= times[i]:
                share = (time - times[i - 1]) / (times[i] - times[i - 1])
                return math.exp(logs[i - 1] + share * (logs[i] - logs[i - 1]))
        return math.exp(logs[-1])

    def extremes(self):
        return math.exp(min(self.logs, default=0.0)), math.exp(max(self.logs, default=0.0))

    def spread(self):
        """Standard deviation, as a share, of one visit from what the visits around it say; None below three. Robust,
        so that one bad visit does not blur all."""
        rests = [self.raw[i] - (self.raw[i - 1] + self.raw[i + 1]) / 2 for i in range(1, len(self.raw) - 1)]
        if not rests:
            return None
        return deviation_of(rests) / math.sqrt(1.5)  # their variance is 1 + 1/4 + 1/4 of a visit's


def deviation_of(rests):
    """The standard deviation of a normal distribution with their median size."""
    return 1.4826 * statistics.median(map(abs, rests))


def spread_of_pairs(firsts, seconds):
    """Likewise from two visits to each; None below three."""
    if len(firsts) < 3:
        return None
    return deviation_of([math.log(a / b) for a, b in zip(firsts, seconds)]) / math.sqrt(2)
