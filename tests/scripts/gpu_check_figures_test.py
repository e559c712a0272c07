"""What scripts/gpu_check.sh reads from the ends of its programs, and its verdicts."""

import json
import pathlib
import tempfile
import types
import unittest

import gpu_check_support  # noqa: F401 (the scripts' folder is known through it)

import beside_torch
import frontier
import kill_tuning
import messages_by_torch
import predicted_batches
import several_gpus
from checks import Check
from ending import Ended
from report import Report
from rows import FAILED, PASSED, SPEED, Row, compared, tables

STEPS = """PyTorch 2.9, cuda
| model | micro-batch | ours (ms) | PyTorch (ms) | ratio | first loss, ours | PyTorch's | verdict |
|:--|--:|--:|--:|--:|--:|--:|:--|
| gpt2 | 1 | 10.00 | 10.50 | 0.952 | 11.1 | 11.0 | met |
| gpt2 | 4 | 10.00 | 20.00 | 0.500 | 11.1 | 11.0 | missed |
| gpt2 | 16 | out of memory | 40.00 | | | | not judged |
| gpt2 | 64 | out of memory | out of memory | | | | not judged |
"""
TUNING = """| what | figure | aim | verdict |
|:--|--:|--:|:--|
| wall time | 40.0 s | | |
| share of the wall time in steps | 72.0 % | 80 % | missed |

| stage | largest micro-batch that ran | smallest that was out of memory | PyTorch's largest |
|--:|--:|--:|--:|
| 0 | 20 | 21 | 20 |
| 1 | 10 | none | 20 |
| 2 | none | 1 | 20 |
| 3 | 20 | 20 | 20 |
"""
MESSAGES = """| messages | latency (us) | GB/s |
| -------- | -----------: | ---: |
| ranks 1 and 2 | 10.5 | 200.00 |
| sum of 2 ranks | 12.0 | 190.00 |

"""


def ended(text, code=0):
    return Ended(code, text, 1.0)


def results(rows):
    return {row.check: row.result for row in rows}


class Verdicts(unittest.TestCase):
    def test_faster_is_as_wrong_as_slower(self):
        for ours, result, words in ((0.89, FAILED, "is faster than PyTorch, 0.89 of its time"),
                                    (0.9, PASSED, "within 0.9 to 1.1"), (1.1, PASSED, "within 0.9 to 1.1"),
                                    (1.11, FAILED, "mend: the kernel is slower than PyTorch, 1.11 of its time")):
            row = compared("check", "the kernel", ours, 1.0, "ms", "PyTorch")
            self.assertEqual(row.result, result, ours)
            self.assertIn(words, row.verdict)

    def test_a_speed_may_be_above_the_references(self):
        self.assertEqual(compared("c", "p", 2.0, 1.0, "gb_per_s", "a copy", SPEED, (0.85, None)).result, PASSED)
        row = compared("c", "p", 0.5, 1.0, "gb_per_s", "a copy", SPEED, (0.85, None))
        self.assertEqual(row.verdict, "mend: p is slower than a copy, 0.50 of its speed")

    def test_without_a_reference_nothing_is_judged(self):
        row = compared("c", "p", 2.0, None, "ms", "PyTorch")
        self.assertEqual((row.result, row.verdict, row.ratio), (PASSED, "not judged", None))

    def test_tables_have_the_line_before_them(self):
        self.assertEqual(tables("Title\n\n| a | b |\n|:--|--:|\n| 1 | |\ntext\n| c |\n|--|\n"),
                         [("Title", ["a", "b"], [["1", ""]]), ("text", ["c"], [])])


class Checks(unittest.TestCase):
    def test_what_cannot_be_read_is_one_failed_row(self):
        for judge in (lambda _: [][0], lambda _: float("x"), lambda _: {}["x"], lambda _: None.x, lambda _: open("/x"),
                      lambda _: 1 / 0, lambda _: []):
            row, = Check("name", judge=judge).rows(ended("garbage"))
            self.assertEqual((row.check, row.result), ("name", FAILED))

    def test_a_program_that_failed_is_not_blamed_for_its_output(self):
        row, = Check("name", judge=lambda _: float("x")).rows(ended("no memory", 3))
        self.assertEqual(row.detail, "exit code 3: no memory")


    def test_what_was_ended_has_no_figures_whatever_it_printed(self):
        row, = Check("name", judge=lambda _: [Row("name", PASSED)]).rows(Ended(0, "figures", 2.0, limit_s=2))
        self.assertEqual((row.result, row.detail), (FAILED, "not done after 2 s"))


class Lines(unittest.TestCase):
    def test_a_line_has_the_figures_beside_the_verdict(self):
        with tempfile.TemporaryDirectory() as folder:
            report = Report(pathlib.Path(folder) / ".", False)
            report.say = lambda _: None
            report.add("steps", compared("step", "the step", 3.0, 2.0, "ms", "PyTorch"), 1.26, pathlib.Path("a/b.log"))
            line = json.loads((pathlib.Path(folder) / "checks.jsonl").read_text(encoding="utf-8"))
            report.markdown.close()
        self.assertEqual(line, {
            "check": "step", "group": "steps", "result": "failed", "reference": "PyTorch", "ratio": 1.5,
            "verdict": "mend: the step is slower than PyTorch, 1.50 of its time", "ours_ms": 3.0, "reference_ms": 2.0,
            "aim": [0.9, 1.1], "seconds": 1.3, "detail": "", "log": "b.log", "pretended": False})


