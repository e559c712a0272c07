"""The optimizer on a drive: trained on CPU ranks, explained, limited, and nothing left behind, even by kill -9."""

import ctypes
import json
import mmap
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from nvme_test import has_direct_io
from processes import MARK, Processes, kill, new_mark
from support import DEADLOCK, PROGRAM, ProgramTest, events, launch_environment, mpi_command, outcomes, read_json

LOCKED = 64 << 20  # more than the buffers of a rank take


def may_lock():
    """Tried, since a user's limit and a container's capabilities both decide on it."""
    with mmap.mmap(-1, LOCKED) as memory:
        library = ctypes.CDLL(None, use_errno=True)
        return library.mlock(ctypes.byref(ctypes.c_char.from_buffer(memory)), ctypes.c_size_t(LOCKED)) == 0


class Swapping(ProgramTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(dir=pathlib.Path(PROGRAM).parent, prefix="dstune-swap-")
        self.addCleanup(folder.cleanup)
        self.drive = pathlib.Path(folder.name).resolve()  # as the links in /proc are
        if not has_direct_io(self.drive):
            self.skipTest("the build tree's file system has no O_DIRECT")
        if not may_lock():
            self.skipTest("ulimit -l is too low")

    def swapped(self, devices=("cpu", "nvme"), buffer_count=4, layers=2, **more):
        """About 1.6 million parameters, of which each of two ranks has more than 1 MiB in fp32."""
        config = self.tiny(zero_optimization={
            "stage": [3], "offload_optimizer": {"device": list(devices), "nvme_path": str(self.drive / "not" / "yet"),
                                                "pin_memory": False, "buffer_count": buffer_count, **more}},
            train_micro_batch_size_per_gpu=[2])
        config["dstune"].pop("memory_limit", None)
        config["dstune"].update(
            host_memory_limit="1GiB", tuner="gridsearch", sequence_length=32,
            model={"model_type": "gpt2", "vocab_size": 256, "n_positions": 32, "n_embd": 256, "n_layer": layers,
                   "n_head": 4})
        return self.write_config(config)

    def assert_nothing_is_left(self):
        self.assertEqual(list(self.drive.iterdir()), [])

    def test_it_is_tuned_and_explained(self):
        path = self.swapped()

        finished = self.tune_well(3, path, "--memory-limit", "256MiB")

        results = outcomes(self.results)
        self.assertEqual({outcome["status"] for outcome in results.values()}, {"measured"})
        swapped = next(name for name in results if "nvme" in name)
        host = results[swapped]["peak_host_memory_bytes"]
        self.assertGreater(host["locked"], 0)
        self.assertEqual(host["held"], host["pageable"] + host["locked"])
        transfers = {(line["purpose"], line["transfer"]): line for line in results[swapped]["ledger"]["transfers"]}
        written = transfers[("state", "nvme_write")]
        self.assertEqual(written["bytes"], transfers[("state", "nvme_read")]["bytes"])
        self.assertEqual(written["tier"], "nvme")
        self.assertLessEqual(written["bytes"], host["drive"])
        in_memory = next(outcome for name, outcome in results.items() if "nvme" not in name)
        self.assertEqual(in_memory["first_loss"], results[swapped]["first_loss"])
        self.assertNotIn("drive", in_memory["peak_host_memory_bytes"])
        self.assertIn("drive", finished.stdout)
        explained = self.run_command([PROGRAM, "--explain", swapped, "--results-dir", str(self.results), str(path)])
        self.assertEqual(explained.returncode, 0, explained.stderr)
        for words in ("files on the drive", "host, locked", "nvme_read", "nvme_write", "drive"):
            self.assertIn(words, explained.stdout)
        self.assert_nothing_is_left()

    def test_parameters_are_swapped_too(self):
        path = self.swapped(devices=["cpu"])
        config = json.loads(path.read_text(encoding="utf-8"))
        config["dstune"]["model"].update(n_embd=768, n_head=12)  # matrices of 1.1 MiB in 16 bits for each rank
        config["bf16"] = {"enabled": True}
        config["zero_optimization"].update(
            stage3_max_reuse_distance=0, stage3_prefetch_bucket_size=[0, 50000000],
            offload_param={"device": ["cpu", "nvme"], "nvme_path": str(self.drive), "buffer_count": 20,
                           "buffer_size": 1200000, "max_in_cpu": 0})
        path.write_text(json.dumps(config), encoding="utf-8")

        self.tune_well(3, path, "--memory-limit", "1GiB")

        results = outcomes(self.results)
        measured = {name: outcome for name, outcome in results.items() if outcome["status"] == "measured"}
        self.assertEqual(len({outcome["first_loss"] for outcome in measured.values()}), 1)
        swapped = next(outcome for outcome in measured.values() if "drive" in outcome["peak_host_memory_bytes"])
        transfers = {(line["purpose"], line["transfer"]): line for line in swapped["ledger"]["transfers"]}
        read, written = (transfers[("parameter", way)] for way in ("nvme_read", "nvme_write"))
        self.assertEqual(read["bytes"], 2 * written["bytes"])  # forward and backward
        self.assertEqual(swapped["peak_host_memory_bytes"]["drive"], written["bytes"])
        plan = self.run_command([PROGRAM, "--plan", "--world-size", "2", str(path)])
        self.assertIn("1 invalid: zero_optimization.offload_param.buffer_count 20", plan.stdout)
        self.assertIn("reads a tensor ahead twice", plan.stdout)
        self.assert_nothing_is_left()

    def level(self, **dstune):
        """The same model, whose file leaves it to the search what is on the drive."""
        config = json.loads(self.swapped().read_text(encoding="utf-8"))
        del config["zero_optimization"]["offload_optimizer"]
        config["dstune"].update(offload=["optimizer_on_nvme"], nvme_path=str(self.drive), **dstune)
        return self.write_config(config)

    def test_the_search_puts_the_optimizer_on_the_drive_that_it_is_given(self):
        finished = self.tune_well(3, self.level(), "--memory-limit", "256MiB")

        (outcome,) = outcomes(self.results).values()
        self.assertGreater(outcome["peak_host_memory_bytes"]["drive"], 0)
        zero = read_json(self.results / "ds_config_optimal.json")["zero_optimization"]
        self.assertEqual(zero["offload_optimizer"], {"device": "nvme", "nvme_path": str(self.drive), "pin_memory": True,
                                                     "buffer_count": 4})
        self.assertEqual(zero["offload_param"]["device"], "cpu")
        self.assertEqual(zero["sub_group_size"], 100_000_000)
        self.assertIn(f"dstune-mpi --nvme-sweep {self.drive} finds", finished.stderr)
        self.assert_nothing_is_left()

    def test_a_drive_that_is_too_small_for_the_search_is_what_does_not_fit(self):
        path = self.level(drive_limit=2 << 20)

        plan = self.run_command([PROGRAM, "--plan", "--world-size", "2", "--memory-limit", "1GiB", str(path)])
        run = self.tune(3, path, "--memory-limit", "1GiB")

        for finished in (plan, run):  # stage 3 alone, without offloading, would have room
            self.assertEqual(finished.returncode, 3, finished.stderr)
            self.assertIn("the drive is too small (dstune.drive_limit)", finished.stderr)

    def test_a_byte_too_little_on_the_drive_is_said_before_anything_runs(self):
        path = self.swapped(devices=["nvme"])
        plan = self.run_command([PROGRAM, "--plan", "--world-size", "2", "--memory-limit", "256MiB", "--format", "json",
                                 str(path)])
        needed = json.loads(plan.stdout)["stages"][0]["peak_drive_bytes"]
        for limit, code in ((2 * needed, 0), (2 * needed - 2, 3)):
            config = json.loads(path.read_text(encoding="utf-8"))
            config["dstune"]["drive_limit"] = limit
            finished = self.run_command([PROGRAM, "--plan", "--world-size", "2", "--memory-limit", "256MiB",
                                         str(self.write_config(config))])
            self.assertEqual(finished.returncode, code, finished.stderr)
        self.assertIn("stage 3 does not fit into the drive: a rank needs", finished.stdout)
        self.assertIn("the drive is too small (dstune.drive_limit)", finished.stderr)

    def test_what_wears_the_drive_is_said(self):
        finished = self.tune_well(3, self.swapped(devices=["nvme"]), "--memory-limit", "256MiB")

        self.assertRegex(finished.stdout,
                         r"(?s)each step writes .* days for a drive\s+rated\s+for\s+600\s+TB\s+of\s+writes")

    def test_pipelines_without_their_buffers_are_skipped_by_name(self):
        path = self.swapped(devices=["nvme"], layers=4, pipeline_read=[False, True])
        config = path.read_text(encoding="utf-8").replace('"stage": [3]', '"stage": [3], "sub_group_size": 300000')
        path.write_text(config, encoding="utf-8")

        plan = self.run_command([PROGRAM, "--plan", "--world-size", "2", str(path)])

        self.assertEqual(plan.returncode, 0, plan.stderr)
        self.assertIn("prF", plan.stdout)
        self.assertNotIn("prT", plan.stdout)

    def test_kill_leaves_nothing_and_resume_goes_on(self):
        path = self.swapped(devices=["nvme"], layers=6)
        mark = new_mark()
        with open(self.directory / "log", "wb") as log:
            run = subprocess.Popen(mpi_command(3, path, "--memory-limit", "1GiB"), cwd=self.directory,
                                   env={**launch_environment(), MARK: mark}, stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log)
        end = time.monotonic() + DEADLOCK
        while not self.has_swap_file(mark):
            self.assertLess(time.monotonic(), end)
            self.assertIsNone(run.poll(), (self.directory / "log").read_text(encoding="utf-8"))
            time.sleep(0.01)
        kill(Processes(mark).found, signal.SIGKILL)
        run.wait(DEADLOCK)
        self.assert_nothing_is_left()

        self.tune_well(3, path, "--memory-limit", "1GiB", "--resume")

        self.assertEqual({line["outcome"]["status"] for line in events(self.results, "finished")
                          if "machine_rates" not in line["outcome"]}, {"measured"})
        self.assert_nothing_is_left()

    def has_swap_file(self, mark):
        """Whether some rank has a file without a name on the drive."""
        for pid in Processes(mark).found:
            for descriptor in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
                try:
                    if os.readlink(descriptor).startswith(str(self.drive)):
                        return True
                except OSError:
                    continue
        return False


if __name__ == "__main__":
    unittest.main()
