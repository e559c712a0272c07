"""scripts/gpu_check.sh: what is run, how long, and what is left of a session that ends early."""

import pathlib
import shutil
import tarfile
import unittest

from gpu_check_support import HANGING, PASSING, Machine

SECRET = "HF_TOKEN"
LATER = ("kernels", "host", "collectives", "steps", "frontier", "kills", "sanitizers")


def is_gone(pid):
    """Ended, if perhaps nobody has asked for its exit code."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
        return state == "Z"
    except FileNotFoundError:
        return True


class Usage(Machine):
    def test_without_a_gpu_there_is_one_line(self):
        self.program("tools/nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9")

        done = self.check(code=2)

        self.assertEqual(done.stderr, "gpu_check: no NVIDIA GPU is usable here\n")
        self.assertEqual(done.stdout, "")
        self.assertFalse(self.output.exists())

    def test_without_a_build_it_says_what_to_do(self):
        shutil.rmtree(self.root / "bin")

        self.assertIn("scripts/build.sh cuda", self.check(code=2).stderr)
        self.assertIn("scripts/build.sh other", self.check("--preset", "other", code=2).stderr)

    def test_wrong_usage(self):
        for options in (["--what"], ["a", "b"], ["--only", "smoke,what"], ["--skip", ""]):
            self.assertIn("usage: ", self.check(*options, code=2).stderr)
        self.assertFalse(self.output.exists())


class Tests(Machine):
    def test_all_that_passes_is_a_table_lines_and_0(self):
        self.gpu_test("kernels.cuda.device_test", PASSING + '\necho "[  SKIPPED ] 2 tests, listed below:"')
        self.gpu_test("kernels.cuda.nccl_test", PASSING)

        done = self.check("--only", "tests")

        self.assertIn("GPU: NVIDIA Test, 580.1, 80 GB", done.stdout)
        rows, lines = self.rows(done), self.lines()
        self.assertEqual(rows["kernels.cuda.device_test"], ("passed", "12 passed, 2 skipped"))
        self.assertEqual(rows["kernels.cuda.nccl_test"], ("passed", "12 passed, 0 skipped"))
        line = lines["kernels.cuda.device_test"]
        self.assertEqual((line["group"], line["result"], line["detail"], line["log"], line["pretended"]),
                         ("tests", "passed", "12 passed, 2 skipped", "kernels.cuda.device_test.log", False))
        self.assertIsInstance(line["seconds"], float)
        report = (self.output / "report.md").read_text(encoding="utf-8")
        self.assertTrue(done.stdout.startswith(report))
        self.assertNotIn("PRETENDED", report)

    def test_every_fault_is_a_row_and_1(self):
        self.gpu_test("failing_test", "echo '1 FAILED TEST'; exit 1")
        self.gpu_test("skipping_test", 'echo "[  PASSED  ] 0 tests."; echo "[  SKIPPED ] 3 tests, listed below:"')
        self.gpu_test("good_test", PASSING)
        self.gpu_test("larger_test", 'echo "skipped: every test needs more GPUs than 1"; exit 77')

        done = self.check("--only", "tests", code=1)

        rows = self.rows(done)
        self.assertEqual(rows["failing_test"], ("failed", "exit code 1: 1 FAILED TEST"))
        self.assertEqual(rows["skipping_test"], ("failed", "no test ran, 3 skipped"))
        self.assertEqual(rows["good_test"][0], "passed")
        self.assertEqual(rows["larger_test"], ("not run", "skipped: every test needs more GPUs than 1"))
        self.assertIn("2 of 4 failed, 1 did not run", done.stdout)

    def test_no_tests_are_a_fault(self):
        self.assertEqual(self.only("tests", code=1)["tests"][0], "failed")

    def test_a_test_of_several_ranks_goes_through_mpirun(self):
        self.program("root/bin/mpirun", f'test "$1 $2 $GTEST_COLOR" = "-np 3 no" && test -x "$3" && {PASSING}')
        self.gpu_test("ranks_test", "exit 1", ranks=3)

        self.assertEqual(self.only("tests")["ranks_test"], ("passed", "12 passed, 0 skipped"))

    def test_of_a_large_suite_a_part_runs_unless_all_is_asked_for(self):
        told = PASSING + '\necho "$GTEST_FILTER $GTEST_TOTAL_SHARDS $GTEST_SHARD_INDEX"'
        for name in ("gpu.equivalence_test", "gpu.optimizer_equivalence_test", "gpu.device_test"):
            self.gpu_test(name, told)

        def last_lines():
            return [(self.output / f"gpu.{name}_test.log").read_text(encoding="utf-8").splitlines()[-1].strip()
                    for name in ("equivalence", "optimizer_equivalence", "device")]

        self.only("tests")
        short = last_lines()
        self.only("tests", "--long")

        self.assertEqual(short[1:], ["5 0", ""])
        self.assertIn("*OneParameterGroup/*Accumulation1*", short[0])
        self.assertEqual(last_lines(), ["", "", ""])


class Faults(Machine):
    def test_a_crash_a_hang_and_garbage_cost_a_row_each(self):
        self.gpu_test("crashing_test", "kill -SEGV $$")
        self.gpu_test("hanging_test", HANGING)
        self.gpu_test("good_test", PASSING)
        self.program("root/bin/bench/bench_gpu_kernels", "printf '| \\377 | nonsense |\\n|:--|\\n| 1 |\\n'")

        done = self.check("--only", "tests,kernels", "--limit", "2", code=1)

        rows = self.rows(done)
        self.assertEqual(rows["crashing_test"], ("failed", "ended by SIGSEGV"))
        self.assertEqual(rows["hanging_test"], ("failed", "not done after 2 s"))
        self.assertEqual(rows["good_test"][0], "passed")
        self.assertEqual(rows["bench_gpu_kernels"][0], "failed")
        self.assertIn("cannot be read: ValueError", rows["bench_gpu_kernels"][1])
        self.assertIn("3 of 5 failed", done.stdout)
        self.assertEqual(set(self.lines()), set(rows))

    def test_what_a_hanging_program_started_is_ended_too(self):
        started = self.directory / "pid"
        self.gpu_test("hanging_test", f"setsid tail -f /dev/null & echo $! >{started}; trap '' TERM; wait; {HANGING}")
        self.gpu_test("leaving_test", f"setsid tail -f /dev/null & echo $! >{started}2; {PASSING}")

        self.only("tests", "--limit", "1", code=1)

        for path in (started, started.with_name("pid2")):
            self.assertTrue(is_gone(int(path.read_text(encoding="utf-8"))), path)

    def test_a_program_is_asked_to_end_before_it_is_ended(self):
        asked = self.directory / "asked"
        self.gpu_test("hanging_test", f"trap ': >{asked}; exit' TERM; tail -f /dev/null & wait")

        self.only("tests", "--limit", "1", code=1)

        self.assertTrue(asked.exists())

    def test_a_killed_session_leaves_whole_lines(self):
        self.gpu_test("good_test", PASSING)
        self.gpu_test("killing_test", "kill -KILL $PPID")

        self.check("--only", "tests", code=-9)

        self.assertEqual({name: line["result"] for name, line in self.lines().items()}, {"good_test": "passed"})
        self.assertIn("| good_test | passed |", (self.output / "report.md").read_text(encoding="utf-8"))

    def test_an_interrupted_session_packs_what_it_has(self):
        self.gpu_test("good_test", PASSING)
        self.gpu_test("stopping_test", f"kill -TERM $PPID; {HANGING}")
        self.gpu_test("later_test", PASSING)

        rows = self.only("tests", code=1)

        self.assertEqual(rows, {"good_test": ("passed", "12 passed, 0 skipped"),
                                "stopping_test": ("not run", "a signal ended the session")})
        with tarfile.open(self.output.with_name("out.tar.gz")) as packed:
            self.assertIn("out/checks.jsonl", packed.getnames())

    def test_a_lost_connection_ends_nothing(self):
        self.gpu_test("first_test", PASSING)
        self.gpu_test("second_test", PASSING)

        with open("/dev/full", "wb") as nobody:
            self.check("--only", "tests", stdout=nobody)

        self.assertEqual(list(self.lines()), ["first_test", "second_test"])
        self.assertTrue(self.output.with_name("out.tar.gz").is_file())

    def test_all_but_caches_is_packed(self):
        self.gpu_test("good_test", f"mkdir -p {self.output}/work/cache && : >{self.output}/work/cache/large; {PASSING}")

        self.only("tests")

        with tarfile.open(self.output.with_name("out.tar.gz")) as packed:
            self.assertEqual(sorted(packed.getnames()), [
                "out", "out/checks.jsonl", "out/good_test.log", "out/report.md", "out/work"])

    def test_keys_of_the_user_are_not_packed(self):
        self.variables = {SECRET: "hidden", "NCCL_DEBUG": "WARN"}

        rows = self.only("machine")

        self.assertIn("NCCL_DEBUG=WARN", rows["variables"][1])
        for path in self.output.glob("*.*"):
            self.assertNotIn("hidden", path.read_text(encoding="utf-8"), path.name)


class Selection(Machine):
    def test_when_the_minutes_are_over_the_rest_does_not_run(self):
        self.gpu_test("good_test", PASSING)
        self.gpu_test("hanging_test", HANGING)
        self.gpu_test("later_test", PASSING)

        rows = self.rows(self.check("--minutes", "0.03", "--skip", "machine,smoke"))

        self.assertEqual(rows["good_test"][0], "passed")
        self.assertEqual(rows["hanging_test"][0], "not run")
        self.assertIn("no time left: ended after", rows["hanging_test"][1])
        self.assertEqual(rows["later_test"], ("not run", "no time left"))
        for group in LATER:
            self.assertEqual(rows[group], ("not run", "no time left"), group)

    def test_where_nothing_ran_nothing_passed(self):
        self.assertEqual(self.only("tests", "--minutes", "0", code=1), {"tests": ("not run", "no time left")})

    def test_groups_are_chosen_and_left_out(self):
        self.gpu_test("good_test", PASSING)

        self.check("--only", "tests,kernels,sanitizers", "--skip", "kernels")

        self.assertEqual({line["group"] for line in self.lines().values()}, {"tests", "sanitizers"})

    def test_the_groups_come_in_their_order(self):
        self.check("--minutes", "0", code=1)

        self.assertEqual(list(self.lines()), ["machine", "smoke", "tests", *LATER])


if __name__ == "__main__":
    unittest.main()
