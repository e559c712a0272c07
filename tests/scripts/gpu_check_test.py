"""scripts/gpu_check.sh with programs that do what the test says: no GPU, no CUDA."""

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


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="dstune-gpu-check-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.root = self.directory / "root"
        self.output = self.directory / "out"
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

    def check(self, *options, code=0):
        environment = dict(os.environ, DSTUNE_GPU_CHECK_ROOT=str(self.root),
                           PATH=f"{self.directory / 'tools'}:/usr/bin:/bin")
        done = subprocess.run([GPU_CHECK, *options, self.output], cwd=self.directory, env=environment,
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def rows(self, done):
        """check -> (result, detail) of the table"""
        cells = [[cell.strip() for cell in line.strip("|").split("|")]
                 for line in done.stdout.splitlines() if line.startswith("|")][2:]
        return {row[0]: (row[1], row[2]) for row in cells}

    def test_without_a_gpu_there_is_one_line(self):
        self.program("tools/nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9")

        done = self.check(code=2)

        self.assertEqual(done.stderr, "gpu_check: no NVIDIA GPU is usable here\n")
        self.assertEqual(done.stdout, "")
        self.assertFalse(self.output.exists())

    def test_without_a_build_it_says_what_to_do(self):
        shutil.rmtree(self.root / "bin")

        self.assertIn("scripts/build.sh cuda", self.check(code=2).stderr)

    def test_wrong_usage(self):
        for options in (["--what"], ["a", "b"]):
            self.assertIn("usage: ", self.check(*options, code=2).stderr)

    def test_all_that_passes_is_a_table_and_0(self):
        self.gpu_test("kernels.cuda.device_test", PASSING + '\necho "[  SKIPPED ] 2 tests, listed below:"')
        self.gpu_test("kernels.cuda.nccl_test", PASSING)
        self.program("root/bin/bench/bench_gpu_gemm", "echo '| gemm | 0.98 |'")
        self.program("tools/compute-sanitizer", CLEAN)

        done = self.check()

        self.assertIn("GPU: NVIDIA Test, 580.1, 80 GB", done.stdout)
        rows = self.rows(done)
        self.assertEqual(rows["kernels.cuda.device_test"], ("passed", "12 passed, 2 skipped"))
        self.assertEqual(rows["kernels.cuda.nccl_test"], ("passed", "12 passed, 0 skipped"))
        self.assertEqual(rows["bench_gpu_gemm"][0], "passed")
        for tool in ("memcheck", "racecheck", "synccheck"):
            self.assertEqual(rows[tool], ("passed", "ERROR SUMMARY: 0 errors"))
        report = (self.output / "report.md").read_text(encoding="utf-8")
        self.assertTrue(report.startswith(done.stdout))
        self.assertIn("| gemm | 0.98 |", report)

    def test_a_missing_sanitizer_is_said_and_no_fault(self):
        self.gpu_test("one_test", PASSING)

        self.assertEqual(self.rows(self.check())["compute-sanitizer"], ("not run", "it is not installed"))

    def test_every_fault_is_a_row_and_1(self):
        self.gpu_test("failing_test", "echo '1 FAILED TEST'; exit 1")
        self.gpu_test("skipping_test", 'echo "[  PASSED  ] 0 tests."; echo "[  SKIPPED ] 3 tests, listed below:"')
        self.gpu_test("good_test", PASSING)
        self.gpu_test("larger_test", 'echo "skipped: every test needs more GPUs than 1"; exit 77')
        self.program("root/bin/bench/bench_gpu_step", "echo out of memory; exit 3")

        done = self.check(code=1)

        rows = self.rows(done)
        self.assertEqual(rows["failing_test"], ("failed", "exit code 1: 1 FAILED TEST"))
        self.assertEqual(rows["skipping_test"], ("failed", "no test ran, 3 skipped"))
        self.assertEqual(rows["good_test"][0], "passed")
        self.assertEqual(rows["larger_test"], ("not run", "skipped: every test needs more GPUs than 1"))
        self.assertEqual(rows["bench_gpu_step"], ("failed", "exit code 3: out of memory"))
        self.assertIn("3 of 6 failed", done.stdout)

    def test_what_takes_too_long_is_ended(self):
        self.gpu_test("hanging_test", "exec tail -f /dev/null")

        rows = self.rows(self.check("--limit", "1", code=1))

        self.assertEqual(rows["hanging_test"], ("failed", "not done after 1 s"))

    def test_no_tests_are_a_fault(self):
        self.assertEqual(self.rows(self.check(code=1))["tests"][0], "failed")

    def test_a_test_of_several_ranks_goes_through_mpirun(self):
        self.program("root/bin/mpirun", f'test "$1 $2 $GTEST_COLOR" = "-np 3 no" && test -x "$3" && {PASSING}')
        self.gpu_test("ranks_test", "exit 1", ranks=3)

        self.assertEqual(self.rows(self.check())["ranks_test"], ("passed", "12 passed, 0 skipped"))

    def test_findings_of_a_sanitizer_count(self):
        self.gpu_test("one_test", PASSING)
        for lines, detail in ((f"{CLEAN}\necho '========= ERROR SUMMARY: 2 errors'", "ERROR SUMMARY: 2 errors"),
                              ("echo '========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)'",
                               "RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"),
                              ("echo nothing", "no summary was printed"),
                              (f"{CLEAN}; echo killed; exit 4", "exit code 4: killed")):
            with self.subTest(detail):
                self.program("tools/compute-sanitizer", lines)
                self.assertEqual(self.rows(self.check(code=1))["memcheck"], ("failed", detail))

    def test_libraries_are_found_in_a_python_wheel(self):
        wheel = self.directory / "venv" / "lib" / "python3.11" / "site-packages" / "nvidia" / "nccl" / "lib"
        wheel.mkdir(parents=True)
        (wheel / "libnccl.so.99").write_text("", encoding="utf-8")
        found = f'case "$LD_LIBRARY_PATH" in *nvidia/nccl/lib*) ;; *) echo "libnccl.so.99 => not found" ;; esac'
        self.program("tools/ldd", found)
        self.gpu_test("one_test", 'case "$LD_LIBRARY_PATH" in *nccl/lib*) ' + PASSING + " ;; esac")

        missing = self.rows(self.check(code=1))
        os.environ["VIRTUAL_ENV"] = str(self.directory / "venv")
        self.addCleanup(os.environ.pop, "VIRTUAL_ENV")

        self.assertIn("not found: libnccl.so.99: set LD_LIBRARY_PATH", missing["libraries"][1])
        self.assertEqual(self.rows(self.check())["one_test"][0], "passed")


class GpuTests(unittest.TestCase):
    def test_each_program_is_named_once_with_its_ranks(self):
        sys.path.insert(0, str(SOURCE / "scripts" / "gpu_check"))
        import gpu_tests  # pylint: disable=import-outside-toplevel

        listing = {"tests": [{"command": ["/b/device_test", "--gtest_filter=A.a"]},
                             {"command": ["/b/device_test", "--gtest_filter=A.b"]},
                             {"command": ["/usr/bin/mpiexec", "-n", "4", "/b/nccl_test"]},
                             {"name": "not built"}]}

        self.assertEqual(gpu_tests.programs(listing), [("1", "/b/device_test"), ("4", "/b/nccl_test")])


if __name__ == "__main__":
    unittest.main()
