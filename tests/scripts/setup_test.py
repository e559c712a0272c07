"""scripts/setup.sh for a user who cannot install anything: which packages it asks for, and when it goes on without."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SETUP = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "scripts" / "setup.sh"


class SetupTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bin = pathlib.Path(folder.name)
        for tool in ("bash", "cat"):
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.tool("id", "echo 1000")

    def tool(self, name, lines):
        (self.bin / name).write_text("#!/bin/bash\n" + lines + "\n", encoding="utf-8")
        (self.bin / name).chmod(0o755)

    def setup(self, *options, missing=()):
        self.tool("apt-get", "exit 1")
        self.tool("dpkg-query", f'case " {" ".join(missing)} " in *" $4 "*) exit 1 ;; *) printf installed ;; esac')
        return self.run_setup(*options)

    def run_setup(self, *options):
        return subprocess.run([self.bin / "bash", SETUP, *options], env={"PATH": str(self.bin)}, capture_output=True,
                              text=True, check=False)

    def test_with_all_that_a_build_needs_nothing_is_said(self):
        done = self.setup(missing=["libgtest-dev", "libgmock-dev", "clang", "mpich"])

        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_what_only_quickens_is_gone_without(self):
        done = self.setup(missing=["ccache", "libdnnl-dev"])

        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stderr, "setup: continuing without ccache libdnnl-dev, which only root can install\n")

    def test_what_is_needed_is_asked_for_alone(self):
        done = self.setup(missing=["libre2-dev", "ccache", "libgtest-dev"])

        self.assertEqual(done.returncode, 1)
        self.assertIn("  apt-get install libre2-dev\n", done.stderr)
        self.assertIn("docs/installing.md", done.stderr)

    def test_tests_and_developers_need_more(self):
        for option, package in (("--tests", "libgtest-dev"), ("--dev", "libgtest-dev"), ("--dev", "libmpich-dev")):
            done = self.setup(option, missing=[package])

            self.assertEqual(done.returncode, 1)
            self.assertIn(f"  apt-get install {package}\n", done.stderr)

    def test_elsewhere_it_names_the_packages_and_takes_what_modules_give(self):
        without = self.run_setup()
        for name in ("cmake", "make", "mpiexec"):
            self.tool(name, "")
        with_modules = self.run_setup()

        self.assertNotEqual(without.returncode, 0)
        self.assertIn("this is neither Debian", without.stderr)
        self.assertEqual(with_modules.returncode, 0)


if __name__ == "__main__":
    unittest.main()
