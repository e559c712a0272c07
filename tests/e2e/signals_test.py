#!/usr/bin/env python3
"""A signal ends a run with its results written and a hint how to go on; a pause is only a pause.

usage: signals_test.py             the tests
       signals_test.py --table     every signal in every way: what happens, seconds, exit code
"""

import json
import os
import pty
import select
import signal
import sys
import tempfile
import time
import unittest
import pathlib

from kill_anything import CONFIG, measured, wait_until
from processes import MARK, Processes, new_mark
from support import MPIEXEC, PROGRAM, SOURCE, launch_environment, read_json, read_log
from ways import Mpirun, Tune

RANKS = 3
PATIENCE = 120
KEYS = {"INT": b"\x03", "TSTP": b"\x1a", "QUIT": b"\x1c"}
SIGNALS = ("INT", "TERM", "HUP", "USR1", "USR2")
ENDLESS = 500  # steps per experiment: the run is under way when the signal comes
SHORT = 200  # it ends by itself after a pause, and not before it


def write_config(directory, steps):
    config = json.loads(json.dumps(CONFIG))
    config["dstune"]["measure_steps"] = steps
    config["train_micro_batch_size_per_gpu"] = [1]
    path = directory / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


class Terminal:
    """scripts/tune.sh, without the part that builds, typed into an interactive shell."""

    name = "tune.sh in a terminal"

    def __init__(self, directory, config):
        self.directory = directory
        self.mark = new_mark()
        self.output = b""
        self.answer = b"\ncode="
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.chdir(directory)
            environment = launch_environment() | {MARK: self.mark, "TMPDIR": str(directory), "PS1": "", "PS2": ""}
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)
        # What the shell prints back is not what was typed.
        self.type(f"'{SOURCE}/scripts/supervise.sh' '{MPIEXEC}' --oversubscribe --bind-to none -n {RANKS} -- "
                  f"'{PROGRAM}' '{config}'; echo \"co\"de=$?\n")

    def type(self, text):
        os.write(self.terminal, text if isinstance(text, bytes) else text.encode())

    def read(self):
        while select.select([self.terminal], [], [], 0)[0]:
            try:
                chunk = os.read(self.terminal, 65536)
            except OSError:
                return
            if not chunk:
                return
            self.output += chunk

    def supervisor(self):
        children = (pathlib.Path(f"/proc/{self.child}/task/{self.child}/children")).read_text().split()
        return int(children[0])

    def send(self, name):
        if name in KEYS:
            self.type(KEYS[name])
        elif name == "HUP":
            os.close(self.terminal)
            self.terminal = None
        else:
            os.kill(self.supervisor(), getattr(signal, f"SIG{name}"))

    def proceed(self):
        self.answer = b"\nresumed="  # the list of the first command ends when it is stopped
        self.type("fg; echo \"resu\"med=$?\n")

    def is_over(self):
        if self.terminal is None:
            return not Processes(self.mark)
        self.read()
        return self.answer in self.output.replace(b"\r", b"")

    def exit_code(self):
        if self.terminal is None:
            return None
        return int(self.output.replace(b"\r", b"").rsplit(self.answer, 1)[1].split()[0])

    def log(self):
        return self.output.decode(errors="replace")

    def processes(self):
        found = Processes(self.mark)
        found.found.pop(self.child, None)
        return found

    def clean_up(self):
        for pid in Processes(self.mark).found:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(self.child, 0)
        if self.terminal is not None:
            os.close(self.terminal)


class Plain:
    """The same started by another program, or mpirun alone."""

    def __init__(self, way, directory, config):
        self.run = way.start(directory, RANKS, config)
        self.directory = directory
        self.name = way.name
        self.is_over = self.run.is_over
        self.exit_code = self.run.exit_code
        self.processes = self.run.processes
        self.clean_up = self.run.clean_up

    def send(self, name):
        self.run.process.send_signal(getattr(signal, f"SIG{name}"))

    def supervisor(self):
        """whom a shell stops"""
        return self.run.process.pid

    def proceed(self):
        self.run.process.send_signal(signal.SIGCONT)

    def log(self):
        return read_log(self.directory / "stderr.log")


