"""The pure parts of the scripts that ask DeepSpeed's releases."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "scripts"))
import compare_deepspeed_versions as compare  # noqa: E402
import make_deepspeed_versions as make  # noqa: E402


class Histories(unittest.TestCase):
    def test_a_default_stands_with_the_first_release_that_has_it(self):
        releases = {"0.15.10": {"/a": 0.0}, "0.15.9": {"/a": 0.0}, "0.16.0": {"/a": 1.0, "/b": True}}

        self.assertEqual(make.histories(releases),
                         {"/a": {"0.15.9": 0.0, "0.16.0": 1.0}, "/b": {"0.15.9": "absent", "0.16.0": True}})

    def test_false_is_no_zero(self):
        releases = {"0.15.0": {"/a": 0}, "0.15.1": {"/a": False}}

        self.assertEqual(len(make.histories(releases)["/a"]), 2)


class Differs(unittest.TestCase):
    OURS = {"counts": {"all_reduce float32": [3, 90], "all_reduce uint8": [1, 1]}}

    def test_flags_are_compared_by_their_number(self):
        alike = {"counts": {"all_reduce float32": [3, 90], "all_reduce int32": [1, 1]}}
        fewer = {"counts": {"all_reduce float32": [3, 90]}}

        self.assertFalse(compare.differs(alike, self.OURS))
        self.assertTrue(compare.differs(fewer, self.OURS))

    def test_calls_and_elements_count(self):
        self.assertTrue(compare.differs({"counts": {**self.OURS["counts"], "all_reduce float32": [2, 90]}}, self.OURS))
        self.assertTrue(compare.differs({"counts": {**self.OURS["counts"], "all_reduce float32": [3, 91]}}, self.OURS))

    def test_what_fails_is_not_equal(self):
        self.assertTrue(compare.differs({"fault": "x"}, {"fault": "x"}))


class Cases(unittest.TestCase):
    def test_have_names_of_their_own(self):
        names = [case["name"] for case in compare.cases()]

        self.assertEqual(len(names), len(set(names)))


if __name__ == "__main__":
    unittest.main()
