"""scripts/verify: what is made of the runs."""

import math
import unittest
import xml.etree.ElementTree

from verify_support import SENT, configurations, record

from verify import drift, judge, plot, ranking, report, tuned
from verify.schedule import CHECK, REFERENCE, TIME


class Ranking(unittest.TestCase):
    def test_kendall_counts_ties_on_either_side(self):
        self.assertAlmostEqual(ranking.kendall([1, 2, 3, 4], [1, 3, 2, 4]), 4 / 6)
        self.assertAlmostEqual(ranking.kendall([1, 1, 2, 3], [1, 2, 2, 3]), 4 / math.sqrt(5 * 5))
        self.assertIsNone(ranking.kendall([1, 1], [1, 2]))

    def test_within_groups_only_pairs_inside_count(self):
        self.assertAlmostEqual(ranking.kendall_within([([1, 2], [3, 4]), ([5, 6], [2, 1])]), 0)
        self.assertAlmostEqual(ranking.spearman_within([([1, 2, 3], [1, 2, 3]), ([1, 2, 3, 4, 5], [5, 4, 3, 2, 1])]),
                               (2 - 4) / 6)
        self.assertIsNone(ranking.spearman_within([([1, 2], [1, 2])]))

    def test_regret_is_of_what_ours_puts_first(self):
        self.assertAlmostEqual(ranking.regret([1, 2, 3], [6, 5, 7]), 0.2)
        self.assertEqual(ranking.regret([1, 2], [5, 6]), 0)


class Drift(unittest.TestCase):
    def test_a_pace_is_divided_out_between_its_references(self):
        pace = drift.Pace([(0, 1.0), (10, 1.0), (20, 2.0), (30, 2.0), (40, 2.0)])

        self.assertAlmostEqual(pace.at(30), 1)
        self.assertAlmostEqual(pace.at(5), 0.5)
        self.assertAlmostEqual(pace.at(15), math.sqrt(0.5))
        self.assertEqual([pace.at(-1), pace.at(99)], [pace.at(0), pace.at(40)])

    def test_one_outlier_is_noise_and_not_a_pace(self):
        pace = drift.Pace([(0, 1.0), (10, 1.0), (20, 3.0), (30, 1.0), (40, 1.0)])

        self.assertAlmostEqual(pace.at(20), 1)
        self.assertGreater(pace.spread(), 0.5)

    def test_nor_is_one_at_the_end(self):
        pace = drift.Pace([(0, 1.0), (10, 1.0), (20, 1.0), (30, 1.0), (40, 5.0)])

        self.assertAlmostEqual(pace.at(40), 1)

    def test_one_bad_visit_does_not_blur_all(self):
        steps = [1.0, 1.01, 1.0, 1.01, 1.0, 1.01, 9.0, 1.01, 1.0, 1.01, 1.0, 1.01]

        self.assertLess(drift.Pace(list(enumerate(steps))).spread(), 0.02)

    def test_a_steady_drift_is_no_noise(self):
        self.assertAlmostEqual(drift.Pace([(at, math.exp(0.1 * at)) for at in range(6)]).spread(), 0)
        self.assertIsNone(drift.Pace([(0, 1.0), (1, 1.0)]).spread())

    def test_two_passes_tell_the_spread_of_one(self):
        firsts = [math.exp(0.1), math.exp(-0.1), math.exp(0.1), 1.0]

        self.assertAlmostEqual(drift.spread_of_pairs(firsts, [1.0] * 4), 1.4826 * 0.1 / math.sqrt(2))
        self.assertIsNone(drift.spread_of_pairs([1.0], [2.0]))


def event(kind, name, number=0, at_s=0.0, **result):
    return dict(result, event="visit", kind=kind, name=name, at_s=at_s, **{"pass": number})


def events_of(real, losses=None, collectives=None):
    """Two equal passes; losses and collectives of every configuration unless they are named."""
    timed = [event(TIME, name, number, step_s=step_s) for name, step_s in real.items() for number in (1, 2)]
    sums = tuned.sums_by_kind(SENT)
    checks = [event(CHECK, name, losses=(losses or {}).get(name, [2.0, 1.0]), peak_bytes=2**20,
                    collectives=(collectives or {}).get(name, sums)) for name in real]
    return [event(REFERENCE, "a", 1, at, step_s=1.0) for at in range(4)] + timed + checks


