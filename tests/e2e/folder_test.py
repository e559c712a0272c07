"""A results folder is never harmed: neither other people's files nor the run's own records."""

import os
import shutil
import signal
import subprocess
import time
import unittest

from support import (DEADLOCK, PROGRAM, ProgramTest, events, example, journal, launch_environment, mpi_command, names,
                     read_json, read_log)

OTHERS = (".git/HEAD", ".git/objects/ab/cd", "checkpoints/global_step10/states.pt", "thesis.tex",
          "z9_gas1_tmbspg1/exp.json", "z0_gas4_tmbspg1/plot.png")


class Folder(ProgramTest):
    def put(self, name, text="mine"):
        path = self.results / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def contents(self):
        return {name: (self.directory / name).read_bytes() for name in self.listing()}

    def assert_refused(self, option, words):
        before = self.contents()
        finished = self.tune(3, example("sim"), *option)
        self.assertEqual(finished.returncode, 2, finished.stderr)
        self.assertIn(words, finished.stderr)
        self.assertEqual(finished.stderr.count("error:"), 1, finished.stderr)
        self.assertEqual(self.contents(), before)

    def test_other_peoples_folder_is_not_touched(self):
        for name in (*OTHERS, "summary.txt", "ds_config_optimal.json"):
            self.put(name)

        for option in ([], ["--resume"], ["--overwrite"]):
            self.assert_refused(option, "another --results-dir")

    def test_other_peoples_journal_is_not_touched(self):
        mine = self.directory / "mine.jsonl"
        mine.write_text("one line\n", encoding="utf-8")
        self.results.mkdir()
        path = self.results / "journal.jsonl"
        for make in (lambda: path.write_text("one line", encoding="utf-8"),
                     lambda: path.symlink_to(mine), lambda: os.mkfifo(path)):
            make()
            if path.is_fifo():
                finished = self.tune(3, example("sim"), "--resume")
                self.assertEqual(finished.returncode, 2, finished.stderr)
                self.assertIn("FIFO", finished.stderr)
                self.assertTrue(path.is_fifo())
            else:
                self.assert_refused(["--resume"], "journal.jsonl")
                self.assert_refused(["--overwrite"], "journal.jsonl")
            path.unlink()

    def test_overwrite_keeps_and_names_what_is_not_its_own(self):
        self.tune_well(3, example("sim"))
        others = [self.put(name) for name in OTHERS]

        finished = self.tune_well(3, example("sim"), "--overwrite")

        self.assertEqual([path.read_text(encoding="utf-8") for path in others],
                         ["mine"] * len(others))
        for name in (".git", "checkpoints", "thesis.tex"):
            self.assertIn(name, finished.stderr)
        self.assertEqual(len(events(self.results, "run")), 1)

    def test_a_damaged_line_is_measured_again(self):
        self.tune_well(3, example("sim"))
        path = self.results / "journal.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        before = sorted(names(events(self.results, "finished")))
        number = next(i for i, line in enumerate(lines) if b'"finished"' in line)
        lines[number] = lines[number].replace(b'"samples_per_s":', b'"samples_per_s":9', 1)
        path.write_bytes(b"".join(lines))

        finished = self.tune_well(3, example("sim"), "--resume")

        self.assertIn(f"line {number + 1} is damaged (its checksum does not match); skipped",
                      finished.stderr)
        self.assertEqual(sorted(names(events(self.results, "finished"))), before)
        self.assertEqual((self.results / "journal.jsonl.bak").read_bytes(), b"".join(lines))

    def test_a_run_that_fails_says_how_much_it_had_done(self):
        self.tune_well(3, example("sim"))
        last = self.results / names(events(self.results, "finished"))[-1]
        shutil.rmtree(last)
        last.touch()  # where its folder would be

        finished = self.tune(3, example("sim"), "--resume")

        status = read_json(self.results / "status.json")
        self.assertEqual((finished.returncode, status["status"]), (1, "failed"), finished.stderr)
        self.assertIn(last.name, status["message"])
        self.assertGreater(status["experiments"], 0)


class LivingRun(ProgramTest):
    def start(self):
        # It must still run when a program that was started meanwhile, on a busy machine, looks at it.
        config = self.write_config(self.tiny(dstune={"measure_steps": 15},
                                             zero_optimization={"stage": [0, 1]}))
        log = open(self.directory / "stderr.log", "wb")
        self.addCleanup(log.close)
        self.run = subprocess.Popen(mpi_command(3, config), cwd=self.directory,
                                    env=launch_environment(), stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=log)
        self.addCleanup(self.run.kill)
        self.wait_for(1)

    def wait_for(self, records):
        path = self.results / "journal.jsonl"
        deadline = time.monotonic() + DEADLOCK
        while not path.exists() or len(events(self.results, "finished")) < records:
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(self.run.poll(), self.log())
            time.sleep(0.02)

    def log(self):
        return read_log(self.directory / "stderr.log")

    def status(self):
        finished = self.run_command([PROGRAM, "--status", str(self.results)])
        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.said = finished.stdout
        return finished.stdout.split(":")[0]

    def test_status_tells_the_running_the_dead_and_the_finished_apart(self):
        self.start()
        running = self.status()
        said = self.said
        rank_0 = read_json(self.results / "status.json")["process"]["pid"]
        os.kill(rank_0, signal.SIGKILL)
        self.run.wait(DEADLOCK)
        dead = self.status()
        self.tune_well(3, self.directory / "config.json", "--resume")

        self.assertEqual([running, dead, self.status()], ["running", "dead", "finished"])
        self.assertRegex(said, r"\Arunning: \d+ (of about \d+ )?experiments? in \d+ s")
        self.assertIn("\n  runs now: ", said)

    def test_a_deleted_journal_is_written_anew(self):
        self.start()
        (self.results / "journal.jsonl").unlink()
        self.run.wait(DEADLOCK)

        self.assertEqual(self.run.returncode, 0, self.log())
        self.assertIn("nothing is lost", self.log())
        self.assertEqual(journal(self.results)[0]["type"], "run")
        self.assertEqual(len(events(self.results, "finished")), 6)

    def test_an_interrupted_run_says_that_its_optimum_is_provisional(self):
        self.start()
        rank_0 = read_json(self.results / "status.json")["process"]["pid"]
        os.kill(rank_0, signal.SIGUSR1)
        self.run.wait(DEADLOCK)
        provisional = self.results / "ds_config_provisional.json"
        interrupted = [provisional.exists(), (self.results / "ds_config_optimal.json").exists(),
                       read_json(self.results / "status.json")["provisional"]]
        self.assertIn("provisional", self.log())

        self.tune_well(3, self.directory / "config.json", "--resume")

        self.assertEqual(interrupted, [True, False, True])
        self.assertFalse(provisional.exists())
        self.assertTrue((self.results / "ds_config_optimal.json").exists())


if __name__ == "__main__":
    unittest.main()
