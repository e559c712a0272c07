"""Signals to mpirun: which of them stop the run, and what a stopped run leaves behind."""

import signal
import subprocess
import time
import unittest

from support import DEADLOCK, ProgramTest, events, launch_environment, mpi_command, read_json, read_log

ENDLESS = 1000  # steps per experiment: mpirun hands SIGTERM on after odls_base_sigkill_timeout seconds


class Stop(ProgramTest):
    def start(self, *, mpi=(), **dstune):
        config = self.write_config(self.tiny(dstune=dstune,
                                             zero_optimization={"stage": [0]}))
        self.log = open(self.directory / "stderr.log", "wb")
        self.addCleanup(self.log.close)
        self.launcher = subprocess.Popen(mpi_command(3, config, mpi=mpi), cwd=self.directory,
                                         env=launch_environment(), stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=self.log)
        self.addCleanup(self.launcher.kill)

    def wait_for(self, kind):
        path = self.results / "journal.jsonl"
        deadline = time.monotonic() + DEADLOCK
        while not path.exists() or not events(self.results, kind):
            self.assertLess(time.monotonic(), deadline, "no record")
            self.assertIsNone(self.launcher.poll(), self.text())
            time.sleep(0.02)

    def text(self):
        return read_log(self.directory / "stderr.log")

    def check_that_it_stops(self, stop, *, mpi=()):
        self.start(mpi=mpi, measure_steps=ENDLESS)
        self.wait_for("started")

        self.launcher.send_signal(stop)
        self.launcher.wait(DEADLOCK)

        status = read_json(self.results / "status.json")
        self.assertEqual((status["exit_code"], status["status"]), (4, "interrupted"), self.text())
        self.assertIn("--resume", status["message"])

    def test_a_signal_stops_the_run_which_can_be_resumed(self):
        self.check_that_it_stops(signal.SIGUSR1)
        self.assertEqual(self.launcher.returncode, 4)

    def test_the_other_user_signal_does_the_same(self):
        self.check_that_it_stops(signal.SIGUSR2)

    def test_mpirun_that_is_told_to_end_leaves_time_for_the_results(self):
        self.check_that_it_stops(signal.SIGTERM, mpi=("--mca", "odls_base_sigkill_timeout", "3"))

    def test_a_pause_is_no_stop(self):
        self.start(measure_steps=2)
        self.wait_for("finished")

        self.launcher.send_signal(signal.SIGTSTP)
        self.launcher.send_signal(signal.SIGCONT)
        self.launcher.wait(DEADLOCK)

        status = read_json(self.results / "status.json")
        self.assertEqual((self.launcher.returncode, status["status"]), (0, "found"), self.text())


if __name__ == "__main__":
    unittest.main()
