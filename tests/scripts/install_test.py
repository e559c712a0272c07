"""cmake --install into a new prefix: what lies there, and that both commands run elsewhere as another user."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

BUILD = os.environ["DSTUNE_BUILD_DIR"]
SOURCE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])
NOBODY = 65534


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix="dstune-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.top, ignore_errors=True)
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.top / "first"], check=True, capture_output=True)
        cls.prefix = cls.top / "moved"  # no path of the first place may be left
        (cls.top / "first").rename(cls.prefix)
        cls.share = cls.prefix / "share" / "dstune-mpi"
        cls.folder = cls.top / "folder"
        cls.folder.mkdir()
        for path in (cls.top, cls.folder):
            path.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(cls.folder, NOBODY, NOBODY)

    def run_there(self, *command, **variables):
        """By a user without rights, in a folder of that user, where the sources are not to be found."""
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder), "TMPDIR": str(self.folder),
                       "DSTUNE_NO_CALIBRATE": "1", **variables}
        done = subprocess.run([str(word) for word in command], cwd=self.folder, env=environment, capture_output=True,
                              text=True, timeout=100, check=False, **user)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def file(self, *parts):
        return self.prefix.joinpath(*parts).read_text(encoding="utf-8")

    def options(self):
        told = self.run_there(self.prefix / "bin" / "dstune-mpi", "--help").stdout
        found = set(re.findall(r"^  (?:-\w \[ )?(--[\w-]+)", told, re.MULTILINE))
        self.assertIn("--results-dir", found)
        return found

    def test_the_program_plans_there(self):
        done = self.run_there(self.prefix / "bin" / "dstune-mpi", "--plan", "--world-size", "2",
                              self.share / "examples" / "tiny.json")

        self.assertIn("z0_gas1_tmbspg4", done.stdout)

    def test_dstune_tunes_and_builds_nothing(self):
        done = self.run_there(self.prefix / "bin" / "dstune", self.share / "examples" / "sim.json", "-n", "3")

        self.assertIn("z0_gas1_tmbspg4", done.stdout)
        self.assertTrue((self.folder / "autotuning_results" / "latest" / "ds_config_optimal.json").is_file())
        self.assertEqual([path.name for path in self.prefix.iterdir()].count("build"), 0)

    def test_dstune_runs_by_a_link_from_elsewhere(self):
        (self.top / "link").symlink_to(self.prefix / "bin" / "dstune")

        self.assertIn("dstune-mpi", self.run_there(self.top / "link", "--version").stdout)

    def test_the_version_names_the_commit_and_the_libraries(self):
        lines = self.run_there(self.prefix / "bin" / "dstune-mpi", "--version").stdout.splitlines()

        self.assertRegex(lines[0], r"^dstune-mpi [0-9.]+, commit ([0-9a-f]{12}(-dirty)?|unknown)$")
        for name in ("MPI: ", "Boost: ", "BLAS: ", "backends: "):
            self.assertEqual(len([line for line in lines if line.startswith(name)]), 1, lines)

    def test_pages_and_completions_have_every_option(self):
        for option in self.options():
            page = self.file("share", "man", "man1", "dstune-mpi.1").replace(r"\-", "-")
            self.assertIn(rf"\fB{option}\fR", page)
            self.assertRegex(self.file("share", "bash-completion", "completions", "dstune-mpi"), rf"[ \"]{option}[ \"]")
            self.assertIn(f"'*{option}[", self.file("share", "zsh", "site-functions", "_dstune-mpi"))
        self.assertIn(r"\fB\-hostfile\fR \fIFILE\fR", self.file("share", "man", "man1", "dstune.1"))

    def test_bash_completes_options_and_their_values(self):
        script = self.prefix / "share" / "bash-completion" / "completions" / "dstune"

        def completed(*words):
            line = " ".join(f"'{word}'" for word in words)
            text = f". {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _dstune_mpi; "
            return self.run_there("bash", "-c", text + "printf '%s ' ${COMPREPLY[@]}").stdout.split()

        self.assertEqual(completed("dstune-mpi", "--force"), ["--force-resume"])
        self.assertEqual(completed("dstune-mpi", "--format", "j"), ["json"])
        self.assertEqual(completed("dstune", "-host"), ["-hostfile"])
        self.assertEqual(completed("dstune-mpi", "-host"), [])

    def test_what_else_is_there(self):
        for path in ("share/doc/dstune-mpi/LICENSE", "share/doc/dstune-mpi/docs",
                     "share/dstune-mpi/hostfiles/two-hosts", "share/dstune-mpi/scripts/slurm/tune.sbatch"):
            self.assertTrue((self.prefix / path).exists(), path)
        self.assertEqual([str(path) for path in self.prefix.rglob("__pycache__")], [])


if __name__ == "__main__":
    unittest.main()
