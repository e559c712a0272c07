"""What is to be seen at once: the first line, a line for each experiment, the status of a run that has just begun."""

import contextlib
import fcntl
import json
import os
import re
import struct
import subprocess
import termios
import threading
import time
import unittest

from support import DEADLOCK, PROGRAM, SOURCE, ProgramTest, launch_environment, mpi_command, read_json

COLUMNS = 100
STAYS = 60  # seconds that a search takes which is to be looked at while it runs


class Progress(ProgramTest):
    def run_on_a_terminal(self, command, columns=None):
        """@returns the exit code, and what a terminal gets on standard error; where it has columns, on stdout, too"""
        ours, theirs = os.openpty()
        if columns is not None:
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
        seen = []
        def read():
            with contextlib.suppress(OSError):  # when nobody has the other end any more
                while data := os.read(ours, 4096):
                    seen.append(data)
        reader = threading.Thread(target=read)
        reader.start()
        done = subprocess.run(command, cwd=self.directory, env=launch_environment() | {"TERM": "xterm"},
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL if columns is None else theirs,
                              stderr=theirs, timeout=DEADLOCK, check=False)
        os.close(theirs)
        reader.join(DEADLOCK)
        os.close(ours)
        return done.returncode, b"".join(seen).decode("utf-8", "replace")

    def test_no_line_of_progress_is_wider_than_a_terminal(self):
        log = self.tune_well(3, self.quick_tiny()).stderr.splitlines()

        self.assertTrue(log[0].startswith("dstune-mpi: tuning "), log)
        first = next(i for i, line in enumerate(log) if line.startswith("first: "))
        measured = [i for i, line in enumerate(log) if re.match(r"\[\d+", line)]
        self.assertLess(first, measured[0])
        self.assertGreater(len(measured), 5)
        for i in (0, first, *measured):
            self.assertLessEqual(len(log[i]), COLUMNS, log[i])
        self.assertNotIn("\033", "".join(log))

    def test_none_says_nothing_of_experiments(self):
        log = self.tune_well(3, "--progress", "none", self.quick_tiny()).stderr

        self.assertNotRegex(log, r"(?m)^(\[\d+|first: )")
        self.assertIn("\nbest: ", log)

    def supervised(self, *arguments):
        command = mpi_command(3, *arguments)
        program = command.index(PROGRAM)
        return [SOURCE / "scripts" / "supervise.sh", *command[:program], "--", *command[program:]]

    def test_a_narrow_terminal_has_no_need_to_break_words(self):
        code, seen = self.run_on_a_terminal(self.supervised(self.quick_tiny()), columns=80)

        self.assertEqual(code, 0, seen)
        lines = [line.strip() for line in re.split(r"[\r\n]+", re.sub(r"\033\[\??[0-9]*[a-zA-Z]", "", seen))]
        self.assertEqual([line for line in lines if len(line) > 80 and " " in line], [])
        self.assertTrue(any(line.startswith("|  *1 | ") for line in lines), seen)

    def test_a_terminal_behind_the_supervisor_gets_a_line_that_is_rewritten(self):
        code, seen = self.run_on_a_terminal(self.supervised(self.quick_tiny()))

        self.assertEqual(code, 0, seen)
        self.assertIn("\r\033[K\033[?7l[", seen)
        self.assertRegex(seen, r"\r\033\[K\[\d+(/~\d+)? \d+s\] ")
        self.assertTrue(seen.rstrip().rsplit("\033[?7h\r", 1)[1].startswith("\r\033[K"), "it is taken away at the end")

    def test_the_status_is_there_before_the_first_experiment_ends(self):
        config = self.write_config(self.tiny(dstune={"warmup_seconds": STAYS, "experiment_timeout": 10 * STAYS}))
        run = subprocess.Popen(mpi_command(3, config), cwd=self.directory, env=launch_environment(),
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(run.wait, DEADLOCK)
        self.addCleanup(run.terminate)
        path = self.results / "status.json"
        deadline = time.monotonic() + STAYS / 2
        while time.monotonic() < deadline and not (path.exists() and read_json(path)["running"]):
            time.sleep(0.05)

        asked = self.run_command([PROGRAM, "--status", str(self.results)])
        status = json.loads(self.run_command([PROGRAM, "--status", str(self.results), "--format", "json"]).stdout)

        self.assertRegex(asked.stdout, r"\Arunning: 0 (of about \d+ )?experiments in \d+ s")
        self.assertRegex(asked.stdout, r"(?m)^  runs now: \w+ since ")
        self.assertEqual((status["life"], status["experiments"], status["best_numbers"]), ("running", 0, None))
        self.assertEqual(len(status["running"]), 1)


if __name__ == "__main__":
    unittest.main()
