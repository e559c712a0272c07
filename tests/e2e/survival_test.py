"""A worker that dies costs its experiment, not the run."""

import os
import signal
import subprocess
import time
import unittest

from support import (DEADLOCK, SURVIVE, ProgramTest, events, launch_environment, mpi_command,
                     outcomes, ranks_of, read_json)


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

    def test_the_run_goes_on_with_the_other_workers(self):
        config = self.write_config(self.tiny(dstune={"measure_steps": 30,
                                                     "ranks_per_experiment": 1},
                                             zero_optimization={"stage": [0, 1]}))
        with open(self.directory / "stderr.log", "wb") as log:
            self.run = subprocess.Popen(mpi_command(4, config, mpi=SURVIVE), cwd=self.directory,
                                        env=launch_environment(), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=log)
        self.addCleanup(self.run.kill)
        self.wait_for(lambda: self.finished() >= 2, "the second record")

        os.kill(ranks_of(self.run.pid)[2], signal.SIGKILL)
        self.run.wait(DEADLOCK)

        text = (self.directory / "stderr.log").read_text(encoding="utf-8", errors="replace")
        self.assertEqual(read_json(self.results / "status.json")["exit_code"], 0, text)
        results = outcomes(self.results)
        # Several ran side by side, so the best of every stage ran once more, alone.
        self.assertEqual(len([name for name in results if not name.endswith("_alone")]), 7, text)
        self.assertEqual({outcome["status"] for outcome in results.values()}, {"measured"}, text)
        self.assertTrue((self.results / "ds_config_optimal.json").exists())


if __name__ == "__main__":
    unittest.main()
