"""scripts/tune.sh where nobody has measured the machine."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

from calibrate_support import SOURCE, CommandTest


class CalibrateFirst(CommandTest):
    """What a tuning does where nobody has measured the machine."""

    def setUp(self):
        super().setUp()
        (self.root / "etc" / "openmpi").mkdir(parents=True)  # a bundle, so that nothing is built
        (self.root / "scripts").symlink_to(SOURCE / "scripts")
        for name in ("dstune-mpi", "mpirun"):
            path = self.root / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("#!/bin/sh\necho tuned\n")
            path.chmod(0o755)
        self.config = self.root / "some.json"
        self.config.write_text("{}")

    def python(self, *arguments, versions=True, **options):
        path = super().python(*arguments, modules=("torch", "deepspeed", "transformers"), **options)
        for name in ("torch", "deepspeed", "transformers") if versions else ():
            folder = self.root / "packages" / f"{name}-2.0.dist-info"
            folder.mkdir()
            (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.0\n")
        return path

    def tune(self, *arguments, **variables):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.root), **variables}
        return subprocess.run([self.root / "scripts" / "tune.sh", str(self.config), "-n", "3", "--backend", "cpu",
                               *arguments], env=environment, cwd=self.root, text=True, stdin=subprocess.DEVNULL,
                              capture_output=True, check=False)

    def test_the_machine_is_measured_before_its_first_tuning_and_that_is_said(self):
        done = self.tune(PYTHON=str(self.python()))

        self.assertEqual(done.stdout, "tuned\n", done.stderr)
        self.assertIn("--nproc_per_node 2", self.said())
        self.assertTrue(self.said().endswith("calibrate.py --unless-vague\n"), self.said())  # kept in the cache alone
        self.assertIn("that comes first, in 3 minutes", done.stderr)
        self.assertIn("2-ranks-deepspeed-2.0-torch-2.0.json", done.stderr)
        self.assertIn("--no-calibrate", done.stderr)

    def test_where_the_program_can_train_on_gpus_these_are_measured(self):
        (self.root / "bin" / "dstune-mpi").write_text("""#!/bin/sh
[ "$1" != --list-backends ] || printf 'GPU %s\\n' '0: NVIDIA H200 (test), 139.80 GiB (GPU-0)' '1: NVIDIA, 80.00 GiB'
[ "$1" != --list-backends ] || echo 'cuda: available (NVIDIA)'
""")
        python = str(self.python(answer=f"echo on $DS_ACCELERATOR, threads $OMP_NUM_THREADS >>{self.root}/said"))

        done = self.tune("--backend", "auto", PYTHON=python)

        self.assertIn("--nproc_per_node 2", self.said())
        self.assertIn("on cuda, threads 1\n", self.said())
        path = pathlib.Path(re.search("the profile will be (.*)\n", done.stderr).group(1))
        self.assertEqual(path.parts[-2:], ("cuda-nvidia-h200-test-", "2-ranks-deepspeed-2.0-torch-2.0.json"))

        path.parent.mkdir(parents=True)
        (self.root / "said").unlink()
        path.write_text('{"operator_forward_us": 8}')
        self.assertIn("of an earlier version", self.tune("--backend", "cuda", PYTHON=python).stderr)
        (self.root / "said").unlink()
        path.write_text('{"micro_step_us": 900}')
        self.assertNotIn("calibrate", self.tune("--backend", "cuda", PYTHON=python).stderr)
        self.assertEqual(self.said(), "")
        self.tune("--backend", "cpu", PYTHON=python)
        self.assertIn("on cpu", self.said())

    def test_a_gpu_that_the_program_cannot_train_on_is_not_measured(self):
        (self.root / "bin" / "dstune-mpi").write_text("""#!/bin/sh
