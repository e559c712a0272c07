"""scripts/gpu_check.sh --pretend with the programs of this build: no line is tried for the first time on a GPU."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["DSTUNE_BUILD_DIR"])
GROUPS = "machine,smoke,kernels,collectives,frontier,kills,sanitizers"
EXPECTED = {"list-backends", "tune", "messages of 2 GPUs", "messages of 4 GPUs",
            "messages of two groups of 2 GPUs at once", "worker killed", "rank 0 killed", "memcheck", "racecheck",
            "synccheck", "bench_gpu_kernels", "predicted micro-batches", "largest micro-batches"}


class Pretended(unittest.TestCase):
    def make_root(self, folder):
        """A tree whose default build is the one under test."""
        for name in ("scripts", "examples", "bench"):
            (folder / name).symlink_to(SOURCE / name)
        (folder / "build").mkdir()
        (folder / "build" / "default").symlink_to(BUILD)
        return folder

    def test_every_line_that_needs_no_torch_runs(self):
        with tempfile.TemporaryDirectory(prefix="dstune-gpu-check-") as name:
            root, output = self.make_root(pathlib.Path(name)), pathlib.Path(name) / "out"
            done = subprocess.run([SOURCE / "scripts" / "gpu_check.sh", "--pretend", "--only", GROUPS, output],
                                  env=dict(os.environ, DSTUNE_GPU_CHECK_ROOT=str(root), PYTHON=sys.executable),
                                  capture_output=True, text=True, timeout=500, check=False)
            lines = [json.loads(line) for line in (output / "checks.jsonl").read_text(encoding="utf-8").splitlines()]

        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        results = {line["check"]: line["result"] for line in lines if line["group"] != "machine" and
                   "by torch" not in line["check"] and "PyTorch" not in line["check"]}
        self.assertEqual(EXPECTED - set(results), set())
        self.assertEqual(set(results.values()), {"passed"})
        pairs = [line for line in lines if line["check"].startswith("messages of 4 GPUs: ranks")]
        self.assertEqual(len(pairs), 6)
        self.assertTrue(all(line["latency_us"] > 0 for line in pairs), pairs)


if __name__ == "__main__":
    unittest.main()
