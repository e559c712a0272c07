"""The tests of a GPU run those alone for which there are GPUs enough, whatever filter is given."""

import os
import re
import subprocess
import sys
import unittest

PROGRAM = sys.argv[1]
SKIPPED = 77
OF_NONE, OF_ONE = "Whole.NeedsNone", "Whole.TrainsOnRanks1"
OF_TWO = {"Whole.TrainsOnRanks2", "Parts.Ranks2Accumulation1"}


def run(gpus, chosen=None, by_option=False):
    """(exit code, tests that ran, all that was printed)"""
    environment = dict(os.environ, PRETENDED_GPUS=str(gpus), GTEST_COLOR="no")
    environment.pop("GTEST_FILTER", None)
    if chosen and not by_option:
        environment["GTEST_FILTER"] = chosen
    done = subprocess.run([PROGRAM, *([f"--gtest_filter={chosen}"] if by_option else [])], env=environment,
                          capture_output=True, text=True, check=False)
    return done.returncode, set(re.findall(r"^\[ RUN      \] (\S+)", done.stdout, re.MULTILINE)), done.stdout


class AsManyGpus(unittest.TestCase):
    def expect(self, gpus, chosen, expected):
        for by_option in (False, True) if chosen else (False,):
            with self.subTest(gpus=gpus, chosen=chosen, by_option=by_option):
                code, ran, text = run(gpus, chosen, by_option)
                self.assertEqual((code, ran), (0 if expected else SKIPPED, expected), text)

    def test_without_a_filter(self):
        self.expect(1, None, {OF_NONE, OF_ONE})
        self.expect(2, None, {OF_NONE, OF_ONE, *OF_TWO})

    def test_with_a_filter(self):
        self.expect(1, "*", {OF_NONE, OF_ONE})
        self.expect(1, "Whole.*:*Accumulation1*", {OF_NONE, OF_ONE})
        self.expect(2, "Whole.NeedsNone:Parts.*", {OF_NONE, "Parts.Ranks2Accumulation1"})

    def test_with_a_filter_that_leaves_tests_out_itself(self):
        self.expect(1, "*-*None", {OF_ONE})
        self.expect(2, "-Parts.*", {OF_NONE, OF_ONE, "Whole.TrainsOnRanks2"})
        self.expect(2, "Whole.*:Parts.*-*None:*Ranks1", OF_TWO)
        self.expect(2, "Parts.*-", {"Parts.Ranks2Accumulation1"})

    def test_where_every_chosen_test_needs_more_it_skips_itself(self):
        for chosen in ("Parts.*", "Parts.*-*Ranks2*"):
            self.expect(1, chosen, set())
        self.assertIn("skipped: every test needs more GPUs than 1\n", run(1, "Parts.*")[2])

    def test_eight_gpus_run_all(self):
        self.assertEqual(len(run(8)[1]), 6)

    def test_without_a_gpu_it_skips_itself(self):
        code, ran, text = run(0, "*")
        self.assertEqual((code, ran), (SKIPPED, set()), text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
