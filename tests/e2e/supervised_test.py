"""scripts/supervise.sh and the program together: where nothing can be written, however a file says where results go."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

from kill_anything import wait_until
from support import DEADLOCK, MPIEXEC, PROGRAM, SOURCE, ProgramTest, events, launch_environment, read_json, read_log
from ways import Tune

NAMESPACES = os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], check=False,
                                                  capture_output=True).returncode == 0


def as_user_starts_it():
    return {name: value for name, value in launch_environment().items() if name != "DSTUNE_SUPERVISED"}


class Resumed(ProgramTest):
    def test_one_line_with_links_and_escapes_is_resumed(self):
        """The results folder is not to be read out of such a file but by a JSON parser."""
        config = self.tiny(autotuning={"results_dir": "r\u00e9sultats \"1\""}, dstune={"measure_steps": 20},
                           zero_optimization={"stage": [0, 1]},
                           wandb={"enabled": False, "project": "http://a//b \"results_dir\": \"no\""})
        path = self.write_config("// results_dir\n" + json.dumps(config))
        results = self.directory / "r\u00e9sultats \"1\""
        run = Tune().start(self.directory, 3, path)
        self.addCleanup(run.clean_up)
        self.assertIsNotNone(wait_until(lambda: (results / "journal.jsonl").exists() and events(results, "finished"),
                                        DEADLOCK), self.log())

        for pid in run.processes().ranks()[0]:
            os.kill(pid, signal.SIGKILL)
        self.assertIsNotNone(wait_until(run.is_over, DEADLOCK), self.log())

        self.assertEqual(run.exit_code(), 0, self.log())
        self.assertIn("starting again (1 of 3)", self.log())
        self.assertEqual(read_json(results / "status.json")["status"], "found")

    def log(self):
        return read_log(self.directory / "stderr.log")


class Terminals(ProgramTest):
    """What a stranger's file says is shown, not obeyed: escape sequences, C1 controls, turned text."""

    TRICK = "\u001b[31m\u009b2J\u202e\u2066x"

    def assert_harmless(self, text, what):
        bad = [letter for letter in text if letter != "\n" and not letter.isprintable()]
        self.assertEqual(bad, [], what)

    def test_no_command_hands_on_what_they_would_obey(self):
        results = self.directory / f"r{self.TRICK}"
        config = self.write_config(self.tiny(
            autotuning={"results_dir": results.name, "arg_mappings": {self.TRICK: "--flag"}},
            wandb={"enabled": False, "project": self.TRICK}))
        wrong = self.write_config(self.tiny(zero_optimization={self.TRICK: self.TRICK}), "wrong.json")
        train = ("--run", "--", "sh", "-c", f"exit 9 # {self.TRICK}")
        supervise = [SOURCE / "scripts" / "supervise.sh", MPIEXEC, "--oversubscribe", "-n", "3", "--", PROGRAM]
        commands = {
            "run": [*supervise, "--backend", "sim", config, *train],
            "resume, json": [*supervise, "--backend", "sim", "--resume", "--format", "json", config],
            "check": [PROGRAM, "--check", "--resume", "--backend", "sim", config, *train],
            "plan": [PROGRAM, "--plan", "--world-size", "2", config],
            "wrong": [PROGRAM, "--check", wrong],
            "status": [PROGRAM, "--status", results],
            "status, json": [PROGRAM, "--status", results, "--format", "json"],
            "explain": [PROGRAM, "--explain", f"z0{self.TRICK}", config],
            "no value": [SOURCE / "scripts" / "tune.sh", f"--{self.TRICK}", "--model"],
        }
        codes = {}
        for what, command in commands.items():
            if what == "status":
                status = read_json(results / "status.json") | {"message": self.TRICK, "best": self.TRICK}
                (results / "status.json").write_text(json.dumps(status), encoding="utf-8")
            done = subprocess.run(list(map(str, command)), cwd=self.directory, env=as_user_starts_it(),
                                  timeout=DEADLOCK, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            codes[what] = done.returncode
            self.assert_harmless((done.stdout + done.stderr).decode(), what)
            if what in ("run", "check"):
                self.assertIn(b"sets --flag (", done.stderr)
            if "json" in what:
                json.loads(done.stdout)

        self.assertEqual(codes, {"run": 9, "resume, json": 0, "check": 0, "plan": 0, "wrong": 2, "status": 0,
                                 "status, json": 0, "explain": 2, "no value": 2})
        for name in ("summary.txt", "status.json"):
            self.assert_harmless((results / name).read_text(encoding="utf-8"), name)


@unittest.skipUnless(NAMESPACES, "mounts need root and namespaces")
class Unwritable(ProgramTest):
    def make_checkout(self):
        """One that was built, and that cmake could not bring up to date."""
        root = self.directory / "checkout"
        (root / "build" / "default").mkdir(parents=True)
        shutil.copytree(SOURCE / "scripts", root / "scripts", symlinks=True)
        (root / "build" / "default" / "dstune-mpi").symlink_to(PROGRAM)
        return root

    def run_inside(self, root, command, **environment):
        mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" && exec "$@"'
        return subprocess.run(["unshare", "--mount", "sh", "-c", mount, root, *map(str, command)],
                              env=as_user_starts_it() | environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=DEADLOCK, check=False)

    def test_a_built_checkout_and_a_working_directory_that_are_read_only(self):
        root = self.make_checkout()
        home = self.directory / "home"
        home.mkdir()
        hosts = self.directory / "hosts"
        hosts.write_text("localhost slots=3\n", encoding="utf-8")

        done = self.run_inside(root, ["scripts/tune.sh", self.quick_tiny(), "--backend", "sim", "-hostfile", hosts,
                                      "--results-dir", self.results], HOME=str(home), DSTUNE_PRESET="default",
                               DSTUNE_NO_CALIBRATE="1")

        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.results / "ds_config_optimal.json").exists())
        self.assertIn("runs as root", done.stderr)
        self.assertEqual([path.name for path in home.glob(".dstune*")], [])

    def test_results_that_cannot_be_written_are_wrong_input(self):
        done = self.run_inside(self.make_checkout(), ["scripts/tune.sh", self.quick_tiny(), "-n", "3"],
                               DSTUNE_PRESET="default", DSTUNE_NO_CALIBRATE="1")

        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("cannot be written to", done.stderr)

    def test_a_disk_that_fills_up_does_not_leave_a_run_that_goes_on(self):
        disk = self.directory / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", disk], check=True)
        self.addCleanup(subprocess.run, ["umount", "--lazy", disk], check=False)
        results = disk / "results"
        config = self.write_config(self.tiny(dstune={"measure_steps": 30}, zero_optimization={"stage": [0]},
                                             train_micro_batch_size_per_gpu=[1, 2, 4]))
        run = Tune().start(self.directory, 3, config, "--results-dir", results)
        self.addCleanup(run.clean_up)
        self.assertIsNotNone(wait_until(lambda: (results / "status.json").exists(), DEADLOCK))

        with open(disk / "fill", "wb", buffering=0) as fill:
            try:
                while True:
                    fill.write(bytes(65536))
            except OSError:
                pass
            self.assertIsNotNone(wait_until(run.is_over, DEADLOCK))

        self.assertEqual(run.exit_code(), 1)
        if (results / "status.json").exists():
            self.assertEqual(read_json(results / "status.json")["status"], "failed")


