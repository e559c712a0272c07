"""docs/fidelity-tables.md is what its script makes of this program, and the published peaks are met."""
import os
import pathlib
import sys
import unittest

SOURCE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])
PROGRAM = os.environ["DSTUNE_PROGRAM"]
sys.path.insert(0, str(SOURCE / "scripts"))
import compare_published_peaks as published_peaks  # noqa: E402
import make_fidelity_tables as tables  # noqa: E402


class FidelityTables(unittest.TestCase):
    maxDiff = None

    def test_are_what_the_documents_say(self):
        self.assertEqual(tables.page(PROGRAM), (SOURCE / "docs/fidelity-tables.md").read_text(encoding="utf-8"))


class PublishedPeaks(unittest.TestCase):
    def test_are_planned_within_two_percent(self):
        rows = published_peaks.rows_of(PROGRAM, published_peaks.read())

        self.assertEqual(len(rows), 8)
        for row in rows:
            self.assertLess(abs(row["off"]), 0.02, row)

    def test_would_be_missed_without_the_weights_that_torch_keeps(self):
        published = published_peaks.read()
        row = next(row for row in published["rows"] if row["model"] == "6.86 B" and not row["checkpointing"])

        released = published_peaks.plan_of(PROGRAM, published, row, published["sequence_length"], {}, zero_init=True)

        self.assertLess(released["peak_memory_bytes"] / published_peaks.GIB, 0.8 * row["peak_gib"])


if __name__ == "__main__":
    unittest.main()
