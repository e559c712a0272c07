"""The check of the machine before a search, and the workers that are left out."""

import os
import unittest

from support import SURVIVE, ProgramTest, events, read_json

LIBRARY = os.environ["DSTUNE_SICK_RANK_LIBRARY"]


class Preflight(ProgramTest):
    def tune_with(self, ranks, *options, sickness="", **dstune):
        config = self.write_config(self.tiny(train_micro_batch_size_per_gpu=[1], zero_optimization={"stage": [0]},
                                             dstune=dstune))
        sick = ["-x", "DSTUNE_CPU_PRODUCTS=blas", "-x", f"LD_PRELOAD={LIBRARY}", "-x", "DSTUNE_SICK_RANK=2",
                "-x", f"DSTUNE_SICKNESS={sickness}", "-x", "ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0"]
        return self.tune(ranks, config, *options, mpi=(*SURVIVE, *sick) if sickness else ())

    def status(self):
        return read_json(self.results / "status.json")

    def test_is_a_table_where_nothing_else_is_wanted(self):
        finished = self.tune_with(3, preflight="only")

        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertRegex(finished.stdout, r"\| rank 1 on \S+ +\| +[\d.]+ \|")
        self.assertRegex(finished.stdout, r"\| ranks 1 and 2 \|")
        self.assertEqual([line["experiment"]["name"] for line in events(self.results, "finished")][:1], ["preflight"])
        self.assertIsNone(self.status()["best"])

    def test_names_the_slow_rank_and_then_tunes(self):
        finished = self.tune_with(3, sickness="slowest", preflight=True)

        self.assertEqual(finished.returncode, 0, finished.stderr)
        said = r"rank 2 on \S+ takes [\d.]+ times as long as the others for a matrix product .* in each of 3 checks"
        self.assertRegex(finished.stderr, f"warning: {said}")
        self.assertRegex("\n".join(self.status()["slow_workers"]), said)
        self.assertIsNotNone(self.status()["best"])

    def test_is_not_made_again_in_the_resumed_run(self):
        self.tune_with(3, preflight=True)
        before = len(events(self.results, "started"))

        self.tune_with(3, "--resume", preflight=True)

        self.assertEqual(len(events(self.results, "started")), before)

    def test_leaves_out_who_is_excluded(self):
        finished = self.tune_with(4, preflight=True, exclude=["rank 2"])

        self.assertEqual(finished.returncode, 0, finished.stderr)
        for line in events(self.results, "started"):
            self.assertEqual(line["ranks"], [1, 3])

    def test_does_not_begin_without_knowing_whom_to_leave_out(self):
        finished = self.tune_with(3, exclude=["rank 7"])

        self.assertEqual(finished.returncode, 2, finished.stderr)
        self.assertRegex(finished.stderr, r'/dstune/exclude  is "rank 7", which is not a worker of this run')
        self.assertFalse(self.results.exists())


if __name__ == "__main__":
    unittest.main()
