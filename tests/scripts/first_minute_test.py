"""scripts/first_minute.py: what it reads out of the lines of a tuning, and what it makes of the times."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "scripts" / "first_minute.py"


def load():
    spec = importlib.util.spec_from_file_location("first_minute", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


minute = load()

BUILD = [(0.2, "setup: installing lld ccache"), (3.0, "[1/400] Building CXX object text.cpp.o")]
CALIBRATION = [(100.0, "tune: DeepSpeed is installed, this machine not measured with 2 ranks: that comes first, in 3 "
                       "minutes")]
TUNING = [(250.0, "dstune-mpi: tuning examples/tiny.json (gpt2, 0.9 M parameters) on 2 workers"),
          (251.0, "first: z0_gas1_tmbspg1; how many and for how long is not known yet"),
          (252.5, "[1 2s] z0_gas1_tmbspg1 -> 12.1 ms +-2.0 %, 165.0 samples/s, 20.00 MiB  (best so far)"),
          (255.0, "[2/~12 5s] z0_gas1_tmbspg2 -> out of memory on rank 1"),
          (260.0, "|   # | experiment      | micro |"), (260.0, "|  *1 | z0_gas1_tmbspg2 |     2 |")]


def figures(rows):
    return [(row.what.removeprefix("- ").split(",")[0], row.seconds) for row in rows]


class OfLines(unittest.TestCase):
    def test_parts_of_a_clone_add_up_to_it(self):
        rows = minute.rows_of_clone(4, BUILD + CALIBRATION + TUNING, "examples/tiny.json")

        self.assertEqual(figures(rows), [("clone to the table of examples/tiny.json", 264), ("git clone", 4),
                                         ("set-up and build", 100), ("calibration", 150), ("tuning", 10)])
        self.assertEqual([row.verdict() for row in rows], ["met", "", "", "", ""])

    def test_without_deepspeed_there_is_no_calibration(self):
        rows = minute.rows_of_clone(60, BUILD + TUNING, "examples/tiny.json")

        self.assertEqual([what for what, _ in figures(rows)[1:]], ["git clone", "set-up and build", "tuning"])
        self.assertEqual((rows[0].seconds, rows[0].verdict()), (320, "missed"))

    def test_what_was_installed_is_said(self):
        self.assertEqual(minute.installed_note(BUILD), "installed in that time: lld ccache")
        self.assertIn("there before", minute.installed_note(TUNING))

    def test_a_tuning_has_two_moments(self):
        rows = minute.rows_of_tuning([(seconds - 249, line) for seconds, line in TUNING], "examples/tiny.json")

        self.assertEqual([(row.seconds, row.limit, row.verdict()) for row in rows],
                         [(1, 2, "met"), (3.5, 10, "met"), (1, None, ""), (1.5, None, "")])

    def test_what_did_not_come_is_named_with_the_last_line(self):
        with self.assertRaisesRegex(minute.Failed, "table of results did not come; .*: first: z0_gas1"):
            minute.rows_of_clone(4, BUILD + TUNING[:2], "examples/tiny.json")


class OfCommands(unittest.TestCase):
    def test_lines_of_both_streams_have_their_times(self):
        lines = minute.watch(["sh", "-c", "echo one; echo two >&2"], ".", dict(os.environ))

        self.assertEqual(sorted(line for _, line in lines), ["one", "two"])
        self.assertGreaterEqual(lines[0][0], 0)

    def test_a_command_is_ended_once_the_line_is_there(self):
        script = "echo 'dstune-mpi: tuning x'; exec sleep 1000"

        lines = minute.watch(["sh", "-c", script], ".", dict(os.environ), until=minute.TUNES)

        self.assertEqual([line for _, line in lines], ["dstune-mpi: tuning x"])

    def test_a_failure_shows_what_was_said(self):
        with self.assertRaisesRegex(minute.Failed, "exit code 3\nno such thing"):
            minute.watch(["sh", "-c", "echo no such thing >&2; exit 3"], ".", dict(os.environ))

    def test_a_command_without_its_answer_has_no_time(self):
        def taken(word):
            return minute.duration(["echo", word], ".", dict(os.environ), must_say=minute.PLANNED)

        self.assertGreater(taken("| stage | parameters |"), 0)
        with self.assertRaisesRegex(minute.Failed, "echo was to print did not come; the last line was: 42"):
            taken("42")

    def test_a_newcomer_has_nothing_in_caches(self):
        given = dict(os.environ, CCACHE_BASEDIR="/", DSTUNE_NP="7", CMAKE_CXX_COMPILER_LAUNCHER="")
        program = (f"import importlib.util, pathlib, sys; sys.dont_write_bytecode = True; "
                   f"spec = importlib.util.spec_from_file_location('m', {str(SCRIPT)!r}); "
                   f"m = importlib.util.module_from_spec(spec); spec.loader.exec_module(m); import json; "
                   f"print(json.dumps(m.environment_of_newcomer(pathlib.Path('/new'))))")

        environment = json.loads(subprocess.run([sys.executable, "-c", program], env=given, check=True,
                                                stdout=subprocess.PIPE).stdout)

        self.assertEqual((environment["CCACHE_DIR"], environment["XDG_CACHE_HOME"]), ("/new/ccache", "/new/cache"))
        self.assertFalse({"CCACHE_BASEDIR", "DSTUNE_NP", "CMAKE_CXX_COMPILER_LAUNCHER"} & set(environment))
        self.assertEqual(environment["PATH"], given["PATH"])


class OfAReport(unittest.TestCase):
    def report(self, *rows):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "figures.json"
            options = minute.parse(["tuning", "--json", str(path)])
            measures, minute.MEASURES = minute.MEASURES, {"tuning": lambda options, folder: (list(rows), [])}
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    code = minute.report(options)
            finally:
                minute.MEASURES = measures
            return code, json.loads(path.read_text(encoding="utf-8"))

    def test_a_limit_that_is_missed_is_exit_code_1(self):
        met, part, missed = minute.Row("a", 1.9, 2), minute.Row("- part", 99), minute.Row("b", 2.1, 2)

        self.assertEqual(self.report(met, part)[0], 0)
        code, written = self.report(met, part, missed)

        self.assertEqual(code, 1)
        self.assertEqual([row["verdict"] for row in written["rows"]], ["met", None, "missed"])

    def test_the_table_has_times_and_limits(self):
        text = minute.table([minute.Row("a", 1.94, 2), minute.Row("- part", 99)])

        self.assertEqual(text.splitlines()[2:], ["| a | 1.9 s | 2 s | met |", "| - part | 99.0 s |  |  |"])

    def test_unknown_parts_are_wrong_usage(self):
        done = subprocess.run([sys.executable, SCRIPT, "whell"], capture_output=True, text=True, check=False)

        self.assertEqual(done.returncode, 2)
        self.assertIn("whell", done.stderr)

    def test_the_plan_is_readmes(self):
        readme = (SCRIPT.parent.parent / "README.md").read_text(encoding="utf-8")

        self.assertTrue(re.search(rf"(?m)^    build/default/dstune-mpi {re.escape(' '.join(minute.PLAN))}$", readme))


if __name__ == "__main__":
    unittest.main()