[ "$1" != --list-backends ] || printf '%s\\n' 'GPU 0: NVIDIA H200, 139.80 GiB' 'cuda: not available (no code)'
""")

        self.tune("--backend", "auto", PYTHON=str(self.python(answer=f"echo on $DS_ACCELERATOR >>{self.root}/said")))

        self.assertIn("on cpu\n", self.said())

    def test_an_experiments_ranks_are_those_of_the_option_or_of_the_file(self):
        python = str(self.python())
        self.config.write_text('{"dstune": {"ranks_per_experiment": 4}} // of more workers')

        self.tune("-n", "5", PYTHON=python)
        self.assertIn("--nproc_per_node 4", self.said())
        self.tune("-n", "5", "--ranks-per-experiment", "3", PYTHON=python)
        self.assertIn("--nproc_per_node 3", self.said())

    def test_nothing_is_measured_where_it_is_not_wanted_or_of_no_use(self):
        python = str(self.python())
        for arguments, variables, config in (
                (("--no-calibrate",), {}, "{}"), ((), {"DSTUNE_NO_CALIBRATE": "1"}, "{}"), (("--resume",), {}, "{}"),
                (("--backend=sim",), {}, "{}"), (("--ranks-per-experiment", "1"), {}, "{}"),
                (("--ranks-per-experiment", "3"), {}, "{}"),
                ((), {}, '{"dstune": {"host_overhead": "cpu-gloo"}}'), ((), {}, "no JSON"),
                ((), {"SLURM_JOB_NUM_NODES": "2"}, "{}"), ((), {"PYTHON": sys.executable + "-none"}, "{}")):
            self.config.write_text(config)
            done = self.tune(*arguments, **{"PYTHON": python, **variables})

            self.assertEqual((done.stdout, self.said()), ("tuned\n", ""), (arguments, done.stderr))

    def test_a_machine_that_is_measured_is_not_measured_again(self):
        python = str(self.python())
        (self.root / "autotuning_results").mkdir()
        (self.root / "autotuning_results" / "host_overhead.json").write_text("{}")

        self.assertEqual(self.tune(PYTHON=python).stdout, "tuned\n")
        self.assertEqual(self.said(), "")

    def test_a_calibration_that_fails_does_not_end_the_tuning(self):
        done = self.tune(PYTHON=str(self.python(answer="exit 1")))

        self.assertEqual(done.stdout, "tuned\n", done.stderr)
        self.assertIn("it gave no new profile, see above: continuing with a preset", done.stderr)

    def cached(self, text):
        """(a Python whose calibrations fail, this machine's profile in the cache, which has `text`)"""
        python = str(self.python(answer="exit 1"))
        path = pathlib.Path(re.search("the profile will be (.*)\n", self.tune(PYTHON=python).stderr).group(1))
        path.parent.mkdir(parents=True)
        path.write_text(text)
        (self.root / "said").unlink()
        return python, path

    def test_a_cached_profile_with_all_that_is_measured_is_not_made_again(self):
        python, _ = self.cached('{"micro_step_us": 1, "operations": {}, '
                                '"products": {"fp32": {"result_ns_per_kib": 0}}}')

        done = self.tune(PYTHON=python)

        self.assertEqual((done.stdout, self.said()), ("tuned\n", ""))
        self.assertNotIn("profile", done.stderr)

    def test_a_cached_profile_of_an_earlier_version_is_made_again_and_used_if_that_fails(self):
        python, path = self.cached('{"operations": {}, "products": {}}')
        self.assertIn("is of an earlier version", self.tune(PYTHON=python).stderr)
        path.write_text('{"micro_step_us": 1, "operations": {}, "products": {"fp32": {"threads": 1}}}')
        (self.root / "said").unlink()

        done = self.tune(PYTHON=python)

        self.assertEqual(done.stdout, "tuned\n")
        self.assertIn("calibrate.py --unless-vague", self.said())
        self.assertIn("profile with 2 ranks is of an earlier version: a new one comes first", done.stderr)
        self.assertIn("--no-calibrate skips it and uses the old one", done.stderr)
        self.assertIn("it gave no new profile, see above: continuing with the old one", done.stderr)

    def test_of_a_new_profile_in_place_of_an_earlier_one_nothing_more_is_said(self):
        python, path = self.cached("{}")
        (self.root / "python").write_text((self.root / "python").read_text().replace(
            "exit 1", f"""echo '{{"micro_step_us": 1, "operations": {{}}}}' >'{path}'"""))

        done = self.tune(PYTHON=python)

        self.assertIn("is of an earlier version", done.stderr)
        self.assertNotIn("continuing with", done.stderr)

    def test_a_cached_profile_that_is_none_is_made_again_and_not_used_if_that_fails(self):
        python, path = self.cached("no JSON")

        for text in ("no JSON", '["operations"]', "7"):
            path.write_text(text)
            done = self.tune(PYTHON=python)

            self.assertIn("profile with 2 ranks is broken: a new one comes first", done.stderr, text)
            self.assertIn("it gave no new profile, see above: continuing with a preset", done.stderr, text)
        self.assertEqual(self.said().count("calibrate.py"), 3)

    def interrupted(self, signal_, to_all):
        """tune.sh's exit code after a signal in the calibration, which answers as torchrun does: with exit code 1."""
        python = self.python(answer=f"""trap 'echo ended >>{self.root}/said; exit 1' INT TERM
echo measuring >>{self.root}/begun
while :; do sleep 0.01; done""")
        os.mkfifo(self.root / "begun")
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.root), "PYTHON": str(python)}
        with subprocess.Popen([self.root / "scripts" / "tune.sh", str(self.config), "-n", "3", "--backend", "cpu"],
                              env=environment, cwd=self.root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, start_new_session=True, text=True,
                              # A test that runs in the background of a script ignores it, and so would tune.sh.
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as tune:
            (self.root / "begun").read_text()
            (os.killpg if to_all else os.kill)(tune.pid, signal_)
            self.assertEqual(tune.communicate()[0], "")
        self.assertTrue(self.said().endswith("ended\n"), self.said())
        return tune.returncode

    def test_control_c_ends_the_calibration_and_the_tuning(self):
        self.assertEqual(self.interrupted(signal.SIGINT, to_all=True), 130)

    def test_a_signal_to_the_tuning_alone_ends_the_calibration_too(self):
        self.assertEqual(self.interrupted(signal.SIGTERM, to_all=False), 143)

    def test_ranks_have_the_threads_of_the_experiments(self):
        python = str(self.python(answer=f"echo threads $OMP_NUM_THREADS >>{self.root}/said"))
        nproc = self.root / "bin" / "nproc"
        nproc.write_text('#!/bin/sh\necho "${OMP_NUM_THREADS:-8}"\n')  # as that of coreutils
        nproc.chmod(0o755)

        for ranks, threads in (("3", 4), ("4", 2), ("30", 1)):
            self.tune("-n", ranks, PYTHON=python, OMP_NUM_THREADS="1", PATH=f"{nproc.parent}:{os.environ['PATH']}")
            self.assertTrue(self.said().endswith(f"threads {threads}\n"), self.said())

    def test_nothing_is_measured_for_a_configuration_that_the_program_refuses(self):
        (self.root / "bin" / "dstune-mpi").write_text(f"""#!/bin/sh
echo "$*" >{self.root}/checked
exit 2
""")

        done = self.tune("--precision", "fp17", PYTHON=str(self.python()))

        self.assertEqual((done.stdout, self.said()), ("tuned\n", ""), done.stderr)  # by mpirun, which would say why
        self.assertEqual((self.root / "checked").read_text(),
                         f"--check --world-size 2 {self.config} --backend cpu --precision fp17 "
                         "--installed-deepspeed 2.0\n")


if __name__ == "__main__":
    unittest.main()
