"""scripts/tune.sh: what it hands on to the program, and how many ranks it starts."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from calibrate_support import SOURCE


class TuneOptions(unittest.TestCase):
    """A bundle whose program and mpirun print their words."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="dstune-tune-"))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        (self.root / "etc" / "openmpi").mkdir(parents=True)
        (self.root / "scripts").symlink_to(SOURCE / "scripts")
        for name in ("dstune-mpi", "mpirun", "python3"):
            path = self.root / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("#!/bin/sh\nexit 1\n" if name == "python3" else '#!/bin/sh\nprintf "%s\\n" "$@"\n')
            path.chmod(0o755)

    def words(self, *arguments, **variables):
        environment = {"PATH": f"{self.root}/bin:/usr/bin:/bin", "HOME": str(self.root), "DSTUNE_NO_CALIBRATE": "1",
                       **variables}
        done = subprocess.run([self.root / "scripts" / "tune.sh", *arguments], env=environment, cwd=self.root,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertNotEqual(done.returncode, 2, done.stderr)  # an mpirun that starts no rank is 1
        return done.stdout.split("\n")[:-1]

    def test_values_are_no_configuration(self):
        options = ["--sequence-length", "2048", "--train-batch-size", "64", "--micro-batch-size", "4",
                   "--checkpointing", "true", "--lora-r", "8", "--model", "Qwen/Qwen2.5-7B"]

        self.assertEqual(self.words("--check", "--world-size", "2", *options, "some.json"),
                         ["--check", "--world-size", "2", *options, "some.json"])

    def test_a_plan_of_a_model_gets_no_configuration(self):
        plan = ["--plan", "--gpus", "8", "--model", "gpt2"]

        self.assertEqual(self.words(*plan), plan)
        self.assertEqual(self.words("--plan", "--gpus=8", "--model=gpt2"), ["--plan", "--gpus=8", "--model=gpt2"])
        self.assertTrue(self.words("--plan", "--gpus", "8")[-1].endswith("examples/gpt2-30m.json"))

    def test_gpus_are_workers_beside_rank_0(self):
        words = self.words("--gpus", "3", "some.json")

        self.assertEqual(words[words.index("-n") + 1], "4")
        self.assertEqual(words[words.index("--gpus") + 1], "3")
        words = self.words("--gpus", "3", "-n", "6", "some.json")
        self.assertEqual(words[words.index("-n") + 1], "6")

    def test_the_release_of_deepspeed_is_that_of_the_python_in_use(self):
        for name, version in (("venv", "0.17.1"), ("named", "0.18.2")):
            python = self.root / name / "bin" / "python3"
            python.parent.mkdir(parents=True)
            python.write_text(f"#!/bin/sh\necho {version}\n")
            python.chmod(0o755)
        check = ["--check", "--world-size", "2", "some.json"]

        active = self.words(*check, VIRTUAL_ENV=str(self.root / "venv"))
        named = self.words(*check, VIRTUAL_ENV=str(self.root / "venv"), PYTHON=str(self.root / "named" / "bin" / "python3"))

        self.assertEqual(self.words(*check), check)
        self.assertEqual(active, [*check, "--installed-deepspeed", "0.17.1"])
        self.assertEqual(named, [*check, "--installed-deepspeed", "0.18.2"])

    def test_models_are_listed_without_a_configuration(self):
        self.assertEqual(self.words("--list-models", "--format", "json"), ["--list-models", "--format", "json"])


if __name__ == "__main__":
    unittest.main()
