"""scripts/gpu_tuning.py as far as it runs without a GPU."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "scripts" / "gpu_tuning.py"


def load():
    spec = importlib.util.spec_from_file_location("gpu_tuning", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tuning = load()


def record(stage, micro_batch, status, started, finished, measure_time=0.0):
    outcome = {"status": status}
    if status == "measured":
        outcome.update(warmup_time_s=0.25 * measure_time, measure_time_s=0.75 * measure_time)
    ds_config = {"train_micro_batch_size_per_gpu": micro_batch, "zero_optimization": {"stage": stage}}
    return {"type": "finished", "experiment": {"ds_config": ds_config}, "outcome": outcome,
            "started_s": started, "finished_s": finished}


RECORDS = [record(0, 1, "measured", 10, 14, 3), record(0, 4, "measured", 14, 20, 5),
           record(0, 8, "out_of_memory", 20, 21), record(1, 2, "measured", 21, 30, 8)]


class OfARun(unittest.TestCase):
    def test_figures_are_of_the_time_from_the_first_start_to_the_last_end(self):
        figures = tuning.Figures(RECORDS)

        self.assertEqual((figures.wall, figures.measured), (20, 3))
        self.assertEqual((figures.per_minute, figures.share), (12, 0.8))

    def test_a_stage_shows_what_ran_and_what_did_not(self):
        text = tuning.tuning_table(tuning.Figures(RECORDS), 6)

        self.assertIn("| 0 | 4 | 8 | 6 |", text)
        self.assertIn("| 1 | 2 | none | 6 |", text)
        self.assertIn("| 80.0 % | 80 % | met |", text)

    def test_only_finished_experiments_of_a_journal_count(self):
        journal = [json.dumps(RECORDS[0]), '{"type": "started"}', '{"type": "fini', "3"]

        self.assertEqual(tuning.finished_records(journal), RECORDS[:1])


class LargestThatFits(unittest.TestCase):
    def test_is_found_whatever_it_is(self):
        for largest in range(70):
            self.assertEqual(tuning.largest_that_fits(lambda n, most=largest: n <= most), largest)

    def test_asks_seldom(self):
        asked = []
        tuning.largest_that_fits(lambda n: asked.append(n) or n <= 21)

        self.assertEqual(asked, [1, 2, 4, 8, 16, 32, 24, 20, 22, 21])


class Growth(unittest.TestCase):
    def test_is_from_the_second_tenth_to_the_last(self):
        self.assertEqual(tuning.growth([5, 5, 100, 100] + [0] * 14 + [103, 103]), 3)
        self.assertEqual(tuning.growth([7] * 50), 0)

    def test_needs_samples(self):
        self.assertIsNone(tuning.growth([1] * 19))


class Runs(unittest.TestCase):
    def run_script(self, mpirun):
        with tempfile.TemporaryDirectory() as folder:
            launcher = pathlib.Path(folder) / "mpirun"
            launcher.write_text(mpirun, encoding="utf-8")
            launcher.chmod(0o755)
            return subprocess.run([sys.executable, "-B", str(SCRIPT), "dstune-mpi", "--backend", "cpu",
                                   "--mpirun", str(launcher)], text=True, capture_output=True, check=False)

    def test_both_tunings_are_reported(self):
        finished = self.run_script(
            '#!/bin/sh\nmkdir -p "$8"\n'
            f"printf '%s\\n' '{json.dumps(record(0, 1, 'measured', 0, 10, 9))}' >\"$8/journal.jsonl\"\n")

        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertIn("| 90.0 % | 80 % | met |", finished.stdout)
        self.assertIn("| 0 | 1 | none | not asked |", finished.stdout)
        self.assertIn("Memory over 1 experiments: ", finished.stdout)

    def test_a_run_that_fails_is_named_with_its_last_words(self):
        finished = self.run_script("#!/bin/sh\necho no GPU >&2\nexit 2\n")

        self.assertEqual(finished.returncode, 2)
        self.assertIn("exit code 2: no GPU", finished.stderr)


if __name__ == "__main__":
    unittest.main()
