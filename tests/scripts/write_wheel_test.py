"""scripts/wheel: what a wheel is made of, which bundles are refused, and what its commands become."""

import base64
import csv
import hashlib
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unittest
import zipfile

WHEEL = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "scripts" / "wheel"
MANIFEST = "dstune-mpi 1.2.3, commit abc\nneeds: x86-64-v3 (AVX2), Linux, glibc >= 2.34\n"
TELLS = """#!/bin/sh
printf '%s\\n' "$@" "PYTHON=$PYTHON" "VIRTUAL_ENV=$VIRTUAL_ENV"
grep SigIgn /proc/$$/status
exit 7
"""


class WheelTest(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="dstune-wheel-"))
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        self.bundle = self.top / "bundle"
        for folder in ("bin", "scripts"):
            (self.bundle / folder).mkdir(parents=True)
        for name, text in (("MANIFEST", MANIFEST), ("README.md", "# dstune-mpi\n"), ("LICENSE", "Apache"),
                           ("bin/dstune-mpi", TELLS), ("scripts/tune.sh", TELLS)):
            (self.bundle / name).write_text(text, encoding="utf-8")
        (self.bundle / "bin" / "dstune-mpi").chmod(0o755)
        (self.bundle / "scripts" / "tune.sh").chmod(0o755)
        shutil.copy(os.path.realpath("/bin/true"), self.bundle / "bin" / "orterun")


class WriteWheel(WheelTest):
    def write(self):
        return subprocess.run([sys.executable, "-B", WHEEL / "write_wheel.py", self.bundle, self.top],
                              capture_output=True, text=True, timeout=60, check=False)

    def written(self):
        done = self.write()
        self.assertEqual(done.returncode, 0, done.stderr)
        return pathlib.Path(done.stdout.strip())

    def refusal(self):
        done = self.write()
        self.assertEqual(done.returncode, 1)
        self.assertEqual(list(self.top.glob("*.whl")), [])
        return done.stderr

    def test_version_and_platform_are_those_of_the_manifest(self):
        path = self.written()

        self.assertEqual(path.name, "dstune_mpi-1.2.3-py3-none-manylinux_2_34_x86_64.whl")
        with zipfile.ZipFile(path) as wheel:
            told = wheel.read("dstune_mpi-1.2.3.dist-info/WHEEL").decode().splitlines()
            about = wheel.read("dstune_mpi-1.2.3.dist-info/METADATA").decode()
        self.assertIn("Tag: py3-none-manylinux_2_34_x86_64", told)
        self.assertIn("\nVersion: 1.2.3\n", about)
        self.assertTrue(about.endswith("\n\n# dstune-mpi\n"))

    def test_the_record_has_every_file_with_its_digest(self):
        with zipfile.ZipFile(self.written()) as wheel:
            record = {name: (digest, size) for name, digest, size in
                      csv.reader(wheel.read("dstune_mpi-1.2.3.dist-info/RECORD").decode().splitlines())}
            self.assertEqual(sorted(record), sorted(wheel.namelist()))
            self.assertEqual(record.pop("dstune_mpi-1.2.3.dist-info/RECORD"), ("", ""))
            for name, (digest, size) in record.items():
                content = wheel.read(name)
                own = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
                self.assertEqual((digest, size), (f"sha256={own}", str(len(content))), name)

    def test_modes_are_kept_and_links_are_files(self):
        (self.bundle / "bin" / "mpiexec").symlink_to("dstune-mpi")

        with zipfile.ZipFile(self.written()) as wheel:
            modes = {entry.filename: entry.external_attr >> 16 for entry in wheel.infolist()}
            self.assertEqual(wheel.read("dstune_mpi/bin/mpiexec").decode(), TELLS)
        self.assertEqual(modes["dstune_mpi/bin/mpiexec"], stat.S_IFREG | 0o755)
        self.assertEqual(modes["dstune_mpi/MANIFEST"], stat.S_IFREG | 0o644)

    def test_the_same_bundle_gives_the_same_wheel(self):
        first = self.written().read_bytes()

        self.assertEqual(self.written().read_bytes(), first)

    def test_what_does_not_say_where_it_runs_is_refused(self):
        for text in ("", "dstune-mpi 1.2.3, commit abc\nneeds: aarch64, Linux, glibc >= 2.34\n",
                     "dstune-mpi 1.2.3, commit abc\nneeds: x86-64-v3 (AVX2), Linux, \n"):
            (self.bundle / "MANIFEST").write_text(text, encoding="utf-8")
            self.assertIn("MANIFEST does not say which glibc", self.refusal())
        (self.bundle / "MANIFEST").unlink()
        self.assertIn("no MANIFEST", self.refusal())

    def test_what_needs_libraries_of_the_system_is_refused(self):
        program = next(path for path in map(shutil.which, ("bash", "python3", "git")) if path and b"libtinfo" in
                       subprocess.run(["readelf", "-d", path], capture_output=True, check=True).stdout)
        shutil.copy(program, self.bundle / "bin" / "other")

        self.assertIn("libtinfo.so", self.refusal())

    def test_programs_for_other_processors_are_refused(self):
        content = bytearray((self.bundle / "bin" / "orterun").read_bytes())
        content[18] = 183  # e_machine: AArch64
        (self.bundle / "bin" / "other").write_bytes(content)

        self.assertIn("AArch64", self.refusal())


