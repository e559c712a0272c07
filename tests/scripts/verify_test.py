"""scripts/verify_against_deepspeed.py as far as it runs without DeepSpeed."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from verify_support import CHECK_RESULT, SPEC, configurations, grid, journal

import verify_against_deepspeed as program
from verify import launch, tuned, worker
from verify.schedule import CHECK

SCRIPT = pathlib.Path(program.__file__)


class FakeBench:
    """Steps take what the configuration says; time passes as visits do."""

    def __init__(self, real):
        self.real, self.now = real, 0.0

    def agree(self, value):
        return value

    def clock(self):
        return self.now

    def visit(self, kind, configuration):
        config = configuration["ds_config"]
        self.now += 1.0
        if kind == CHECK:
            return CHECK_RESULT
        return {"step_s": self.real(config)}


def fake_start(real, dies_at=None, version="0.19.8"):
    def start(_plan, plan_path, events_path):
        bench, lines = FakeBench(real), [{"event": "about", "torch": "2", "deepspeed": version, "transformers": "5",
                                          "device": "cpu", "backend": "gloo", "ranks": 2, "threads_per_rank": 1}]
        visit = bench.visit

        def visit_or_die(kind, configuration):
            if dies_at and configuration["ds_config"] == dies_at:
                raise MemoryError("too much")
            return visit(kind, configuration)
        bench.visit = visit_or_die
        code = 0
        plan_read = json.loads(plan_path.read_text(encoding="utf-8"))
        try:
            worker.run(plan_read, bench, lines.append, bench.clock)
        except MemoryError as fault:
            lines.append({"event": "failed", "reason": str(fault)})
            code = 3
        events_path.write_text(journal(lines), encoding="utf-8")
        return code
    return start


class EndToEnd(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.config = self.folder / "config.json"
        self.config.write_text(json.dumps({"autotuning": {"results_dir": str(self.folder / "results")},
                                           "dstune": {"model": {"model_type": "gpt2", "n_embd": 8}}}), encoding="utf-8")
        self.results = self.folder / "results"
        self.results.mkdir()
        (self.results / "journal.jsonl").write_text(journal(grid()), encoding="utf-8")
        (self.results / "status.json").write_text('{"best": "z0_f_1_100"}', encoding="utf-8")
        (self.results / "summary.txt").write_text("Note: host overhead: preset cpu-gloo.\n", encoding="utf-8")

    def verify(self, start, *arguments):
        with contextlib.redirect_stderr(io.StringIO()):
            return program.verify(program.parse([str(self.config), *arguments]), start)

    def ours(self):
        return {json.dumps(each["experiment"]["ds_config"]): each["outcome"]["step_time_s"]["median"] / 0.95
                for each in grid()}

    def test_a_good_verdict_says_so_in_markdown_json_and_a_plot(self):
        steps = self.ours()

        text, verdict = self.verify(fake_start(lambda config: steps[json.dumps(config)]), "--configs", "20")

        self.assertEqual(verdict, "good", text)
        self.assertIn("20 of 32 measured configurations", text)
        self.assertIn("Ours: host overhead: preset cpu-gloo.", text)
        self.assertIn("z0_f_1_100 is the fastest", text)
        self.assertNotIn("What may mend it", text)
        self.assertIn("Verdict: good.", text)
        kept = json.loads((self.results / "verify" / "verdict.json").read_text(encoding="utf-8"))
        self.assertAlmostEqual(kept["numbers"]["ours_and_real"]["spearman"], 1)
        for each in kept["configurations"]:
            self.assertAlmostEqual(each["ratio"], 0.95)
        self.assertEqual(len(list((self.results / "verify").glob("verdict.*g"))), 1)

    def test_what_can_be_sent_has_no_path(self):
        steps, sent = self.ours(), self.folder / "sent.json"

        self.verify(fake_start(lambda config: steps[json.dumps(config)]), "--configs", "4", "--share", str(sent))

        text = sent.read_text(encoding="utf-8")
        self.assertNotIn(str(self.folder), text)
        self.assertNotIn(self.config.name, text)
        self.assertEqual(len(json.loads(text)["journal"]), len(grid()))

    def test_codes_tell_the_three_verdicts(self):
        for changed, code in ((1.0, 0), (3.0, 1), (None, 3)):
            steps = self.ours()
            steps[json.dumps(grid()[0]["experiment"]["ds_config"])] *= changed or 1.0
            arguments = ["verify", str(self.config), "--configs", "20" if changed else "2"]
            start = fake_start(lambda config: steps[json.dumps(config)])

            with mock.patch.object(program.tuned, "is_installed", lambda _: True), \
                    mock.patch.object(program.verify, "__defaults__", (start,)), \
                    mock.patch.object(sys, "argv", arguments), contextlib.redirect_stderr(io.StringIO()), \
                    contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(program.main(), code)

    def test_earlier_runs_are_judged_beside_other_results(self):
        steps = self.ours()
        self.verify(fake_start(lambda config: steps[json.dumps(config)]), "--configs", "20")
        for line in (lines := grid()):
            line["outcome"]["step_time_s"]["median"] **= -1
        (self.results / "journal.jsonl").write_text(journal(lines), encoding="utf-8")

        runs, again = str(self.results / "verify"), str(self.folder / "again")
        text, verdict = self.verify(None, "--runs", runs, "--output", again)

        self.assertEqual(verdict, "wrong", text)
        self.assertIn("calibrate this machine's host overhead", text)
        kept = json.loads((self.folder / "again" / "verdict.json").read_text(encoding="utf-8"))
        self.assertEqual(len(kept["configurations"]), 20)
        self.assertAlmostEqual(kept["numbers"]["ours_and_real"]["spearman"], -1)

    def test_earlier_runs_of_another_training_are_not_judged(self):
        self.verify(fake_start(lambda config: 1.0), "--configs", "2")
        runs, again = str(self.results / "verify"), str(self.folder / "again")
        for changed in ({"loss": "tiled"}, {"attention": "eager"}, {"lengths": {"law": "uniform"}},
                        {"model": dict(SPEC, lora={"r": 8})}, {"threads_per_rank": 2}):
            with self.subTest(changed):
                (self.results / "journal.jsonl").write_text(journal(grid(**changed)), encoding="utf-8")
                with mock.patch.object(program.tuned, "why_not", lambda _: None), \
                        self.assertRaisesRegex(tuned.InputFault, "no run of the optimum z0_f_1_100 as it was tuned"):
                    self.verify(None, "--runs", runs, "--output", again)
        same = dict(host_overhead_s={"module_hook": 1.0}, memory_limit_bytes=2**40, experiment_timeout_s=1.0,
                    model=dict(SPEC, name="a label"))
        (self.results / "journal.jsonl").write_text(journal(grid(**same)), encoding="utf-8")
        self.verify(None, "--runs", runs, "--output", again)

    def test_runs_without_zero_init_are_said_where_it_changes_what_stage_3_keeps(self):
        for version, zero_init, is_said in (("0.19.3", None, True), ("0.19.3", False, False), ("0.19.4", None, False),
                                            ("0.20.0+abc", None, False), ("0.9.5", None, True)):
            lines = grid()
            for line in lines if zero_init is not None else []:
                line["experiment"]["ds_config"]["dstune"] = {"zero_init": zero_init}
            (self.results / "journal.jsonl").write_text(journal(lines), encoding="utf-8")

            text, _ = self.verify(fake_start(lambda config: 1.0, version=version), "--configs", "20")

            self.assertEqual("Ours is under zero.Init, the runs are not" in text, is_said, version)

    def test_an_optimum_that_was_not_run_is_not_judged_by_earlier_runs(self):
        self.verify(fake_start(lambda config: 1.0), "--configs", "2")
        (self.results / "status.json").write_text('{"best": "z3_b_2_200"}', encoding="utf-8")

        with self.assertRaisesRegex(tuned.InputFault, "has no run of the optimum z3_b_2_200"):
            self.verify(None, "--runs", str(self.results / "verify"))
        with self.assertRaisesRegex(tuned.InputFault, "no runs in"):
            self.verify(None, "--runs", str(self.folder))

    def test_runs_of_another_model_or_without_an_end_are_refused(self):
        self.verify(fake_start(lambda config: 1.0), "--configs", "2")
        runs = self.results / "verify"
        plan = json.loads((runs / "plan.json").read_text(encoding="utf-8"))
        (runs / "plan.json").write_text(json.dumps(dict(plan, model={"model_type": "llama"})), encoding="utf-8")

        with self.assertRaisesRegex(tuned.InputFault, "are of another model"):
            self.verify(None, "--runs", str(runs))
        old = [{"event": "visit", "collectives": {"all_reduce": [1, 4]}}, {"event": "ended"}]
        (runs / "events.jsonl").write_text(journal(old), encoding="utf-8")
        with self.assertRaisesRegex(tuned.InputFault, "of an earlier version"):
            self.verify(None, "--runs", str(runs))
        (runs / "events.jsonl").write_text('{"event": "about"}\n', encoding="utf-8")
        with self.assertRaisesRegex(tuned.InputFault, "were not ended"):
            self.verify(None, "--runs", str(runs))

    def test_a_configuration_that_ends_the_processes_is_a_fault_and_the_others_are_run(self):
        steps, broken = self.ours(), grid()[2]["experiment"]

        text, verdict = self.verify(fake_start(lambda config: steps[json.dumps(config)], broken["ds_config"]))

        self.assertEqual(verdict, "wrong")
        self.assertIn(f"{broken['name']} failed in DeepSpeed: too much", text)
        self.assertNotIn(f"| {broken['name']} |", text)

    def test_a_pick_that_fails_replaces_an_earlier_good_verdict_and_can_be_sent(self):
        steps, sent = self.ours(), self.folder / "new" / "sent.json"
        _, verdict = self.verify(fake_start(lambda config: steps[json.dumps(config)]), "--configs", "20")
        pick = grid()[0]["experiment"]["ds_config"]

        text, again = self.verify(fake_start(lambda config: 1.0, pick), "--share", str(sent))

        self.assertEqual((verdict, again), ("good", "wrong"))
        self.assertIn("z0_f_1_100 failed in DeepSpeed: too much", text)
        self.assertEqual((self.results / "verify" / "verdict.md").read_text(encoding="utf-8"), text)
        kept = json.loads((self.results / "verify" / "verdict.json").read_text(encoding="utf-8"))
        self.assertEqual((kept["verdict"], kept["configurations"]), ("wrong", []))
        self.assertEqual(len(list((self.results / "verify").glob("verdict.*"))), 2)
        self.assertEqual(json.loads(sent.read_text(encoding="utf-8"))["verdict"]["verdict"], "wrong")

    def test_a_run_that_does_not_come_to_a_verdict_leaves_no_earlier_one(self):
        self.verify(fake_start(lambda config: 1.0), "--configs", "2")

        with self.assertRaises(RuntimeError):
            self.verify(lambda _plan, _plan_path, _events_path: 1)

        self.assertEqual(list((self.results / "verify").glob("verdict.*")), [])

    def test_a_file_to_send_that_cannot_be_written_is_said_before_anything_runs(self):
        (self.folder / "file").write_text("", encoding="utf-8")

        for place in (self.folder / "file" / "sent.json", self.folder):
            with self.assertRaises(OSError):
                self.verify(lambda *_: self.fail("it ran"), "--share", str(place))

    def test_what_cannot_be_written_is_2(self):
        (self.folder / "file").write_text("", encoding="utf-8")
        arguments = ["verify", str(self.config), "--share", str(self.folder / "file" / "sent.json")]

        with mock.patch.object(program.tuned, "is_installed", lambda _: True), \
                mock.patch.object(sys, "argv", arguments), contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(program.main(), 2)
        self.assertIn(str(self.folder / "file"), said.getvalue())

    def test_a_budget_leaves_configurations_out_and_says_so(self):
        text, _ = self.verify(fake_start(lambda config: 1.0), "--configs", "20", "--minutes", "1")

        self.assertIn("Left out, for --minutes 1:", text)

    def test_losses_of_stage_0_are_run_where_it_was_not_tuned(self):
        lines = [each for each in grid() if each["experiment"]["ds_config"]["zero_optimization"]["stage"] > 0]
        chosen = configurations(lines)[:1]

        names, extra = program.baselines_of(chosen, configurations(lines))

        self.assertEqual(list(names.values()), list(extra))
        self.assertEqual(next(iter(extra.values()))["ds_config"]["zero_optimization"], {"stage": 0})

    def test_another_model_than_the_tuned_one_is_refused(self):
        model = {"model_type": "gpt2", "n_embd": 16}
        self.config.write_text(json.dumps({"dstune": {"model": model}}), encoding="utf-8")

        with self.assertRaisesRegex(tuned.InputFault, "has 16 for n_embd, the tuned model had 8"):
            self.verify(None, "--results", str(self.results))

    def test_peft_is_asked_for_where_it_is_missing_and_needed(self):
        lines = grid()
        for line in lines:
            line["experiment"]["settings"]["model"] = dict(SPEC, lora={"r": 8})
        (self.results / "journal.jsonl").write_text(journal(lines), encoding="utf-8")

        with mock.patch.object(program.tuned, "is_installed", lambda _: False):
            with self.assertRaisesRegex(tuned.InputFault, "needs peft"):
                self.verify(None)

    def test_other_ranks_than_tuned_are_refused(self):
        with self.assertRaisesRegex(tuned.InputFault, "tuned on 2 ranks per experiment, not 4"):
            self.verify(None, "--ranks", "4")


class WithoutResults(unittest.TestCase):
    def test_the_command_that_makes_them_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("torch", "transformers", "deepspeed"):
                (pathlib.Path(folder) / f"{name}.py").write_text("", encoding="utf-8")
            config = pathlib.Path(folder) / "config.json"
            config.write_text('{"dstune": {"model": "gpt2"}}', encoding="utf-8")

            finished = subprocess.run([sys.executable, "-B", str(SCRIPT), str(config)], text=True, cwd=folder,
                                      env=dict(os.environ, PYTHONPATH=folder), capture_output=True, check=False)

        self.assertEqual(finished.returncode, 2, finished.stderr)
        self.assertIn(f"scripts/tune.sh {config}", finished.stderr)
        self.assertNotIn("Traceback", finished.stderr)

    @unittest.skipIf(importlib.util.find_spec("deepspeed"), "DeepSpeed is installed")
    def test_what_is_missing_is_said(self):
        finished = subprocess.run([sys.executable, "-B", str(SCRIPT), "config.json"], text=True, capture_output=True,
                                  check=False)

        self.assertEqual(finished.returncode, 2)
        self.assertIn("deepspeed", finished.stderr)


class Launching(unittest.TestCase):
    def test_ranks_have_the_threads_and_the_accelerator_that_were_tuned(self):
        settings = {"threads_per_rank": 3, "backend": "cpu"}

        environment = launch.environment_of({"configurations": {"a": {"settings": settings}}})

        self.assertEqual((environment["OMP_NUM_THREADS"], environment["DS_ACCELERATOR"]), ("3", "cpu"))

    @staticmethod
    def run_that_ends_with(*events):
        def start(_plan, _path, path):
            path.write_text(journal([{"event": "started", "name": "a"}, *events]), encoding="utf-8")
            return 3

        with tempfile.TemporaryDirectory() as folder:
            launch.run({"reference": "a", "budget_s": None}, pathlib.Path(folder), start)

    def test_processes_that_end_without_a_word_at_the_reference_end_the_run(self):
        with self.assertRaisesRegex(RuntimeError, "exit code 3: the processes ended") as caught:
            self.run_that_ends_with()
        self.assertNotIsInstance(caught.exception, launch.PickFails)

    def test_a_library_that_is_missing_is_no_fault_of_the_pick(self):
        with self.assertRaisesRegex(RuntimeError, "exit code 3: ModuleNotFoundError") as caught:
            self.run_that_ends_with({"event": "failed", "reason": "ModuleNotFoundError: No module named 'ninja'"})
        self.assertNotIsInstance(caught.exception, launch.PickFails)

    def test_a_pick_that_does_not_fit_or_is_refused_is_wrong_at_once(self):
        for reason in ("OutOfMemoryError: CUDA out of memory", "ValueError: stage 3 takes no such optimizer"):
            with self.assertRaisesRegex(launch.PickFails, f"a failed in DeepSpeed: {reason}"):
                self.run_that_ends_with({"event": "failed", "reason": reason})


if __name__ == "__main__":
    unittest.main()