def tune(directory, config):
    return Plain(Tune(), directory, config)


def mpirun(directory, config):
    return Plain(Mpirun(), directory, config)


def is_stopped(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "Tt"


class Observation:
    """What one signal did to one run."""

    def __init__(self, start, name):
        with tempfile.TemporaryDirectory(prefix="dstune-signal-", ignore_cleanup_errors=True) as folder:
            self.directory = pathlib.Path(folder)
            self.results = self.directory / "autotuning_results" / "latest"
            run = start(self.directory, write_config(self.directory, SHORT if name == "TSTP" else ENDLESS))
            try:
                self.observe(run, name)
            finally:
                run.clean_up()

    def observe(self, run, name):
        if wait_until(lambda: measured(self.results) or run.is_over(), PATIENCE) is None or run.is_over():
            raise AssertionError(f"the run did not begin:\n{run.log()}")
        began = time.monotonic()
        run.send(name)
        self.paused = None
        if name == "TSTP":
            paused = [pid for pids in run.processes().ranks().values() for pid in pids] + [run.supervisor()]
            self.paused = wait_until(lambda: all(is_stopped(pid) for pid in paused), 10) is not None
            run.proceed()
        self.ended = wait_until(run.is_over, PATIENCE) is not None
        self.seconds = time.monotonic() - began
        self.gone = wait_until(lambda: not run.processes(), 25) is not None
        self.left = str(run.processes())
        self.code = run.exit_code() if self.ended else None
        self.log = run.log()
        self.hint = "--resume" in self.log
        self.status = read_json(self.results / "status.json")["status"]
        self.optimum = (self.results / "summary.txt").exists()


def table():
    ways = {"tune.sh": tune, "tune.sh in a terminal": Terminal, "mpirun": mpirun}
    print("| signal to | signal | status.json | seconds | exit code | hint | processes left |")
    print("|---|---|---|---:|---:|---|---|")
    for way, start in ways.items():
        for name in (*SIGNALS, "TSTP"):
            seen = Observation(start, name)
            paused = "" if seen.paused is None else ", then CONT" + ("" if seen.paused else " (NOT PAUSED)")
            print(f"| {way} | {name}{paused} | {seen.status} | {seen.seconds:.1f} | {seen.code} | "
                  f"{'yes' if seen.hint else 'no'} | {seen.left or 'none'} |", flush=True)
            if "-v" in sys.argv:
                print(seen.log)


class Signals(unittest.TestCase):
    def assert_interrupted(self, seen):
        self.assertTrue(seen.ended, seen.log)
        self.assertTrue(seen.gone, seen.left)
        self.assertEqual(seen.status, "interrupted", seen.log)
        self.assertTrue(seen.optimum, "the results were not written")

    def test_each_signal_ends_the_run_resumably(self):
        for name in SIGNALS:
            with self.subTest(name):
                seen = Observation(tune, name)

                self.assert_interrupted(seen)
                self.assertEqual(seen.code, 4, seen.log)
                self.assertTrue(seen.hint, seen.log)

    def test_control_c_in_a_terminal_is_one_signal(self):
        seen = Observation(Terminal, "INT")

        self.assert_interrupted(seen)
        self.assertEqual(seen.code, 4, seen.log)
        self.assertTrue(seen.hint, seen.log)

    def test_closing_the_terminal_writes_the_results(self):
        seen = Observation(Terminal, "HUP")

        self.assert_interrupted(seen)

    def test_a_pause_is_no_end(self):
        for start in (tune, Terminal):
            with self.subTest(start.__name__):
                seen = Observation(start, "TSTP")

                self.assertTrue(seen.paused, seen.log)
                self.assertEqual(seen.code, 0, seen.log)
                self.assertEqual(seen.status, "found")


if __name__ == "__main__":
    if "--table" in sys.argv:
        table()
    else:
        unittest.main()
