"""Each tuning has a folder of its own, unless one is named: a second one works as people expect."""

import json
import os
import shutil
import unittest

from support import PROGRAM, SOURCE, ProgramTest, events, example, mpi_command, outcomes, read_json


class Folders(ProgramTest):
    def setUp(self):
        super().setUp()
        self.latest = self.results / "latest"

    def tune_in_own_folder(self, *arguments):
        finished = self.run_command(mpi_command(3, *arguments, results=None))
        return finished

    def tune_here(self, *arguments):
        finished = self.tune_in_own_folder(*arguments)
        self.assertEqual(finished.returncode, 0, finished.stderr)
        return finished

    def runs(self):
        return sorted(path.name for path in self.results.iterdir() if path.name != "latest")

    def test_a_second_tuning_has_a_folder_beside_the_first(self):
        self.tune_here(example("sim"), "--", "train.py", "ds.json")
        (first,) = self.runs()
        before = {path: path.read_bytes() for path in (self.results / first).rglob("*") if path.is_file()}
        self.assertEqual(os.readlink(self.latest), first)
        self.assertRegex(first, r"\Asim-\d{8}T\d{6}\Z")

        self.tune_here(example("sim"), "--", "train.py", "ds.json")

        runs = self.runs()
        self.assertEqual((len(runs), runs[0]), (2, first))
        self.assertEqual(os.readlink(self.latest), runs[1])
        self.assertEqual({path: path.read_bytes() for path in before}, before)
        self.assertTrue((self.latest / "ds_config_optimal.json").exists())
        self.assertTrue(list((self.latest / "exps").glob("*.json")))
        self.assertIn(f"{self.results.resolve()}/{runs[1]}/ds_config_optimal.json",
                      (self.latest / "cmd_optimal.txt").read_text(encoding="utf-8"))
        self.assertEqual(self.listing(), [name for name in self.listing() if name.startswith("autotuning_results/")])

    def test_resume_goes_on_with_the_last_run(self):
        self.tune_here(example("sim"))
        (run,) = self.runs()

        again = self.tune_here(example("sim"), "--resume")

        self.assertEqual(self.runs(), [run])
        self.assertEqual(len(events(self.latest, "run")), 2)
        self.assertIn("[journal]", again.stderr)

    def copies(self):
        """Two configurations of one name."""
        paths = [self.directory / folder / "ds_config.json" for folder in ("a", "b")]
        for path in paths:
            path.parent.mkdir()
            shutil.copy(example("sim"), path)
            os.symlink(SOURCE / "examples/gpt2", path.parent / "gpt2")
        return paths

    def contents(self, run):
        return {path: path.read_bytes() for path in (self.results / run).rglob("*") if path.is_file()}

    def test_resume_goes_on_with_the_last_run_of_the_configuration_whatever_was_begun_since(self):
        self.tune_here(example("sim"))
        (own,) = self.runs()
        self.tune_here(self.quick_tiny())

        self.tune_here(example("sim"), "--resume")

        self.assertEqual(len(events(self.results / own, "run")), 2)
        self.assertEqual(os.readlink(self.latest), own)

    def test_resume_refuses_the_run_of_another_file_of_the_same_name_and_names_it(self):
        first, second = self.copies()
        self.tune_here(first)
        (run,) = self.runs()

        refused = self.tune_in_own_folder(second, "--resume")

        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn(f"--results-dir with one of autotuning_results/{run} (runs of other", refused.stderr)
        self.tune_here(second, "--resume", "--results-dir", f"autotuning_results/{run}")
        self.assertEqual(len(events(self.results / run, "run")), 2)
        self.assertEqual((self.results / run / "config_file.txt").read_text(encoding="utf-8"), f"{first.resolve()}\n")

    def test_resume_without_a_run_begins_one(self):
        self.tune_here(example("sim"), "--resume")

        self.assertEqual(len(self.runs()), 1)

    def test_overwrite_leaves_the_run_of_another_file_of_the_same_name(self):
        first, second = self.copies()
        self.tune_here(first)
        (run,) = self.runs()
        before = self.contents(run)

        self.tune_here(second, "--overwrite")

        self.assertEqual(len(self.runs()), 2)
        self.assertEqual(self.contents(run), before)

    def test_an_explanation_is_of_the_configurations_own_run_or_says_of_which(self):
        first, second = self.copies()
        self.tune_here(first)
        (run,) = self.runs()
        self.tune_here(self.quick_tiny())
        others = os.readlink(self.latest)
        name = next(iter(outcomes(self.results / run)))

        own = self.run_command([PROGRAM, "--explain", name, str(first)])
        foreign = self.run_command([PROGRAM, "--explain", next(iter(outcomes(self.latest))), str(second)])

        self.assertEqual((own.returncode, "of another" in own.stderr), (0, False), own.stderr)
        self.assertEqual(foreign.returncode, 0, foreign.stderr)
        self.assertIn(f"explaining the last run of another, autotuning_results/{others}", foreign.stderr)

    def test_overwrite_replaces_the_last_run_of_the_configuration(self):
        self.tune_here(example("sim"))
        (run,) = self.runs()

        self.tune_here(example("sim"), "--overwrite")

        self.assertEqual(self.runs(), [run])
        self.assertEqual(len(events(self.latest, "run")), 1)

    def test_results_of_an_earlier_version_stay_and_can_be_gone_on_with(self):
        self.tune_well(3, example("sim"))
        before = (self.results / "journal.jsonl").read_bytes()

        refused = self.tune_in_own_folder(example("sim"), "--resume")
        self.tune_here(example("sim"))

        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("--results-dir autotuning_results", refused.stderr)
        self.assertEqual((self.results / "journal.jsonl").read_bytes(), before)
        self.tune_well(3, example("sim"), "--resume")
        self.assertEqual(len(events(self.results, "run")), 2)

    def test_a_requeued_job_whose_folder_is_not_known_begins_anew(self):
        self.tune_here(example("sim"))

        self.tune_here(example("sim"), "--requeued")

        self.assertEqual(len(self.runs()), 2)

    def test_what_is_no_link_is_left_alone(self):
        self.results.mkdir()
        self.latest.write_text("mine", encoding="utf-8")

        finished = self.tune_here(example("sim"))

        self.assertIn("latest is not a symbolic link", finished.stderr)
        self.assertEqual(self.latest.read_text(encoding="utf-8"), "mine")

    def test_questions_are_of_the_last_run(self):
        self.tune_here(example("sim"))
        name = next(iter(outcomes(self.latest)))
        best = read_json(self.latest / "status.json")["best"]

        for command in (["--status"], ["--status", "autotuning_results"], ["--status", str(self.latest)]):
            asked = self.run_command([PROGRAM, *command])
            self.assertEqual(asked.returncode, 0, asked.stderr)
            self.assertIn(f"best {best}", asked.stdout)
        as_json = self.run_command([PROGRAM, "--status", "--format", "json"])
        self.assertEqual(json.loads(as_json.stdout)["best"], best)
        explained = self.run_command([PROGRAM, "--explain", name, str(example("sim"))])
        self.assertEqual(explained.returncode, 0, explained.stderr)
        checked = self.run_command([PROGRAM, "--check", str(example("sim"))])
        self.assertEqual((checked.returncode, "earlier run" in checked.stderr), (0, False), checked.stderr)


if __name__ == "__main__":
    unittest.main()
