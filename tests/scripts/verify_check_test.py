"""Which steps of the real training a check watches, and what it takes of them."""
import os
import pathlib
import sys
import types
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "scripts"))

from verify import real  # noqa: E402

STEPS = 2 * real.LOSS_CYCLE


class Memory:
    """Says which steps it watches, and has a peak for each."""

    def __init__(self, events, peaks):
        self.events, self.peaks = events, iter(peaks)

    def mark(self):
        self.events.append("mark")

    def peak(self):
        self.events.append("peak")
        return next(self.peaks)


class Check(unittest.TestCase):
    def setUp(self):
        self.events = []
        self.bench = real.Bench.__new__(real.Bench)
        self.bench.deepspeed = unittest.mock.MagicMock()
        self.bench.of_all_ranks = lambda value: [value, value]
        self.bench.step = self.step

    def step(self, engine, micro_steps, settings, norms=None):
        self.events.append(micro_steps)
        return float(micro_steps)

    def check(self, stage, memory):
        engine = types.SimpleNamespace(zero_optimization_stage=lambda: stage)
        return self.bench.check(engine, list(range(STEPS)), {"settings": {}}, memory)

    def test_the_first_step_of_stage_3_is_watched_beside_the_third_of_each_cycle(self):
        found = self.check(3, Memory(self.events, [70, 50, 60]))

        self.assertEqual(self.events, ["mark", 0, "peak", 1, "mark", 2, "peak", 3, 4, 5, "mark", 6, "peak", 7])
        self.assertEqual(found["peak_bytes"], 70)
        self.assertEqual(found["losses"], [float(step) for step in range(STEPS)])

    def test_other_stages_first_steps_are_like_all_later_ones(self):
        found = self.check(2, Memory(self.events, [60, 50]))

        self.assertEqual(self.events, [0, 1, "mark", 2, "peak", 3, 4, 5, "mark", 6, "peak", 7])
        self.assertEqual(found["peak_bytes"], 50)

    def test_a_first_step_that_needs_less_changes_nothing(self):
        self.assertEqual(self.check(3, Memory(self.events, [40, 50, 60]))["peak_bytes"], 50)

    def test_where_memory_is_not_watched_no_peak_is_known(self):
        self.assertIsNone(self.check(3, None)["peak_bytes"])
        self.assertEqual(self.events, list(range(STEPS)))


if __name__ == "__main__":
    unittest.main()
