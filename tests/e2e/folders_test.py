"""Each tuning has a folder of its own, unless one is named: a second one works as people expect."""

import json
import os
import unittest

from support import PROGRAM, ProgramTest, events, example, mpi_command, outcomes, read_json


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

    def test_resume_refuses_the_last_run_of_another_configuration_and_names_all(self):
        self.tune_here(example("sim"))
        self.tune_here(self.quick_tiny())
        first, second = sorted(self.runs(), key=lambda name: name.startswith("sim"))[::-1]

        refused = self.tune_in_own_folder(example("sim"), "--resume")

        self.assertEqual(refused.returncode, 2, refused.stderr)
        for name in (first, second):
            self.assertIn(f"autotuning_results/{name}", refused.stderr)
        self.tune_here(example("sim"), "--resume", "--results-dir", f"autotuning_results/{first}")
        self.assertEqual(len(events(self.results / first, "run")), 2)
        self.assertEqual(os.readlink(self.latest), first)

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

        self.assertIn("latest is no link", finished.stderr)
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
