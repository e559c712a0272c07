"""compare_memory_with_deepspeed.py as far as it runs without DeepSpeed."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "scripts"))
import compare_memory_with_deepspeed as compare  # noqa: E402
from memory_configs import MODELS, cases  # noqa: E402


class Summary(unittest.TestCase):
    def test_takes_the_least_of_the_collected_steps_and_the_fullest_rank(self):
        summary = compare.summary_of([[90, 105, 100, 100, 100], [90, 110, 112, 110, 110]])

        self.assertEqual((summary["deepspeed_bytes"], summary["uncollected_bytes"]), (110, 0))

    def test_says_what_garbage_adds_to_later_steps(self):
        self.assertEqual(compare.summary_of([[90, 100, 100, 130, 120]])["uncollected_bytes"], 30)

    def test_counts_the_first_step(self):
        self.assertEqual(compare.summary_of([[120, 100, 100, 100, 100]])["deepspeed_bytes"], 120)


class Table(unittest.TestCase):
    def row(self, name, real, ours):
        return {"name": name, "deepspeed_bytes": real, "dstune_bytes": ours, "dstune_phase": "update",
                "uncollected_bytes": 0}

    def test_has_the_difference_in_percent_of_the_real_one(self):
        self.assertIn("| a | 1,000,000 | 1,001,000 | +0.1000 % | update | 0 |",
                      compare.table_of([self.row("a", 1000000, 1001000)]))

    def test_names_the_worst_whatever_its_sign(self):
        rows = [self.row("above", 100, 101), self.row("below", 100, 97)]

        self.assertEqual(compare.worst_of(rows)["name"], "below")


class Configurations(unittest.TestCase):
    def test_have_names_of_their_own_and_known_models(self):
        names = [case["name"] for case in cases()]

        self.assertEqual(len(names), len(set(names)))
        self.assertTrue(all(case["model"] in MODELS for case in cases()))


if __name__ == "__main__":
    unittest.main()
