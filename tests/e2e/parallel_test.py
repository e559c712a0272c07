"""Several experiments at a time on disjoint ranks."""

import unittest

from support import ProgramTest, events


def overlap(a, b):
    return a["started_s"] < b["finished_s"] and b["started_s"] < a["finished_s"]


class SeveralAtATime(ProgramTest):
    def test_two_experiments_of_two_ranks_run_at_once_on_four_workers(self):
        self.tune_well(5, self.quick_tiny(), "--ranks-per-experiment", "2")

        records = events(self.results, "finished")
        pairs = [(a, b) for i, a in enumerate(records) for b in records[i + 1:] if overlap(a, b)]
        self.assertGreaterEqual(len(pairs), 1)  # how many there are is the machine's
        for a, b in pairs:
            self.assertEqual(set(a["ranks"]) & set(b["ranks"]), set())
        for record in records:
            self.assertEqual(len(record["ranks"]), 2)
            self.assertNotIn(0, record["ranks"])


if __name__ == "__main__":
    unittest.main()
