"""scripts/tune.sh --run: the training command after the tuning, in place of the script that tuned."""

import shutil
import signal
import subprocess
import sys
import time
import unittest

from support import DEADLOCK, MPIEXEC, PROGRAM, SOURCE, ProgramTest, events, launch_environment, read_json

# Leaves its arguments and environment, then does what its last argument says.
TRAIN = """
import json, os, pathlib, signal, sys
state = {"arguments": sys.argv[1:], "pid": os.getpid(), "directory": os.getcwd(),
         "variables": [name for name in os.environ if name.startswith(("OMPI_", "PMIX_", "DSTUNE_"))]}
def leave(number, frame):
    pathlib.Path("signal").write_text(str(number))
    sys.exit(17)
signal.signal(signal.SIGTERM, leave)
pathlib.Path("state.tmp").write_text(json.dumps(state))
os.rename("state.tmp", "state.json")
print("training")
if sys.argv[-1] == "wait":
    while True: signal.pause()
sys.exit(int(sys.argv[-1]))
"""


class Run(ProgramTest):
    def setUp(self):
        super().setUp()
        self.root = self.make_root()
        self.train = self.directory / "my train.py"
        self.train.write_text(TRAIN, encoding="utf-8")

    def make_root(self):
        """The scripts beside the program, as in a bundle: nothing is built."""
        root = self.directory / "root"
        (root / "bin").mkdir(parents=True)
        (root / "etc" / "openmpi").mkdir(parents=True)
        (root / "scripts").symlink_to(SOURCE / "scripts")
        (root / "bin" / "dstune-mpi").symlink_to(PROGRAM)
        launcher = root / "bin" / "mpirun"
        launcher.write_text(f'#!/bin/sh\nexec "{shutil.which(MPIEXEC)}" "$@"\n', encoding="utf-8")
        launcher.chmod(0o755)
        return root

    def environment(self):
        kept = {name: value for name, value in launch_environment().items()
                if not name.startswith(("OMPI_", "PMIX_", "DSTUNE_"))}
        return kept | {"TMPDIR": str(self.directory)}

    def command(self, config, *options, end, run=True):
        return [self.root / "scripts" / "tune.sh", config, "-n", "3", "--backend", "sim",
                "--results-dir", self.results, *options, *(["--run"] if run else []), "--", sys.executable, self.train, "--deepspeed_config", "ds.json",
                "it's", end]

    def tune_and_train(self, config, *options, end="0", run=True):
        return subprocess.run(list(map(str, self.command(config, *options, end=end, run=run))),
                              cwd=self.directory, env=self.environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=DEADLOCK, check=False)

    def state(self):
        path = self.directory / "state.json"
        return read_json(path) if path.exists() else None

    def test_the_training_gets_the_optimum_and_gives_the_exit_code(self):
        done = self.tune_and_train(self.quick_tiny(), end="23")

        self.assertEqual(done.returncode, 23, done.stderr)
        state = self.state()
        optimum = self.results / "ds_config_optimal.json"
        self.assertEqual(state["arguments"], ["--deepspeed_config", str(optimum), "it's", "23"])
        self.assertEqual(state["directory"], str(self.directory))
        self.assertEqual(state["variables"], [])
        self.assertTrue(done.stdout.endswith("training\n"), done.stdout)
        self.assertIn("starting: ", done.stderr)
        self.assertEqual(list(self.directory.glob("dstune-run.*")), [])

    def test_without_run_it_is_only_written(self):
        done = self.tune_and_train(self.quick_tiny(), run=False)

        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIsNone(self.state())
        self.assertIn("ds_config_optimal.json", (self.results / "cmd_optimal.txt").read_text(encoding="utf-8"))

    def test_a_finished_run_goes_on_with_its_training(self):
        config = self.quick_tiny()
        self.assertEqual(self.tune_and_train(config, run=False).returncode, 0)

        done = self.tune_and_train(config, "--resume", end="5")

        self.assertEqual(done.returncode, 5, done.stderr)

    def test_a_failed_tuning_starts_nothing(self):
        done = self.tune_and_train(self.quick_tiny(), "--memory-limit", "1MiB")

        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIsNone(self.state())
        self.assertIn("the training command is not started: the tuning ended with exit code 3", done.stderr)

    def test_a_provisional_optimum_is_not_trained_with(self):
        config = self.write_config(self.tiny(dstune={"measure_steps": 1000}))
        command = [*self.command(config, "--backend=cpu", end="0")]
        del command[command.index("--backend"):command.index("--backend") + 2]
        with open(self.directory / "stderr.log", "wb") as log:
            tuning = subprocess.Popen(list(map(str, command)), cwd=self.directory, env=self.environment(),
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        self.addCleanup(tuning.kill)
        self.wait_for(lambda: (self.results / "journal.jsonl").exists() and events(self.results, "started"), tuning)

        tuning.send_signal(signal.SIGTERM)
        tuning.wait(DEADLOCK)

        text = (self.directory / "stderr.log").read_text(encoding="utf-8")
        self.assertEqual(tuning.returncode, 4, text)
        self.assertIsNone(self.state())
        self.assertIn("the training command is not started: SIGTERM asked for the end", text)

    def wait_for(self, condition, process):
        deadline = time.monotonic() + DEADLOCK
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(process.poll())
            time.sleep(0.02)

    def test_signals_reach_the_training(self):
        training = subprocess.Popen(list(map(str, self.command(self.quick_tiny(), end="wait"))),
                                    cwd=self.directory, env=self.environment(), stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(training.kill)
        self.wait_for(lambda: self.state() is not None, training)

        training.send_signal(signal.SIGTERM)
        training.wait(DEADLOCK)

        self.assertEqual(self.state()["pid"], training.pid)
        self.assertEqual(training.returncode, 17)
        self.assertEqual((self.directory / "signal").read_text(encoding="utf-8"), str(int(signal.SIGTERM)))

    def test_mpirun_says_that_it_starts_nothing(self):
        done = self.tune_well(3, "--backend", "sim", "--run", self.quick_tiny(), "--", "train")

        self.assertIn("--run starts nothing under mpirun alone", done.stderr)
        self.assertTrue((self.results / "cmd_optimal.txt").exists())

    def test_model_parallel_training_gets_all_its_processes(self):
        config = self.write_config(self.tiny(autotuning={"mp_size": 2}, dstune={"ranks_per_experiment": 4}))

        done = self.tune_well(3, "--backend", "sim", "--emit", "accelerate", "--emit", "transformers", config, "--",
                              "accelerate", "launch", "train.py")

        optimum = read_json(self.results / "ds_config_optimal.json")
        batch = optimum["train_micro_batch_size_per_gpu"] * optimum["gradient_accumulation_steps"]
        self.assertEqual(optimum["train_batch_size"], batch * 4 // 2)
        yaml = (self.results / "accelerate_optimal.yaml").read_text(encoding="utf-8")
        self.assertIn("num_processes: 4\n", yaml)
        command = (self.results / "cmd_optimal.txt").read_text(encoding="utf-8")
        self.assertIn(f"launch --config_file {self.results}/accelerate_optimal.yaml train.py", command)
        self.assertIn(f"--gradient_accumulation_steps {optimum['gradient_accumulation_steps']}", command)
        summary = (self.results / "summary.txt").read_text(encoding="utf-8")
        self.assertIn("Note: mp_size 2: a rank holds ", summary)
        self.assertIn("are not modelled", done.stderr)

    def test_a_command_is_needed(self):
        done = self.run_command([PROGRAM, "--check", "--run", str(self.quick_tiny())])

        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--run  has nothing to start", done.stderr)


if __name__ == "__main__":
    unittest.main()
