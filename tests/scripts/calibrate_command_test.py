"""scripts/tune.sh --calibrate: its arguments, and what it says where DeepSpeed is missing."""
import os
import subprocess
import sys
import unittest

from calibrate_support import SOURCE, CommandTest


class CalibrateCommand(CommandTest):
    def test_one_rank_is_refused_since_it_has_no_partner(self):
        python = self.python(modules=("torch", "deepspeed", "transformers"))

        for arguments in (("--calibrate", "1"), ("--calibrate=0",), ("some.json", "--calibrate", "1")):
            (self.root / "some.json").write_text("{}")
            done = self.calibrate(*arguments, PYTHON=str(python))

            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn("2 ranks or more", done.stderr)
        self.assertEqual(self.said(), "")

    def test_what_is_missing_is_named_with_how_to_install_it(self):
        python = self.python(modules=("torch",))

        done = self.calibrate("--calibrate", PYTHON=str(python))

        self.assertEqual(done.returncode, 2)
        self.assertIn(f"{python} has no deepspeed, no transformers", done.stderr)
        self.assertIn(f"{python} -m pip install deepspeed transformers", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_a_python_that_is_none_is_refused(self):
        done = self.calibrate("--calibrate", PYTHON=str(self.root / "nothing"))

        self.assertEqual(done.returncode, 2)
        self.assertIn("PYTHON names another one", done.stderr)

    def test_ranks_are_started_with_torchrun_and_get_the_configuration(self):
        python = self.python(modules=("torch", "deepspeed", "transformers"))
        (self.root / "some.json").write_text("{}")

        done = self.calibrate("--calibrate", "3", "some.json", PYTHON=str(python))

        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("-m torch.distributed.run --standalone --nproc_per_node 3", self.said())
        self.assertTrue(self.said().endswith("calibrate.py --also autotuning_results/host_overhead.json\n"),
                        self.said())

    def test_without_a_number_there_are_two(self):
        python = self.python(modules=("torch", "deepspeed", "transformers"))

        self.calibrate("--calibrate", PYTHON=str(python))

        self.assertIn("--nproc_per_node 2", self.said())

    def test_the_active_environment_is_preferred_to_the_path(self):
        self.python("venv/bin/python3", modules=("torch", "deepspeed", "transformers"))

        self.calibrate("--calibrate", VIRTUAL_ENV=str(self.root / "venv"))

        self.assertTrue(self.said().startswith(f"{self.root}/venv/bin/python3 -m"), self.said())

    def test_a_rank_of_mpirun_starts_no_ranks(self):
        python = self.python(modules=("torch", "deepspeed", "transformers"))

        self.calibrate("--calibrate", PYTHON=str(python), OMPI_COMM_WORLD_SIZE="2")

        self.assertNotIn("torch.distributed.run", self.said())
        self.assertIn("calibration/calibrate.py", self.said())

    def test_hosts_need_open_mpis_mpirun(self):
        python = self.python(modules=("torch", "deepspeed", "transformers"))
        (self.root / "hosts").write_text("nodeA slots=2\n")
        (self.root / "tools").mkdir()
        launcher = self.root / "tools" / "mpirun.openmpi"
        launcher.write_text(f'#!/bin/sh\necho "$*" >{self.root}/said\n')
        launcher.chmod(0o755)
        launcher.with_name("mpiexec.hydra").symlink_to(launcher)
        arguments = ("--calibrate", "2", "-hostfile", "hosts")

        refused = self.calibrate(*arguments, PYTHON=str(python), DSTUNE_MPIRUN=f"{self.root}/tools/mpiexec.hydra")
        self.assertEqual((refused.returncode, self.said()), (2, ""))
        self.assertIn("Open MPI's mpirun, and", refused.stderr)
        self.assertIn("mpiexec.hydra is none", refused.stderr)

        started = self.calibrate(*arguments, PYTHON=str(python), DSTUNE_MPIRUN=str(launcher))
        self.assertEqual(started.returncode, 0, started.stderr)
        self.assertTrue(self.said().startswith("-hostfile hosts --oversubscribe"), self.said())
        self.assertIn("-x MASTER_ADDR=nodeA", self.said())

    def test_what_it_does_not_take_is_refused(self):
        for arguments, found in ((("--calibrate", "-n", "3"), "does not take -n"),
                                 (("--calibrate", "none.json"), "no file none.json"),
                                 (("--calibrate=two",), 'not "two"'),
                                 (("--calibrate", "--backend", "sim"), 'not "sim"')):
            done = self.calibrate(*arguments)

            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(found, done.stderr)

    def test_a_configuration_that_is_none_is_refused_before_anything_is_measured(self):
        python = self.python(modules=("torch", "deepspeed", "transformers"))
        (self.root / "broken.json").write_text("{")

        done = self.calibrate("--calibrate", "broken.json", PYTHON=str(python))

        self.assertEqual(done.returncode, 2)
        self.assertIn("broken.json is not a configuration", done.stderr)
        self.assertEqual(self.said(), "")

    def test_the_failure_of_the_ranks_is_its_own(self):
        python = self.python(modules=("torch", "deepspeed", "transformers"), answer="exit 7")

        self.assertEqual(self.calibrate("--calibrate", PYTHON=str(python)).returncode, 7)

    def test_a_rank_alone_is_refused_on_a_cpu(self):
        self.python(modules=("deepspeed", "transformers"))
        (self.root / "packages" / "torch.py").write_text(
            "class cuda:\n    is_available = staticmethod(lambda: False)\n")
        done = subprocess.run([sys.executable, "-B", SOURCE / "scripts" / "calibration" / "calibrate.py"],
                              env={"PATH": os.environ["PATH"], "PYTHONPATH": str(self.root / "packages"),
                                   "WORLD_SIZE": "1"}, text=True, capture_output=True, check=False)

        self.assertEqual(done.returncode, 2)
        self.assertIn("two ranks or more", done.stderr)


if __name__ == "__main__":
    unittest.main()
