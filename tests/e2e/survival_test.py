"""A worker that dies costs its experiment, not the run."""

import os
import signal
import subprocess
import time
import unittest

from support import (DEADLOCK, SURVIVE, ProgramTest, events, launch_environment, mpi_command, names, outcomes, ranks_of,
                     read_json, read_log)


class WorkerDeath(ProgramTest):
    def wait_for(self, condition, what):
        deadline = time.monotonic() + DEADLOCK
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"{what} did not happen")
            self.assertIsNone(self.run.poll(), f"the run ended before {what}")
            time.sleep(0.02)

    def finished(self):
        path = self.results / "journal.jsonl"
        return len(events(self.results, "finished")) if path.exists() else 0

    def start(self, ranks, *arguments):
        with open(self.directory / "stderr.log", "ab") as log:
            self.run = subprocess.Popen(mpi_command(ranks, *arguments, mpi=SURVIVE),
                                        cwd=self.directory, env=launch_environment(),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=log)
        self.addCleanup(self.run.kill)

    def log(self):
        return read_log(self.directory / "stderr.log")

    def test_the_run_ends_in_order_and_goes_on_with_all_ranks_if_no_other_worker_is_left(self):
        config = self.write_config(self.tiny(dstune={"measure_steps": 15},
                                             zero_optimization={"stage": [0, 1]}))
        self.start(3, config)
        self.wait_for(lambda: self.finished() >= 2, "the second record")
        os.kill(ranks_of(self.run.pid)[2], signal.SIGKILL)
        self.run.wait(DEADLOCK)
        status = read_json(self.results / "status.json")
        done = names(events(self.results, "finished"))

        self.start(3, config, "--resume")
        self.run.wait(DEADLOCK)

        self.assertEqual((status["status"], status["exit_code"], status["restart"]),
                         ("interrupted", 4, "worker_lost"), self.log())
        self.assertIn("needs a group of 2 workers, but only 1 is left", status["message"])
        self.assertIn("--ranks-per-experiment 1 --resume", status["message"])
        self.assertEqual(read_json(self.results / "status.json")["status"], "found", self.log())
        self.assertEqual(names(events(self.results, "finished"))[:len(done)], done)
        self.assertEqual(len(events(self.results, "finished")), 6, self.log())
        self.assertNotIn("restart", read_json(self.results / "status.json"))

    def test_the_run_goes_on_with_the_other_workers(self):
        config = self.write_config(self.tiny(dstune={"measure_steps": 30,
                                                     "ranks_per_experiment": 1},
                                             zero_optimization={"stage": [0, 1]}))
        self.start(4, config)
        self.wait_for(lambda: self.finished() >= 2, "the second record")

        os.kill(ranks_of(self.run.pid)[2], signal.SIGKILL)
        self.run.wait(DEADLOCK)

        text = self.log()
        self.assertEqual(read_json(self.results / "status.json")["exit_code"], 0, text)
        results = outcomes(self.results)
        # Several ran side by side, so the best of every stage ran once more, alone.
        self.assertEqual(len([name for name in results if not name.endswith("_alone")]), 6, text)
        self.assertEqual({outcome["status"] for outcome in results.values()}, {"measured"}, text)
        self.assertTrue((self.results / "ds_config_optimal.json").exists())


if __name__ == "__main__":
    unittest.main()
