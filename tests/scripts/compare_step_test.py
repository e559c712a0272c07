"""scripts/compare_step_with_torch.py as far as it runs without PyTorch."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

SCRIPT = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "scripts" / "compare_step_with_torch.py"


def load():
    spec = importlib.util.spec_from_file_location("compare_step", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


compare = load()


def case(ours, theirs, micro_batch=1):
    return compare.Case("gpt2", micro_batch, ours, theirs)


class RankCorrelation(unittest.TestCase):
    def test_is_of_the_order_alone(self):
        self.assertAlmostEqual(compare.spearman([1, 2, 3], [10, 400, 401]), 1)
        self.assertAlmostEqual(compare.spearman([1, 2, 3], [3, 2, 1]), -1)

    def test_is_1_less_6_sums_of_squares_over_n_cubed_less_n(self):
        self.assertAlmostEqual(compare.spearman([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]), 1 - 6 * 4 / 120)

    def test_equal_values_share_a_rank(self):
        self.assertEqual(compare.ranks([5, 7, 5, 9]), [1.5, 3, 1.5, 4])

    def test_is_not_defined_for_one_pair_or_a_constant(self):
        self.assertIsNone(compare.spearman([1], [1]))
        self.assertIsNone(compare.spearman([1, 1], [1, 2]))


class Verdicts(unittest.TestCase):
    def test_a_ratio_is_ours_over_theirs_and_may_be_off_by_15_percent(self):
        self.assertEqual(case(0.2, 0.1).ratio(), 2)
        self.assertEqual([case(ours, 1).verdict() for ours in (0.84, 0.85, 1.15, 1.16)],
                         ["missed", "met", "met", "missed"])

    def test_out_of_memory_on_one_side_is_shown_and_not_judged(self):
        text = compare.table([case(None, 0.1), case(0.1, None)])

        self.assertIn("| gpt2 | 1 | out of memory | 100.00 |  |", text)
        self.assertIn("| gpt2 | 1 | 100.00 | out of memory |  |", text)
        self.assertEqual(text.count("not judged"), 2)

    def test_all_aims_are_met_if_ratios_and_order_are(self):
        text, met = compare.conclusion([case(1, 1), case(2.2, 2), case(None, 3)])

        self.assertTrue(met)
        self.assertIn("2 cases: ratios 1.000 to 1.100 (aim 0.85 to 1.15), rank correlation 1.000", text)

    def test_one_ratio_outside_or_a_wrong_order_misses(self):
        self.assertFalse(compare.conclusion([case(1, 1), case(1.2, 1)])[1])
        self.assertFalse(compare.conclusion([case(1.01, 1), case(1, 1.01)])[1])

    def test_nothing_in_common_is_no_success(self):
        self.assertEqual(compare.conclusion([case(None, 1)]), ("no case ran on both sides", False))


class Pairs(unittest.TestCase):
    def options(self, program):
        return compare.parse([program, "--backend", "cpu", "--model", "gpt2", "--micro-batch", "1", "2",
                              "--sequence", "64", "--steps", "3", "--fp32"])

    def compare_with(self, script):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "bench_gpu_step"
            program.write_text(script, encoding="utf-8")
            program.chmod(0o755)
            torch_side = types.SimpleNamespace(step_times=lambda model, micro_batch: (micro_batch, 10.5))
            return list(compare.compare(self.options(str(program)), torch_side))

    def test_every_case_is_run_on_both_sides(self):
        cases = self.compare_with('#!/bin/sh\n[ "$*" = "--json --backend cpu --model gpt2 --micro-batch $7 '
                                  '--sequence 64 --steps 3 --threads 1 --fp32" ] || exit 1\n'
                                  'echo \'{"step_s": \'$7\', "first_loss": 10.8}\'\n')

        self.assertEqual([(each.micro_batch, each.ratio()) for each in cases], [(1, 1), (2, 1)])
        self.assertEqual(cases[0].losses, (10.8, 10.5))

    def test_a_program_that_fails_is_an_error_with_its_words(self):
        with self.assertRaisesRegex(RuntimeError, "exit code 2: no GPU"):
            self.compare_with("#!/bin/sh\necho no GPU >&2\nexit 2\n")


class WithoutTorch(unittest.TestCase):
    def run_script(self, program):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run([sys.executable, "-B", "-I", str(SCRIPT), program], text=True, cwd=folder,
                                  capture_output=True, check=False)

    @unittest.skipIf(importlib.util.find_spec("torch"), "PyTorch is installed")
    def test_says_that_nothing_was_compared(self):
        finished = self.run_script("/bin/true")

        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertIn("not compared: torch", finished.stdout)

    def test_a_program_that_is_not_there_is_wrong_usage(self):
        finished = self.run_script("/nowhere/bench_gpu_step")

        self.assertEqual(finished.returncode, 2)
        self.assertIn("/nowhere/bench_gpu_step cannot be run", finished.stderr)


if __name__ == "__main__":
    unittest.main()
