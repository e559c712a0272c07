"""A machine for scripts/gpu_check.sh of which all programs do what a test says: no GPU, no CUDA."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])
GPU_CHECK = SOURCE / "scripts" / "gpu_check.sh"
PASSING = 'echo "[  PASSED  ] 12 tests."'
GPU = 'case "$1" in -L) echo "GPU 0: NVIDIA Test" ;; *) echo "NVIDIA Test, 580.1, 80 GB" ;; esac'
CLEAN = 'echo "========= ERROR SUMMARY: 0 errors"'
MPIRUN = 'while [ "$1" != : ]; do shift; done; shift 3; exec "$@"'  # the last of its programs alone
HANGING = "exec tail -f /dev/null"
KERNELS = """cat <<'END'
Matrix products, TFLOP/s

| | ours | cuBLASLt alone | ratio | aim | verdict |
|:--|--:|--:|--:|--:|:--|
| gpt2 c_fc, forward | 98.0 | 100.0 | 0.980 | 0.97 | met |
| gpt2 c_fc, gradient | 50.0 | 100.0 | 0.500 | 0.97 | missed |
| attention | 12.0 | none |  | | not judged |
END
exit 1"""

sys.path.insert(0, str(SOURCE / "scripts" / "gpu_check"))


class Machine(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="dstune-gpu-check-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.root = self.directory / "root"
        self.output = self.directory / "out"
        self.variables = {}
        self.program("root/bin/dstune-mpi", "echo dstune-mpi 0.1.0")
        self.program("root/bin/mpirun", MPIRUN)
        self.program("tools/nvidia-smi", GPU)

    def program(self, name, lines):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{lines}\n", encoding="utf-8")
        path.chmod(0o755)

    def gpu_test(self, name, lines, ranks=1):
        self.program(f"root/bin/tests/{name}", lines)
        with open(self.root / "bin" / "tests" / "list", "a", encoding="utf-8") as listed:
            listed.write(f"{ranks} bin/tests/{name}\n")

    def check(self, *options, code=0, stdout=subprocess.PIPE):
        tools = f"{self.directory / 'tools'}:{pathlib.Path(sys.executable).parent}:/usr/bin:/bin"
        environment = dict(os.environ, DSTUNE_GPU_CHECK_ROOT=str(self.root), PATH=tools, **self.variables)
        done = subprocess.run([GPU_CHECK, *options, self.output], cwd=self.directory, env=environment,
                              stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, f"{done.stdout}{done.stderr}")
        return done

    def only(self, group, *options, code=0):
        """check -> (verdict, detail) of one group's table"""
        return self.rows(self.check("--only", group, *options, code=code))

    def rows(self, done):
        """check -> (verdict, detail) of the table"""
        cells = [[cell.strip() for cell in line.strip("|").split("|")]
                 for line in done.stdout.splitlines() if line.startswith("|")][2:]
        return {row[0]: (row[1], row[2]) for row in cells}

    def lines(self):
        """What checks.jsonl has: every line of it is JSON."""
        text = (self.output / "checks.jsonl").read_text(encoding="utf-8")
        self.assertTrue(text == "" or text.endswith("\n"))
        return {line["check"]: line for line in map(json.loads, text.splitlines())}
