"""Wrong input: exit code 2, one message that names the fault, nothing written, nobody hanging."""

import pathlib
import unittest

from support import ProgramTest, PROGRAM, example


class WrongInput(ProgramTest):
    def assert_refused(self, finished, *words):
        self.assertEqual(finished.returncode, 2, finished.stderr)
        for word in words:
            self.assertIn(word, finished.stderr)
        self.assertEqual(finished.stderr.count("error:"), 1, finished.stderr)
        self.assertNotIn("MPI_ABORT", finished.stderr)
        self.assertEqual(finished.stdout, "")
        self.assertFalse(self.results.exists())
        self.assertFalse((self.directory / "autotuning_exps").exists())

    def test_no_worker(self):
        finished = self.tune(1, example("tiny"))

        self.assertEqual(finished.returncode, 2, finished.stderr)
        self.assertIn("mpirun -n", finished.stderr)
        self.assertEqual(self.listing(), [])

    def test_no_such_file(self):
        self.assert_refused(self.tune(3, "nowhere.json"), "nowhere.json")

    def test_no_argument(self):
        self.assert_refused(self.tune(3), "CONFIG.json")

    def test_directory(self):
        self.assert_refused(self.tune(3, self.directory), str(self.directory))

    def test_garbage(self):
        path = pathlib.Path(self.directory, "garbage.json")
        path.write_bytes(bytes(range(256)) * 4096)

        self.assert_refused(self.tune(3, path), "garbage.json")

    def test_deep_nesting(self):
        self.assert_refused(self.tune(3, self.write_config("[" * 100000)), "config.json")

    def test_duplicate_key(self):
        config = '{"optimizer": {"type": "Adam"}, "optimizer": {"type": "AdamW"}}'

        self.assert_refused(self.tune(3, self.write_config(config)), "optimizer")

    def test_not_a_number(self):
        self.assert_refused(self.tune(3, self.write_config('{"gradient_clipping": NaN}')), "config")

    def test_every_fault_is_named_in_one_message(self):
        config = self.tiny(zero_optimization={"stage": 7, "reduce_bucket_size": -5},
                           dstune={"sequence_lenght": 32})
        config["train_micro_batch_size_per_gpu"] = 0

        self.assert_refused(self.tune(3, self.write_config(config)),
                            "/zero_optimization/stage", "/zero_optimization/reduce_bucket_size",
                            "/train_micro_batch_size_per_gpu", "sequence_length")

    def test_what_only_the_step_reads(self):
        for section, value, name in (
                ("zero_optimization", {"stage": 3, "leaf_module": {"classes": [1]}}, "classes"),
                ("zero_optimization", {"stage": 3, "mics_shard_size": 4294967298},
                 "mics_shard_size"),
                ("fp16", {"enabled": True, "hysteresis": 3e9}, "hysteresis"),
                ("tensor_parallel", {"autotp_size": "2"}, "autotp_size"),
                ("torch_autocast", {"enabled": 1}, "enabled")):
            config = self.tiny(**{section: value})

            finished = self.run_command([PROGRAM, "--plan", "--world-size", "2",
                                         str(self.write_config(config))])
            self.assert_refused(finished, name)

    def test_unknown_option(self):
        self.assert_refused(self.tune(3, "--memory-limt", "1GiB", example("tiny")),
                            "--memory-limit")

    def test_more_ranks_per_experiment_than_workers(self):
        self.assert_refused(self.tune(3, example("tiny"), "--ranks-per-experiment", "5"),
                            "ranks")

    def test_existing_results_are_not_touched(self):
        self.results.mkdir()
        kept = self.results / "summary.txt"
        kept.write_text("mine", encoding="utf-8")

        finished = self.tune(3, example("tiny"))

        self.assertEqual(finished.returncode, 2, finished.stderr)
        self.assertIn("--resume", finished.stderr)
        self.assertIn("--overwrite", finished.stderr)
        self.assertEqual(self.listing(), ["autotuning_results/summary.txt"])
        self.assertEqual(kept.read_text(encoding="utf-8"), "mine")

    def test_help_and_version_need_no_mpirun(self):
        help_text = self.run_command([PROGRAM, "--help"])
        version = self.run_command([PROGRAM, "--version"])

        self.assertEqual((help_text.returncode, version.returncode), (0, 0))
        self.assertIn("Usage:", help_text.stdout)
        self.assertIn("dstune-mpi", version.stdout)


if __name__ == "__main__":
    unittest.main()