class BesideTorch(unittest.TestCase):
    def test_steps_one_of_which_is_out_of_memory(self):
        self.assertEqual(results(beside_torch.beside_steps(ended(STEPS, 1))), {
            "steps beside PyTorch": PASSED, "step of gpt2, micro-batch 1": PASSED,
            "step of gpt2, micro-batch 4": FAILED, "step of gpt2, micro-batch 16": FAILED,
            "step of gpt2, micro-batch 64": PASSED})

    def test_time_and_peak_of_a_configuration_are_judged_apart(self):
        time, peak = beside_torch.beside_configuration({"name": "z3", "ours_s": 1.0, "real_s": 1.0,
                                                        "ours_peak_bytes": 12, "real_peak_bytes": 10})
        self.assertEqual((time.result, time.values), (PASSED, {"ours_ms": 1000.0, "reference_ms": 1000.0}))
        self.assertEqual(peak.verdict, "mend: the peak of z3 is larger than DeepSpeed, 1.20 of its peak")

    def test_largest_micro_batches(self):
        place = types.SimpleNamespace(is_pretended=False, python="p", plain="d", mpirun="m")
        check = frontier.beside_torch(place, None)
        rows = {row.check: row for row in check.rows(ended(TUNING, 1))}
        self.assertEqual(results(rows.values()), {
            "largest micro-batches": PASSED, "share of the wall time in steps": FAILED,
            "largest micro-batch of stage 0": PASSED, "largest micro-batch of stage 1": FAILED,
            "largest micro-batch of stage 2": FAILED, "largest micro-batch of stage 3": FAILED})
        self.assertEqual(rows["largest micro-batch of stage 3"].verdict, "mend: 20 ran and 20 did not")

    def test_a_prediction_that_does_not_fit_is_to_mend(self):
        line = {"stage": 3, "predicted": 20, "of_predicted": "measured", "of_one_more": "out_of_memory"}
        row = frontier.prediction(**line)
        self.assertEqual((row.result, row.detail, row.values), (PASSED, "one more: out of memory",
                                                                {"predicted_sequences": 20}))
        row = frontier.prediction(**dict(line, of_predicted="out_of_memory"))
        self.assertEqual((row.result, row.verdict),
                         (FAILED, "mend: memory of stage 3, 20 sequences should fit: out of memory"))

    def test_one_more_sequence_is_tried_without_the_limit_of_the_prediction(self):
        plan = {"stages": [{"stage": 0, "feasible": False, "max_micro_batch": 0},
                           {"stage": 3, "feasible": True, "max_micro_batch": 7}]}
        config = {"train_batch_size": 1, "zero_optimization": {"stage": "all"}, "dstune": {"memory_limit": "1GiB"}}
        self.assertEqual(predicted_batches.predictions(plan), {3: 7})
        tried = predicted_batches.config_for(config, 3, 7)
        self.assertEqual(tried["train_micro_batch_size_per_gpu"], [7, 8])
        self.assertEqual(tried["zero_optimization"], {"stage": [3]})
        self.assertEqual(tried["dstune"]["memory_limit"], "1TiB")
        self.assertNotIn("train_batch_size", tried)

    def test_a_micro_batchs_end_is_read_from_the_journal(self):
        def line(micro_batch, status, **experiment):
            return json.dumps({"type": "finished", "outcome": {"status": status}, "experiment": {
                "ds_config": {"train_micro_batch_size_per_gpu": micro_batch}, **experiment}}) + "\n"
        journal = line(7, "measured") + line(8, "out_of_memory") + line(7, "failed", measures_machine=True) + '{"torn'
        self.assertEqual(predicted_batches.statuses(journal), {7: "measured", 8: "out_of_memory"})

    def test_a_profile_is_its_events_and_collectives(self):
        profile = {"gradient_hook_us": 5.0, "uncertainty": {"gradient_hook_us": 1.0}, "measured_on": {"ranks": 2},
                   "collectives": {"all_gather": {"bf16": {"latency_us": 9.0, "bus_bandwidth_gb_per_s": 100.0}}}}
        events, gather = beside_torch.events_of(profile)
        self.assertEqual((events.result, events.values), (PASSED, {"gradient_hook_us": 5.0}))
        self.assertEqual((gather.check, gather.values),
                         ("all_gather by torch, bf16", {"latency_us": 9.0, "bus_gb_per_s": 100.0}))
        self.assertEqual(beside_torch.events_of({"measured_on": {}})[0].result, FAILED)


