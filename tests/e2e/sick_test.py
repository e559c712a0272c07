"""A rank that is sick: the healthy ones do the work, and it is named."""

import os
import unittest

from support import SURVIVE, ProgramTest, events, names, outcomes, read_json

LIBRARY = os.environ["DSTUNE_SICK_RANK_LIBRARY"]


class SickRank(ProgramTest):
    def tune_with(self, sickness, rank, ranks, config, *arguments):
        # A rank whose BLAS is sick would find oneDNN to be faster, and be well.
        options = ["-x", "DSTUNE_CPU_PRODUCTS=blas", "-x", f"LD_PRELOAD={LIBRARY}", "-x", f"DSTUNE_SICK_RANK={rank}",
                   "-x", f"DSTUNE_SICKNESS={sickness}",
                   "-x", "ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0"]
        return self.tune(ranks, config, *arguments, mpi=(*SURVIVE, *options))

    def alone(self):
        """One rank per experiment: the sick one is idle first."""
        return self.write_config(self.tiny(dstune={"ranks_per_experiment": 1, "worker_timeout": 6},
                                           zero_optimization={"stage": [0, 1]}))

    def started_on(self, rank):
        return [line for line in events(self.results, "started") if rank in line["ranks"]]

    def expect_all_measured(self, log):
        self.assertEqual(read_json(self.results / "status.json")["exit_code"], 0, log)
        results = outcomes(self.results)
        self.assertGreaterEqual(len(results), 6, log)
        self.assertEqual({outcome["status"] for outcome in results.values()}, {"measured"}, log)

    def test_one_that_fails_gets_one_experiment(self):
        finished = self.tune_with("fails", 1, 4, self.alone())

        self.expect_all_measured(finished.stderr)
        self.assertEqual(len(self.started_on(1)), 1, finished.stderr)
        self.assertRegex(finished.stderr, r"warning: rank 1 on \S+ is sick .*uncorrectable memory")

    def test_one_that_failed_gets_nothing_in_the_resumed_run(self):
        self.tune_with("fails", 1, 4, self.alone())
        wider = self.write_config(self.tiny(dstune={"ranks_per_experiment": 1},
                                            zero_optimization={"stage": [0, 1, 2, 3]}))

        finished = self.tune_with("fails", 1, 4, wider, "--resume")

        self.expect_all_measured(finished.stderr)
        self.assertEqual(len(self.started_on(1)), 1, finished.stderr)
        self.assertRegex(finished.stderr, r"rank 1 on \S+ gets no work")

    def test_one_that_lost_its_device_is_retired_by_name(self):
        finished = self.tune_with("loses", 1, 4, self.alone())

        self.expect_all_measured(finished.stderr)
        self.assertEqual(len(self.started_on(1)), 1, finished.stderr)
        self.assertRegex(finished.stderr, r"warning: rank 1 on \S+: an illegal memory access; .*no more work")
        self.assertRegex((self.results / "summary.txt").read_text(),
                         r"lost its device and got no more work: rank 1 on")

    def test_too_few_with_a_device_end_the_run_as_lost_workers_do(self):
        config = self.write_config(self.tiny(train_micro_batch_size_per_gpu=[1]))

        finished = self.tune_with("loses", 2, 3, config)

        status = read_json(self.results / "status.json")
        self.assertEqual(status["exit_code"], 4, finished.stderr)
        self.assertEqual(status["restart"], "worker_lost")

    def test_wrong_sums_end_the_run_with_the_ranks_named(self):
        config = self.write_config(self.tiny(train_micro_batch_size_per_gpu=[1]))

        finished = self.tune_with("miscounts", 2, 3, config)

        status = read_json(self.results / "status.json")
        self.assertEqual(status["exit_code"], 1, finished.stderr)
        self.assertRegex(status["message"], r"rank 2 on \S+: the sum of 1 and 2 is 4 "
                                            r"\(group of rank 1 on \S+, rank 2 on")
        self.assertEqual(list(outcomes(self.results).values())[-1]["kind"], "wrong_sums")

    def test_one_that_hangs_gets_one_experiment(self):
        finished = self.tune_with("hangs", 2, 4, self.alone())

        self.expect_all_measured(finished.stderr)
        self.assertEqual(len(self.started_on(2)), 1, finished.stderr)

    def test_one_that_is_slow_is_named(self):
        config = self.write_config(self.tiny(train_micro_batch_size_per_gpu=[1],
                                             zero_optimization={"stage": [0, 1, 2, 3]}))

        finished = self.tune_with("slow", 2, 3, config)

        self.assertEqual(len(outcomes(self.results)), 4, finished.stderr)
        self.assertEqual(len([line for line in finished.stderr.splitlines()
                              if "rank 2 on" in line and "times as long" in line]), 1,
                         finished.stderr)
        self.assertNotRegex(finished.stderr, r"rank 1 on \S+ computes")

    def test_one_that_is_slow_in_a_group_of_its_own_is_named_and_its_work_done_elsewhere(self):
        config = self.write_config(self.tiny(dstune={"ranks_per_experiment": 1, "measure_steps": 1},
                                             zero_optimization={"stage": [0, 1]},
                                             train_micro_batch_size_per_gpu=[2, 4]))

        finished = self.tune_with("slowest", 1, 4, config)

        self.assertEqual({outcome["status"] for outcome in outcomes(self.results).values()}, {"measured"})
        said = r"rank 1 on \S+ had \d+ % of a core where the others had \d+ %, and \S+ took [\d.]+ times as long"
        self.assertRegex(finished.stderr, f"warning: {said}")
        self.assertRegex((self.results / "summary.txt").read_text(), f"Note: a slow rank: {said}")
        self.assertRegex("\n".join(read_json(self.results / "status.json")["slow_workers"]), said)
        records = events(self.results, "finished")
        self.assertEqual([line["ranks"] for line in records if 1 in line["ranks"]], [], finished.stderr)
        tries = [tried for line in records for tried in line.get("failed_tries", [])]
        self.assertEqual([tried["ranks"] for tried in tries], [[1]])

    def test_what_failed_is_measured_again_if_asked(self):
        config = self.write_config(self.tiny(zero_optimization={"stage": [0]}))
        sick = self.tune_with("fails", 2, 3, config)
        failed = names(events(self.results, "finished"))

        kept = self.tune(3, config, "--resume")
        again = self.tune_well(3, config, "--resume", "--retry-failed")

        self.assertIn("failed twice on rank 2", sick.stderr)
        self.assertEqual(len(failed), 3, sick.stderr)
        self.assertEqual(kept.returncode, 1, kept.stderr)
        self.assertEqual({outcome["status"] for outcome in outcomes(self.results).values()},
                         {"measured"}, again.stderr)
        self.assertEqual(list(self.results.glob("*/stderr.log")), [])


if __name__ == "__main__":
    unittest.main()
