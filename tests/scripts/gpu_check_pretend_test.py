"""scripts/gpu_check.sh without a GPU, its sanitizers, and what it looks for before it begins."""

import unittest

from gpu_check_support import CLEAN, KERNELS, PASSING, Machine


class Sanitizers(Machine):
    def test_clean_ones_pass(self):
        self.program("tools/compute-sanitizer", CLEAN)

        rows = self.only("sanitizers")

        for tool in ("memcheck", "racecheck", "synccheck"):
            self.assertEqual(rows[tool], ("passed", "ERROR SUMMARY: 0 errors"))

    def test_a_missing_sanitizer_is_said_and_no_fault(self):
        self.gpu_test("one_test", PASSING)

        rows = self.rows(self.check("--only", "tests,sanitizers"))

        self.assertEqual(rows["compute-sanitizer"], ("not run", "it is not installed"))

    def test_findings_of_a_sanitizer_count(self):
        for lines, detail in ((f"{CLEAN}\necho '========= ERROR SUMMARY: 2 errors'", "ERROR SUMMARY: 2 errors"),
                              ("echo '========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)'",
                               "RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"),
                              ("echo nothing", "no summary was printed"),
                              (f"{CLEAN}; echo killed; exit 4", "exit code 4: killed")):
            with self.subTest(detail):
                self.program("tools/compute-sanitizer", lines)
                self.assertEqual(self.only("sanitizers", code=1)["memcheck"], ("failed", detail))


class Libraries(Machine):
    def test_libraries_are_found_in_a_python_wheel(self):
        wheel = self.directory / "venv" / "lib" / "python3.11" / "site-packages" / "nvidia" / "nccl" / "lib"
        wheel.mkdir(parents=True)
        (wheel / "libnccl.so.99").write_text("", encoding="utf-8")
        found = 'case "$LD_LIBRARY_PATH" in *nvidia/nccl/lib*) ;; *) echo "libnccl.so.99 => not found" ;; esac'
        self.program("tools/ldd", found)
        self.gpu_test("one_test", 'case "$LD_LIBRARY_PATH" in *nccl/lib*) ' + PASSING + " ;; esac")

        missing = self.only("tests", code=1)
        self.variables = {"VIRTUAL_ENV": str(self.directory / "venv")}

        self.assertIn("not found: libnccl.so.99: set LD_LIBRARY_PATH", missing["libraries"][1])
        self.assertEqual(self.only("tests")["one_test"][0], "passed")


class Pretended(Machine):
    def setUp(self):
        super().setUp()
        self.program("tools/nvidia-smi", "exit 9")

    def test_it_needs_no_gpu_and_judges_no_figure(self):
        self.program("root/bin/bench/bench_gpu_kernels", KERNELS)

        done = self.check("--pretend", "--only", "kernels")

        self.assertIn("PRETENDED: no GPU was used", (self.output / "report.md").read_text(encoding="utf-8"))
        self.assertEqual(self.rows(done)["bench_gpu_kernels: gpt2 c_fc, gradient"][0], "not judged: pretended")
        line = self.lines()["bench_gpu_kernels: gpt2 c_fc, gradient"]
        self.assertEqual((line["ratio"], line["result"], line["pretended"]), (0.5, "passed", True))

    def test_what_cannot_run_fails_all_the_same(self):
        self.program("root/bin/bench/bench_gpu_kernels", "exit 2")

        self.assertEqual(self.only("kernels", "--pretend", code=1)["bench_gpu_kernels"], ("failed", "exit code 2:"))

    def test_benchmarks_run_in_small_and_tunings_on_the_cpu(self):
        self.program("root/bin/bench/bench_gpu_kernels", f'test "$*" = "cpu trial" || exit 2\n{KERNELS}')
        self.program("root/bin/mpirun", 'shift 3; test "$1 $2" = "--backend cpu" || exit 3\n'
                     'while [ "$1" != --results-dir ]; do shift; done; mkdir -p "$2"; : >"$2/ds_config_optimal.json"')
        self.program("root/bin/dstune-mpi", 'echo "cpu: available"')

        rows = self.rows(self.check("--pretend", "--only", "smoke,kernels"))

        self.assertEqual(rows["tune"][0], "passed")
        self.assertEqual(rows["bench_gpu_kernels"], ("passed", "figures: 3"))

    def test_the_sanitizers_lines_run_without_one(self):
        self.program("root/bin/dstune-mpi", "echo the worker")

        self.assertEqual(self.only("sanitizers", "--pretend")["memcheck"],
                         ("passed", "ERROR SUMMARY: 0 errors, pretended"))
        self.assertIn("the worker", (self.output / "memcheck.log").read_text(encoding="utf-8"))


class GpuTests(unittest.TestCase):
    def test_each_program_is_named_once_with_its_ranks(self):
        import gpu_tests  # pylint: disable=import-outside-toplevel

        listing = {"tests": [{"command": ["/b/device_test", "--gtest_filter=A.a"]},
                             {"command": ["/b/device_test", "--gtest_filter=A.b"]},
                             {"command": ["/usr/bin/mpiexec", "-n", "4", "/b/nccl_test"]},
                             {"name": "not built"}]}

        self.assertEqual(gpu_tests.programs(listing), [("1", "/b/device_test"), ("4", "/b/nccl_test")])


if __name__ == "__main__":
    unittest.main()