class SeveralGpus(unittest.TestCase):
    def checks(self, gpus):
        with tempfile.TemporaryDirectory() as folder:
            place = types.SimpleNamespace(is_pretended=False, program="d", backend="cuda", gpus=lambda: ["GPU"] * gpus,
                                          python="p", why_no_torch=lambda: "",
                                          on_ranks=lambda ranks, *command: ["mpirun", "-np", ranks, *command])
            return list(several_gpus.collectives(place, pathlib.Path(folder), None))

    def test_one_gpu_has_nobody_to_talk_to(self):
        self.assertEqual([check.reason for check in self.checks(1)], ["one GPU"])

    def test_sizes_go_up_to_what_is_there_and_two_groups_come_last(self):
        self.assertEqual([check.command[2] for check in self.checks(2)[::2]], [3])
        eight, by_torch = self.checks(8)[::2], self.checks(8)[1::2]
        self.assertEqual([check.command[2] for check in eight], [3, 5, 9, 9])
        self.assertEqual(eight[-1].command[-2:], ["--ranks-per-experiment", "4"])
        self.assertEqual([check.command[5] for check in by_torch], [2, 4, 8, 8])
        self.assertEqual([check.command[-2:] for check in by_torch], [[1 << 30, 1]] * 3 + [[1 << 30, 2]])

    def test_messages_of_torch_are_figures(self):
        check = self.checks(2)[1]
        rows = check.rows(ended('{"kind": "all_reduce", "bytes": 1024, "us": 9.5, "bus_gb_per_s": 0.1}\n'))
        self.assertEqual(rows[1].values, {"call_us": 9.5, "bus_gb_per_s": 0.1})
        self.assertEqual(check.rows(ended("nothing"))[0].result, FAILED)
        self.assertEqual(check.rows(ended("no NCCL", 1))[0].detail, "exit code 1: no NCCL")

    def test_sizes_begin_at_a_kib_and_end_at_the_largest(self):
        self.assertEqual(messages_by_torch.sizes(1 << 30), [1 << power for power in (10, 13, 16, 19, 22, 25, 28, 30)])
        self.assertEqual((messages_by_torch.bus_factor("all_reduce", 4), messages_by_torch.bus_factor("all_gather", 4)),
                         (1.5, 0.75))

    def test_messages_must_be_right_and_even(self):
        check = self.checks(2)[0]
        for last, verdict in (("no rank is slow, and all values arrived intact", "passed"),
                              ("slow: rank 2 on host", "mend: slow: rank 2 on host")):
            rows = check.rows(ended(MESSAGES + last))
            self.assertEqual([row.verdict for row in rows], [verdict, "passed", "passed"])
        self.assertEqual(rows[0].result, FAILED)
        self.assertEqual(rows[1].values, {"latency_us": 10.5, "bus_gb_per_s": 200.0})
        row, = check.rows(ended("error: a sum was wrong on rank 1 (1 instead of 3 at element 0)\nmpirun", 1))
        self.assertEqual((row.result, row.verdict),
                         (FAILED, "mend: NCCL or the network, values arrived wrong"))
        self.assertIn("a sum was wrong on rank 1", row.detail)
        self.assertEqual(check.rows(ended("no rank is slow, and all values arrived intact"))[0].result, FAILED)


class Kills(unittest.TestCase):
    def faults(self, names, was_killed=True, code=0, optimum=True):
        with tempfile.TemporaryDirectory() as folder:
            results_folder = pathlib.Path(folder)
            lines = [{"type": "finished", "experiment": {"name": name, "repetition": sum(more)}, "outcome": outcome}
                     for name, outcome, *more in names]
            text = "".join(json.dumps(line) + "\n" for line in lines) + '{"torn'
            (results_folder / "journal.jsonl").write_text(text, encoding="utf-8")
            if optimum:
                (results_folder / "ds_config_optimal.json").write_text("{}", encoding="utf-8")
            return kill_tuning.faults_of(was_killed, code, results_folder, 2)

    def test_each_fault_is_named(self):
        both = [("a", {}), ("b", {})]
        self.assertEqual(self.faults([("a", {"kind": "worker_lost"}), *both]), [])
        self.assertEqual(self.faults(both, was_killed=False), ["it was over before the kill"])
        self.assertEqual(self.faults(both, code=1), ["exit code 1"])
        self.assertEqual(self.faults(both, optimum=False), ["no optimum"])
        self.assertEqual(self.faults([*both, ("a", {}, 1)]), [])  # close ones are measured again
        self.assertEqual(self.faults([*both, ("a", {})]), ["a was measured 2 times"])
        self.assertEqual(self.faults([("a", {})]), ["1 experiments of 2"])

    def test_a_faulty_end_is_a_failed_row(self):
        line = {"victim": 1, "experiments": 2, "end_after_kill_s": 3.0}
        judge = several_gpus.judge_of_kill("name")
        self.assertEqual(judge(ended(json.dumps({**line, "faults": []})))[0].result, PASSED)
        row, = judge(ended(json.dumps({**line, "faults": ["no optimum"]}), 1))
        self.assertEqual((row.result, row.detail), (FAILED, "no optimum"))
        self.assertEqual(judge(ended("Traceback", 1))[0].result, FAILED)


if __name__ == "__main__":
    unittest.main()
