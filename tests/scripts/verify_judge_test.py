"""scripts/verify: what is made of the runs."""

import math
import unittest
import xml.etree.ElementTree

from verify_support import configurations, record

from verify import drift, findings, judge, plot, ranking
from verify.schedule import REFERENCE, TIME


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


class Rows(unittest.TestCase):
    LINES = [record("a", 1.0), record("b", 1.1, stage=1)]

    def test_a_drift_of_the_machine_is_divided_out(self):
        events = [event(REFERENCE, "a", 1, 10 * at, step_s=1 + at) for at in range(4)]
        events += [event(TIME, "a", 1, 10, step_s=2.0), event(TIME, "a", 2, 30, step_s=4.0),
                   event(TIME, "b", 1, 10, step_s=4.0), event(TIME, "b", 2, 20, step_s=6.0)]

        rows, _, _ = judge.rows_of(configurations(self.LINES), events, "throughput")

        self.assertEqual([row.name for row in rows], ["a", "b"])
        self.assertAlmostEqual(rows[1].passes[0], rows[1].passes[1])

    def test_more_passes_tell_smaller_differences(self):
        rows = [judge.Row(each, passes=(1.0, 1.1, 1.0, 1.1)) for each in configurations(self.LINES) * 2]

        noise = judge.noise_of(rows, drift.Pace([]))

        self.assertAlmostEqual(noise["not_told_apart_below"], 2 * noise["visit_spread"] / math.sqrt(2))

    def test_losses_fall_by_what_the_same_data_gain(self):
        row = judge.Row(configurations(self.LINES)[0], losses=[4.0, 2.0, 3.8, 1.9, 3.6, 1.8, 9.0], loss_cycle=2)

        fall, error = row.fall()

        self.assertAlmostEqual(fall, 0.1)
        self.assertAlmostEqual(error, 0.1 / 3)
        row.losses = row.losses[:3]
        self.assertIsNone(row.fall())

    def test_losses_that_are_all_zero_do_not_tell_whether_they_fall(self):
        self.assertIsNone(judge.Row(None, losses=[0.0] * 4, loss_cycle=2).fall())

    def test_a_stage_0_without_numbers_tells_nothing_of_losses(self):
        row = judge.Row(configurations(self.LINES)[0], losses=[1.0], baseline={"losses": [math.nan]})

        self.assertEqual(findings.losses(row)[0], findings.CANNOT_TELL)
        row.losses = [math.nan]
        self.assertEqual(findings.losses(row)[0], findings.WRONG)

    def test_a_tie_of_ours_is_half_a_pair_that_is_ordered_otherwise_in_any_order(self):
        a, b = (judge.Row(each, cost=1.0, real_cost=cost)
                for each, cost in zip(configurations(self.LINES), (1.0, 2.0)))

        for rows in ([a, b], [b, a]):
            self.assertEqual(judge.pairs_told_apart(rows, 0.1),
                             {"pairs": 1, "told_apart": 1, "ordered_otherwise": 0.5})

    def test_two_that_our_own_noise_does_not_tell_apart_are_a_tie_of_ours(self):
        lines = [record("a", 1.0, bucket=100), record("b", 1.1, bucket=200)]
        for line in lines:
            line["outcome"].update(noise_percent=8.0, steps=4, independent_steps=4.0)
        a, b = (judge.Row(each, cost=cost, real_cost=real)
                for each, cost, real in zip(configurations(lines), (1.0, 1.1), (2.0, 1.0)))

        self.assertEqual(judge.pairs_told_apart([a, b], 0.1)["ordered_otherwise"], 0.5)
        b.cost = 1.13  # two standard errors of the difference are 11.3 %
        self.assertEqual(judge.pairs_told_apart([a, b], 0.1)["ordered_otherwise"], 1)
        a.real_cost, b.cost = 0.5, 1.1  # a tie in the right order
        self.assertEqual(judge.pairs_told_apart([a, b], 0.1)["ordered_otherwise"], 0)

    def test_a_median_is_uncertain_by_the_error_of_our_mean(self):
        lines = [record(name, 1.0, bucket=bucket) for name, bucket in zip("abcd", range(4))]
        for line in lines:
            line["outcome"].update(noise_percent=8.0, steps=40, independent_steps=16.0)
        rows = [judge.Row(each, passes=(1.0, 1.0)) for each in configurations(lines)]

        line = judge.times_by_stage(rows, {"visit_spread": 0.0, "passes": 2}, drift.Pace([]))[-1]

        self.assertAlmostEqual(line["uncertainty"], 2 * 1.25 * 0.08 / 4 / 2)

    def test_16_bits_may_be_off_by_two_percent(self):
        row = judge.Row(configurations([record("a", 1.0, bf16=True)])[0], losses=[1.019], baseline={"losses": [1.0]})

        self.assertEqual(findings.losses(row)[0], findings.GOOD)
        row.losses = [1.021]
        self.assertEqual(findings.losses(row)[0], findings.WRONG)

    def test_norms_are_compared_where_stage_0_has_one(self):
        row = judge.Row(None, norms=[None, 2.2, 3.0], baseline={"norms": [None, 2.0, 2.0]})

        for found, expected in zip(row.norm_deviation(), (0.3, 0.5)):
            self.assertAlmostEqual(found, expected)
        row.norms = [None, 2.0, None]
        self.assertEqual(row.norm_deviation(), (math.inf, math.inf))
        row.baseline = {"norms": [None]}
        self.assertEqual(row.norm_deviation(), (None, None))


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
