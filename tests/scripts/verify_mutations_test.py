"""scripts/verify/findings.py: what is noticed of a result that is not sound."""

import math
import unittest

from verify_support import CHECK_RESULT, MEMORY_LIMIT, PEAK, configurations, record

from verify import findings, judge, report
from verify.findings import CANNOT_TELL, GOOD, WRONG
from verify.schedule import CHECK, REFERENCE, TIME


class Result:
    """A sound one of four stages in two batches, to be changed; `events` are those of DeepSpeed, 2 % noisy."""

    def __init__(self):
        self.lines = [record(f"z{stage}_{accumulation}", (1 + 0.2 * stage) * (1.1 if accumulation == 2 else 1.0), stage,
                             4 // accumulation, accumulation) for accumulation in (1, 2) for stage in range(4)]
        self.pick, self.failed, self.extra = "z0_1", {}, set()
        self.visits = [self.visit(REFERENCE, "z0_1", at_s=at, step_s=1.0 + 0.01 * (at % 2)) for at in range(8)]
        for place, line in enumerate(self.lines):
            name, step_s = line["experiment"]["name"], line["outcome"]["step_time_s"]["median"]
            for number in (1, 2):
                noisy = step_s * (1.01 if (place + number) % 2 else 0.99)
                self.visits.append(self.visit(TIME, name, at_s=4.0, step_s=noisy, number=number))
            self.visits.append(self.visit(CHECK, name, **CHECK_RESULT))
        self.has_baselines, self.untuned_baseline = True, None

    @staticmethod
    def visit(kind, name, number=0, at_s=0.0, **result):
        return dict(result, event="visit", kind=kind, name=name, at_s=at_s, **{"pass": number})

    def of(self, kind, name=""):
        return [each for each in self.visits if each["kind"] == kind and each["name"].startswith(name)]

    def scale(self, factor, name=""):
        for each in self.of(TIME, name):
            each["step_s"] *= factor

    def set_checks(self, name="", **values):
        for each in self.of(CHECK, name):
            each.update(values)

    def drop(self, visits):
        self.visits = [each for each in self.visits if each not in visits]

    def noise(self, factor):
        """Of the second passes, by turns up and down."""
        for place, each in enumerate(visit for visit in self.of(TIME) if visit["pass"] == 2):
            each["step_s"] *= factor if place % 2 else 1 / factor

    def judge(self):
        each = configurations(self.lines)
        rows, pace, checks = judge.rows_of(each, self.visits, "throughput")
        if self.has_baselines:
            judge.give_baselines(rows, {one.batch: one.name for one in each if one.stage == 0}, checks)
        for row in rows if self.untuned_baseline else []:
            row.baseline = self.untuned_baseline
        result = judge.judge(rows, pace, self.pick, self.failed)
        return rows, result, findings.findings_of(rows, result, self.extra)


def order_turned_round(result):
    times = [each["step_s"] for each in result.of(TIME) if each["name"] != result.pick][::-1]
    for each, step_s in zip((each for each in result.of(TIME) if each["name"] != result.pick), times):
        each["step_s"] = step_s


def pick_twenty_percent_slower(result):
    result.noise(1.11)
    result.scale(1.1 * 1.2, "z0_1")  # the next one takes 1.1 s


def collectives(**values):
    return dict(collectives=dict(CHECK_RESULT["collectives"], **{key.replace("__", " "): value
                                                                 for key, value in values.items()}))


def losses(change):
    return dict(losses=[change(step, loss) for step, loss in enumerate(CHECK_RESULT["losses"])])


def only(name):
    def change(result):
        result.drop([each for each in result.visits if each["kind"] != REFERENCE and each["name"] != name])
    return change


def no_baseline(result):
    result.has_baselines = False


def baseline_without_numbers(result):
    result.untuned_baseline = dict(CHECK_RESULT, losses=[math.nan] * 8)


def ties_of_ours(result):
    """But for the pick, which is the fastest in both."""
    for line in result.lines:
        if line["experiment"]["name"] not in ("z0_1", "z0_2"):
            line["outcome"]["step_time_s"]["median"] = 1.3


def peaks_of_ours(size):
    def change(result):
        for line in result.lines:
            line["outcome"]["peak_memory_bytes"] = size
        result.set_checks(peak_bytes=size)
    return change


def failed(result):
    only_one = result.of(TIME, "z3_2") + result.of(CHECK, "z3_2")
    result.drop(only_one)
    result.failed = {"z3_2": "no memory"}


def stage_0_fails(result):
    result.failed, result.extra = {"stage 0 of z1_1": "no memory"}, {"stage 0 of z1_1"}


def pace_moves(result):
    for each in result.of(REFERENCE):
        each["step_s"] *= math.exp(0.08 * each["at_s"])


# What is done to the sound result: (its name, the change, the verdict, the subjects that say so).
MUTATIONS = [
    ("the order is turned round but for the pick", order_turned_round, WRONG, {"order", "time"}),
    ("all real peaks are twice ours", lambda r: r.set_checks(peak_bytes=2 * PEAK), WRONG, {"peaks"}),
    ("the pick's peak is 10 GiB under a limit of 3", lambda r: r.set_checks("z0_1", peak_bytes=10 * 2**30), WRONG,
     {"peaks", "limit"}),
    ("and the ledger says so, too", peaks_of_ours(10 * 2**30), WRONG, {"limit"}),
    ("a type is another, with the same bytes", lambda r: r.set_checks(
        collectives={"all_reduce fp32": [3, 26, 104], "all_gather fp16": [1, 25, 50]}), WRONG, {"communication"}),
    ("elements are others, with the same bytes", lambda r: r.set_checks(**collectives(all_gather__bf16=[1, 50, 50])),
     WRONG, {"communication"}),
    ("a call is missing", lambda r: r.set_checks("z3_1", **collectives(all_reduce__fp32=[2, 26, 104])), WRONG,
     {"communication"}),
    ("a kind is not sent at all", lambda r: r.set_checks(collectives={"all_reduce fp32": [3, 26, 104]}), WRONG,
     {"communication"}),
    ("all diverge alike", lambda r: r.set_checks(**losses(lambda step, loss: 3.0 * 1.5**step)), WRONG, {"learning"}),
    ("all end in no number alike", lambda r: r.set_checks(**losses(lambda step, loss: loss if step < 5 else math.nan)),
     WRONG, {"losses", "learning"}),
    ("one's losses are no numbers", lambda r: r.set_checks("z2_1", losses=[math.nan] * 8), WRONG,
     {"losses", "learning"}),
    ("no losses fall", lambda r: r.set_checks(losses=[3.0, 2.9, 3.1, 3.0] * 2), WRONG, {"learning"}),
    ("whether losses fall is within their noise",
     lambda r: r.set_checks(losses=[3.0, 2.9, 3.1, 3.0, 3.2, 2.6, 3.3, 2.7]), CANNOT_TELL, {"learning"}),
    ("one trains otherwise", lambda r: r.set_checks("z3_1", **losses(lambda step, loss: loss * 1.002)), WRONG,
     {"losses"}),
    ("gradients' norms are twice stage 0's", lambda r: r.set_checks("z2", norms=[3.0, 2.8, 2.6]), WRONG, {"norms"}),
    ("the pick is 20 % slower under a noise of 11 %", pick_twenty_percent_slower, CANNOT_TELL,
     {"pick", "time"}),
    ("the pick is 20 % slower", lambda r: r.scale(1.1 * 1.2, "z0_1"), WRONG, {"pick", "time"}),
    ("all of DeepSpeed's steps take twice as long", lambda r: r.scale(2.0), WRONG, {"time"}),
    ("one stage's steps take longer", lambda r: r.scale(1.4, "z3"), WRONG, {"time"}),
    ("half are too fast and half too slow", lambda r: (r.scale(2.0, "z3_1"), r.scale(0.5, "z3_2")), WRONG,
     {"pick", "order", "time"}),
    ("the pick alone was run", only("z0_1"), CANNOT_TELL, {"pick", "order"}),
    ("the pick was not run", lambda r: r.drop(r.of(TIME, "z0_1")), CANNOT_TELL, {"pick"}),
    ("a gradient's norm is ten times stage 0's in one step", lambda r: r.set_checks("z2", norms=[1.5, 1.4, 13.0]), WRONG,
     {"norms"}),
    ("there is no stage 0", no_baseline, CANNOT_TELL, {"losses", "norms"}),
    ("a stage 0 that was not tuned has no numbers", baseline_without_numbers, CANNOT_TELL, {"losses"}),
    ("all losses are 0", lambda r: r.set_checks(losses=[0.0] * 8), CANNOT_TELL, {"learning"}),
    ("ours has most configurations as ties", ties_of_ours, WRONG, {"order", "time"}),
    ("stage 0 fails where it was not tuned", stage_0_fails, CANNOT_TELL, {"runs"}),
    ("each was timed once", lambda r: r.drop([each for each in r.of(TIME) if each["pass"] == 2]), CANNOT_TELL,
     {"runs", "pick", "order", "time", "peaks", "limit", "communication", "losses", "learning", "norms"}),
    ("peaks are not known", lambda r: r.set_checks(peak_bytes=None), CANNOT_TELL, {"peaks", "limit"}),
    ("what is sent is not known", lambda r: r.set_checks(collectives=None), CANNOT_TELL, {"communication"}),
    ("norms are not known", lambda r: r.set_checks(norms=None), CANNOT_TELL, {"norms"}),
    ("losses are too few", lambda r: r.set_checks(losses=[3.0, 2.9, 3.1, 3.0]), CANNOT_TELL, {"learning"}),
    ("one fails", failed, WRONG, {"runs"}),
    ("one visit is within 15 %", lambda r: r.noise(1.2), CANNOT_TELL, {"pick", "order", "time"}),
    ("there are no references, and two configurations", lambda r: (
        r.drop(r.of(REFERENCE)), r.drop([each for each in r.of(TIME) if each["name"][:2] > "z0"])), CANNOT_TELL,
     {"pick", "order", "time"}),
    ("the machine's pace moves by half", pace_moves, CANNOT_TELL, {"time"}),
]


class Mutations(unittest.TestCase):
    def test_the_sound_result_is_good(self):
        rows, result, found = Result().judge()

        self.assertEqual({each.outcome for each in found}, {GOOD}, found)
        self.assertEqual((len(rows), result["pairs"]["ordered_otherwise"]), (8, 0))
        self.assertTrue(all(row.peak_bytes < MEMORY_LIMIT for row in rows))

    def test_each_mutation_is_noticed_where_it_is(self):
        for name, change, outcome, subjects in MUTATIONS:
            with self.subTest(name):
                result = Result()
                change(result)

                rows, numbers, found = result.judge()

                self.assertEqual(findings.verdict_of(found), outcome, found)
                self.assertEqual({each.what for each in found if each.outcome == outcome}, subjects, found)
                self.assertTrue(all(each.needs for each in found if each.outcome == CANNOT_TELL), found)
                about = dict(line="", notes=[], advice=["calibrate"], metric="throughput", loss_steps=8)
                text = report.markdown(rows, numbers, about, found)
                self.assertIn(f"Verdict: {outcome}.", text)
                self.assertEqual("calibrate" in text, any(
                    each.what in findings.TIMING and each.outcome == WRONG for each in found))

    def test_one_that_is_listed_twice_counts_once(self):
        result = Result()
        result.lines += result.lines[:3]

        rows, numbers, _ = result.judge()

        self.assertEqual((len(rows), numbers["pairs"]["pairs"]), (8, 12))

    def test_a_call_more_is_said_with_both_sides(self):
        result = Result()
        result.set_checks("z3_1", **collectives(all_reduce__fp32=[4, 26, 104]))

        texts = [each.text for each in result.judge()[2] if each.what == "communication"]

        self.assertEqual(texts, ["z3_1 sends something else: all_reduce fp32 3 calls of 26 elements, 104 bytes here, 4 "
                                 "calls of 26 elements, 104 bytes in DeepSpeed"])

    def test_a_pick_within_two_percent_is_good_and_within_noise_cannot_be_told(self):
        for factor, outcome in ((1.1 * 1.01, GOOD), (1.1 * 1.04, CANNOT_TELL)):
            result = Result()
            result.scale(factor, "z0_1")

            found = [each for each in result.judge()[2] if each.what == "pick"]

            self.assertEqual(found[0].outcome, outcome, found)


if __name__ == "__main__":
    unittest.main()