@unittest.skipUnless(NAMESPACES, "process spaces need root and namespaces")
class ProcessSpaces(ProgramTest):
    def test_runs_in_two_of_them_leave_each_others_folders_alone(self):
        """Two containers with one host name and one temporary folder: the same process number is another process.

        Their /dev/shm is their own, as containers' is: Open MPI calls what is there by its process number, and two of
        one number would share their memory.
        """
        runs = []
        for name in ("a", "b"):
            folder = self.directory / name
            folder.mkdir()
            command = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c",
                       'mount -t tmpfs shm /dev/shm && exec "$@"', "sh", SOURCE / "scripts" / "supervise.sh", MPIEXEC,
                       "--oversubscribe", "--bind-to", "none", "-n", "3", "--",
                       PROGRAM, self.write_config(self.tiny(dstune={"measure_steps": 10}))]
            with open(folder / "log", "wb") as log:
                runs.append(subprocess.Popen(list(map(str, command)), cwd=folder, stdin=subprocess.DEVNULL,
                                             stdout=subprocess.DEVNULL, stderr=log,
                                             env=as_user_starts_it() | {"TMPDIR": str(self.directory)}))
            self.addCleanup(runs[-1].kill)

        codes = [run.wait(DEADLOCK) for run in runs]

        logs = [(self.directory / name / "log").read_text(encoding="utf-8", errors="replace") for name in ("a", "b")]
        self.assertEqual(codes, [0, 0], "\n".join(logs))
        self.assertEqual([pathlib.Path(path).name for path in self.directory.glob("dstune-run.*")], [])
        self.assertNotIn("starting again", "\n".join(logs))


if __name__ == "__main__":
    unittest.main()
