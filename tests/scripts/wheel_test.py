#!/usr/bin/env python3
"""A wheel (scripts/wheel.sh) in a new Python environment, of a user without rights where this runs as root.

usage: wheel_test.py BUNDLE.tar.gz
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
LIMIT = 100  # seconds: more is a deadlock
NOBODY = 65534
archive = None


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix="dstune-wheel-"))
        cls.addClassCleanup(shutil.rmtree, cls.top, ignore_errors=True)
        cls.user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        cls.folder = cls.top / "folder"
        cls.folder.mkdir()
        for path in (cls.top, cls.folder):
            path.chmod(0o755)
        if cls.user:
            os.chown(cls.folder, NOBODY, NOBODY)
        made = subprocess.run([SOURCE / "scripts" / "wheel.sh", "--from", archive, cls.top], check=True,
                              stdout=subprocess.PIPE, text=True)
        cls.wheel = pathlib.Path(made.stdout.splitlines()[-1])
        cls.venv = cls.folder / "venv"
        cls.must(cls.find_python(), "-m", "venv", cls.venv)
        cls.must(cls.venv / "bin" / "python", "-m", "pip", "install", "--no-index", "--no-deps", cls.wheel)
        cls.packages, = cls.venv.glob("lib/python3*/site-packages")
        cls.bundle = cls.packages / "dstune_mpi"

    @classmethod
    def find_python(cls):
        """Root's own Python is not for others to run."""
        for python in (sys.executable, "/usr/bin/python3"):
            try:
                if cls.by_user(python, "-c", "import ensurepip, venv").returncode == 0:
                    return python
            except OSError:
                continue
        raise RuntimeError("no Python here makes an environment: scripts/setup.sh --dev")

    @classmethod
    def by_user(cls, *command, **variables):
        """In a folder of that user; the environment is not active."""
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(cls.folder), "TMPDIR": str(cls.folder),
                       "DSTUNE_NO_CALIBRATE": "1", **variables}
        return subprocess.run([str(word) for word in command], cwd=cls.folder, env=environment, capture_output=True,
                              text=True, timeout=LIMIT, check=False, **cls.user)

    @classmethod
    def must(cls, *command, **variables):
        done = cls.by_user(*command, **variables)
        if done.returncode != 0:
            raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def command(self, name):
        return self.venv / "bin" / name

    def test_pip_knows_version_and_files(self):
        shown = self.must(self.command("python"), "-m", "pip", "show", "dstune-mpi").stdout
        version = re.match(r"dstune-mpi (\S+),", (self.bundle / "MANIFEST").read_text(encoding="utf-8")).group(1)

        self.assertIn(f"\nVersion: {version}\n", shown)
        self.must(self.command("python"), "-m", "pip", "check")

    def test_the_program_is_the_bundles(self):
        told = self.must(self.command("dstune-mpi"), "--version").stdout
        told_commit, made_of = (re.match(r"dstune-mpi [0-9.]+, commit (\w{1,12})", text).group(0)
                                for text in (told, (self.bundle / "MANIFEST").read_text(encoding="utf-8")))

        self.assertIn("Open MPI", told)
        self.assertEqual(told_commit, made_of)

    def test_it_plans_by_a_name_of_the_hub(self):
        plan = self.must(self.command("dstune-mpi"), "--plan", "--gpus", "8", "--model", "Qwen/Qwen2.5-7B-Instruct",
                         "--sequence-length", "2048")

        self.assertRegex(plan.stdout, r"\bz3_gas1_")

    def test_dstune_tunes_with_the_bundles_mpirun(self):
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "mpirun").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        (self.folder / "bin" / "mpirun").chmod(0o755)
        done = self.must(self.command("dstune"), self.bundle / "examples" / "sim.json", "-n", "3", "--results-dir", "by-sim",
                         PATH=f"{self.folder / 'bin'}:/usr/bin:/bin")

        self.assertIn("z0_gas1_tmbspg4", done.stdout)
        self.assertTrue((self.folder / "by-sim" / "ds_config_optimal.json").is_file())

    def test_workers_train_on_cores(self):
        done = self.must(self.command("dstune"), self.bundle / "examples" / "tiny.json", "-n", "3", "--results-dir", "by-cpu")

        self.assertIn("z0_gas1_tmbspg4", done.stdout)

    def test_deepspeed_is_that_of_the_environment(self):
        information = self.packages / "deepspeed-0.17.1.dist-info"
        information.mkdir()
        self.addCleanup(shutil.rmtree, information)
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: deepspeed\nVersion: 0.17.1\n", encoding="utf-8")
        checked = self.must(self.command("dstune"), "--check", self.bundle / "examples" / "sim.json", "-n", "3")

        self.assertIn("0.17.1", checked.stdout + checked.stderr)

    def test_a_file_that_is_not_there_is_wrong_input(self):
        for words in (["dstune", "missing.json", "-n", "3"], ["dstune-mpi", "--check", "--world-size", "2", "missing.json"]):
            done = self.by_user(self.command(words[0]), *words[1:])

            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("missing.json", done.stderr)

    def test_uninstalling_leaves_nothing(self):
        copy = self.folder / "copy"
        self.must("cp", "-a", self.venv, copy)
        self.must(copy / "bin" / "python", "-m", "pip", "uninstall", "-y", "dstune-mpi")

        self.assertTrue((copy / "bin" / "pip").exists())
        self.assertEqual([str(path) for path in copy.rglob("*dstune*")], [])


if __name__ == "__main__":
    archive = os.path.abspath(sys.argv.pop(1))
    unittest.main()
