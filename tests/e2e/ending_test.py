"""However ranks die, mpirun ends, and the exit code is in its file. mpirun is told to survive deaths: without that it ends by itself."""

import os
import signal
import subprocess
import time
import unittest

from support import (DEADLOCK, PROGRAM, SURVIVE, ProgramTest, events, launch_environment, mpi_command, ranks_of,
                     read_json, read_log)

RANKS = 4


class Ending(ProgramTest):
    def start(self, *, wrapper=(), **environment):
        config = self.write_config(self.tiny(dstune={"measure_steps": 30}))
        command = mpi_command(RANKS, config, mpi=SURVIVE)
        at = command.index(PROGRAM)
        self.code_file = self.directory / "exit-code"
        with open(self.directory / "stderr.log", "wb") as log:
            self.launcher = subprocess.Popen(
                [*command[:at], *wrapper, *command[at:]], cwd=self.directory,
                env={**launch_environment(), "DSTUNE_EXIT_CODE_FILE": str(self.code_file),
                     **environment},
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        self.addCleanup(self.launcher.kill)

    def start_and_measure(self):
        self.start()
        path = self.results / "journal.jsonl"
        deadline = time.monotonic() + DEADLOCK
        while not path.exists() or not events(self.results, "finished"):
            self.assertLess(time.monotonic(), deadline, "no record")
            self.assertIsNone(self.launcher.poll(), self.text())
            time.sleep(0.02)
        self.ranks = ranks_of(self.launcher.pid)

    def text(self):
        return read_log(self.directory / "stderr.log")

    def wait_for_the_end(self):
        try:
            self.launcher.wait(DEADLOCK)
        except subprocess.TimeoutExpired:
            for pid in ranks_of(self.launcher.pid).values():
                os.kill(pid, signal.SIGKILL)
            self.fail("mpirun hangs\n" + self.text())

    def exit_code(self):
        return int(self.code_file.read_text(encoding="utf-8"))

    def test_the_switch_alone_is_refused(self):
        """Nobody would end an mpirun whose ranks were all killed at once."""
        alone = {name: value for name, value in launch_environment().items() if name != "DSTUNE_SUPERVISED"}
        config = self.write_config(self.tiny())

        done = subprocess.run(mpi_command(3, config, mpi=SURVIVE), cwd=self.directory, env=alone, timeout=DEADLOCK,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("orte_abort_on_non_zero_status  is 0", done.stderr)
        self.assertIn("DSTUNE_SUPERVISED=1", done.stderr)
        self.assertEqual(done.stderr.count("error:"), 1, done.stderr)
        self.assertFalse(self.results.exists())

    def test_a_full_standard_output_is_an_error(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(mpi_command(3, "--backend", "sim", self.write_config(self.tiny())), cwd=self.directory,
                                  env=launch_environment(), timeout=DEADLOCK, stdin=subprocess.DEVNULL, stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)

        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("cannot write standard output: No space left on device; the results are in", done.stderr)

    def test_after_a_workers_death(self):
        self.start_and_measure()
        os.kill(self.ranks[2], signal.SIGKILL)
        self.wait_for_the_end()
        self.assertEqual(self.exit_code(), read_json(self.results / "status.json")["exit_code"])

    def test_after_rank_zeros_death(self):
        self.start_and_measure()
        os.kill(self.ranks[0], signal.SIGKILL)
        self.wait_for_the_end()
        self.assertFalse(self.code_file.exists())

    def test_after_a_crash_of_rank_zero(self):
        self.start_and_measure()
        os.kill(self.ranks[0], signal.SIGSEGV)
        self.wait_for_the_end()
        self.assertEqual(self.exit_code(), 1)
        self.assertIn("rank 0 crashed (SIGSEGV)", self.text())

    def test_after_the_death_of_all_but_one_worker(self):
        self.start_and_measure()
        for rank in (0, 1, 3):
            os.kill(self.ranks[rank], signal.SIGKILL)
        self.wait_for_the_end()

    def rank_two(self, what):
        """Every rank is the program, but rank 2 is something else."""
        script = self.directory / "rank.sh"
        script.write_text(f'[ "$OMPI_COMM_WORLD_RANK" != 2 ] || {{ {what}; }}\nexec "$@"\n',
                          encoding="utf-8")
        return ("bash", str(script))

    def test_when_a_rank_dies_before_it_met_the_others(self):
        self.start(wrapper=self.rank_two("kill -9 $$"), DSTUNE_START_TIMEOUT="5")
        self.wait_for_the_end()
        # Another rank may have seen it first, and told mpirun to end the job: then it is a signal.
        if self.code_file.exists():  # not if mpirun killed rank 0 first
            self.assertIn(self.exit_code(), (1, 4))
        self.assertRegex(self.text(), "before all ranks had met|was not over after 5 s")
        self.assertFalse(self.results.exists())

    def test_when_a_rank_never_meets_the_others(self):
        self.start(wrapper=self.rank_two("kill -STOP $$"), DSTUNE_START_TIMEOUT="1")
        self.wait_for_the_end()
        if self.code_file.exists():  # not if mpirun killed rank 0 first
            self.assertIn(self.exit_code(), (1, 4))
        self.assertIn("was not over after 1 s", self.text())

    def test_of_a_worker_that_is_stuck_when_rank_zero_dies(self):
        self.start_and_measure()
        os.kill(self.ranks[3], signal.SIGSTOP)
        os.kill(self.ranks[0], signal.SIGKILL)
        self.wait_for_the_end()


if __name__ == "__main__":
    unittest.main()