class Commands(WheelTest):
    def run_command(self, name, *arguments, **variables):
        shutil.copytree(self.bundle, self.top / "dstune_mpi")
        for source in (WHEEL / "dstune_mpi").glob("*.py"):
            shutil.copy(source, self.top / "dstune_mpi")
        text = f"from dstune_mpi.commands import {name}; {name}()"
        return subprocess.run([sys.executable, "-B", "-c", text, *arguments], timeout=60, check=False, cwd=self.top,
                              capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", **variables})

    def test_words_and_exit_code_are_handed_on(self):
        done = self.run_command("program", "--plan", "a b", "")

        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(done.stdout.splitlines()[:3], ["--plan", "a b", ""])

    def test_the_python_that_runs_it_is_the_one_that_is_meant(self):
        done = self.run_command("tune", VIRTUAL_ENV="/another")

        of_this = sys.prefix if sys.prefix != sys.base_prefix else "/another"
        self.assertIn(f"PYTHON={sys.executable}\nVIRTUAL_ENV={of_this}\n", done.stdout)

    def test_a_python_that_is_named_stays(self):
        self.assertIn("PYTHON=/another/python3\n", self.run_command("tune", PYTHON="/another/python3").stdout)

    def test_a_closed_pipe_ends_it_as_without_python(self):
        ignored, = [line for line in self.run_command("program").stdout.splitlines() if line.startswith("SigIgn:")]

        self.assertEqual(int(ignored.split()[1], 16) & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)), 0)

    def test_what_cannot_be_run_is_said(self):
        (self.bundle / "bin" / "dstune-mpi").chmod(0o644)
        done = self.run_command("program")

        self.assertEqual(done.returncode, 1)
        self.assertIn("dstune_mpi/bin/dstune-mpi cannot be run: Permission denied", done.stderr)


class Backend(unittest.TestCase):
    def test_what_a_build_needs_is_named_before_it_begins(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        (pathlib.Path(folder.name) / "strip").symlink_to(shutil.which("strip"))
        done = subprocess.run([sys.executable, "-B", "-c", "import backend; backend.build_wheel('.')"], check=False,
                              env={"PATH": folder.name, "PYTHONPATH": str(WHEEL)}, capture_output=True, text=True)

        self.assertEqual(done.returncode, 1)
        self.assertIn("no c++ (a C++20 compiler), no mpicxx", done.stderr)
        self.assertIn("scripts/setup.sh --dev", done.stderr)
        self.assertNotIn("no strip", done.stderr)
        self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