class Verdict(unittest.TestCase):
    LINES = [record("a", 1.0), record("b", 1.1, stage=1), record("c", 1.2, stage=2), record("d", 2.0, stage=3)]

    def judge(self, real, pick="a", failed=(), **faults):
        each = configurations(self.LINES)
        rows, pace, checks = judge.rows_of(each, events_of(real, **faults), "throughput")
        judge.give_baselines(rows, {each[0].batch: "a"}, checks)
        return judge.judge(rows, pace, pick, dict(failed)), rows

    def test_the_same_order_is_good_whatever_the_ratio(self):
        result, rows = self.judge({"a": 2.0, "b": 2.2, "c": 2.5, "d": 9.0})

        self.assertEqual(result["faults"], [])
        self.assertAlmostEqual(result["ours_and_real"]["spearman_within"], 1)
        self.assertEqual((result["regret"], result["batches"][0]["regret"]), (0, 0))
        self.assertAlmostEqual(rows[0].ratio, 0.5)

    def test_a_pick_that_is_slower_beyond_noise_is_wrong(self):
        result, _ = self.judge({"a": 2.0, "b": 1.8, "c": 2.5, "d": 9.0})

        self.assertEqual((result["fastest"], len(result["faults"])), ("b", 1))
        self.assertAlmostEqual(result["regret"], 0.2 / 1.8)
        self.assertEqual(result["pairs"], {"pairs": 6, "told_apart": 6, "ordered_otherwise": 1})

    def test_within_two_percent_it_is_not(self):
        self.assertEqual(self.judge({"a": 2.0, "b": 1.97, "c": 2.5, "d": 9.0})[0]["faults"], [])

    def test_within_the_noise_of_the_run_it_is_not(self):
        events = events_of({"a": 2.0, "b": 1.8, "c": 2.5, "d": 9.0})
        for each in events:
            if each["kind"] == TIME and each["pass"] == 2:
                each["step_s"] *= 1.2
        rows, pace, _ = judge.rows_of(configurations(self.LINES), events, "throughput")

        result = judge.judge(rows, pace, "a", {})

        self.assertEqual(result["faults"], [])
        self.assertAlmostEqual(result["noise"]["not_told_apart_below"], 2 * 1.4826 * math.log(1.2) / math.sqrt(2))
        self.assertLess(result["pairs"]["told_apart"], 6)

    def test_without_a_known_noise_no_pick_is_wrong(self):
        events = [each for each in events_of({"a": 2.0, "b": 1.0}) if each["kind"] != REFERENCE]
        events += [event(REFERENCE, "a", 1, 0, step_s=1.0)]
        rows, pace, _ = judge.rows_of(configurations(self.LINES), events, "throughput")

        result = judge.judge(rows, pace, "a", {})

        self.assertEqual((result["noise"]["visit_spread"], result["faults"]), (None, []))
        self.assertIn("noise that is not known", report.pick_text(result))

    def test_a_run_that_tells_little_says_so(self):
        self.assertEqual(report.good_text({"noise": {"not_told_apart_below": 0.02}}), "Verdict: good.")
        for limit in (0.3, None):
            self.assertIn("which is little", report.good_text({"noise": {"not_told_apart_below": limit}}))

    def test_a_configuration_that_does_not_train_as_stage_0_is_a_fault(self):
        real = {"a": 1.0, "b": 1.1, "c": 1.2, "d": 2.0}

        result, rows = self.judge(real, losses={"b": [2.0, 1.0009], "c": [2.0, 1.002], "d": [2.0, math.nan]})

        self.assertEqual([row.trains() for row in rows], [True, True, False, False])
        self.assertEqual(len(result["faults"]), 2)

    def test_16_bits_may_be_off_by_two_percent(self):
        row = judge.Row(configurations([record("a", 1.0, bf16=True)])[0], losses=[1.019], baseline=[1.0])

        self.assertTrue(row.trains())
        row.losses = [1.021]
        self.assertFalse(row.trains())

    def test_one_call_more_is_a_fault_that_says_which(self):
        sums = {"all_reduce": [4, 104], "all_gather": [1, 50]}

        result, _ = self.judge({"a": 1.0, "b": 1.1, "c": 1.2, "d": 2.0}, collectives={"d": sums})

        self.assertEqual(result["faults"], ["d sends otherwise: all_reduce 3 calls of 104 bytes here, 4 calls of 104 "
                                            "bytes in DeepSpeed"])

    def test_what_failed_in_deepspeed_is_a_fault(self):
        result, _ = self.judge({"a": 1.0, "b": 1.1, "c": 1.2}, failed={"d": "no memory"})

        self.assertEqual(result["faults"], ["d failed in DeepSpeed: no memory"])

    def test_a_drift_of_the_machine_is_divided_out(self):
        events = [event(REFERENCE, "a", 1, 10 * at, step_s=1 + at) for at in range(4)]
        events += [event(TIME, "a", 1, 10, step_s=2.0), event(TIME, "a", 2, 30, step_s=4.0),
                   event(TIME, "b", 1, 10, step_s=4.0), event(TIME, "b", 2, 20, step_s=6.0)]

        rows, _, _ = judge.rows_of(configurations(self.LINES), events, "throughput")

        self.assertEqual([row.configuration.name for row in rows], ["a", "b"])
        self.assertAlmostEqual(rows[1].passes[0], rows[1].passes[1])


class Plot(unittest.TestCase):
    def test_an_svg_has_a_point_for_each_configuration_and_is_xml(self):
        points = [(100.0, 50.0, 0, "z0"), (200.0, 130.0, 3, "z3 <&>")]

        text = plot.svg(points, "gpt2 & co")

        root = xml.etree.ElementTree.fromstring(text)
        titles = [each.text for each in root.iter() if each.tag.endswith("title")]
        self.assertEqual(titles, ["z0", "z3 <&>"])
        self.assertEqual(plot.ticks(43, 230), [50, 100, 200])


if __name__ == "__main__":
    unittest.main()
