"""Wrong input: exit code 2, one message that names the fault, nothing written, nobody hanging."""

import os
import pathlib
import shutil
import subprocess
import unittest

from support import DEADLOCK, ProgramTest, PROGRAM, example, mpi_command, read_json


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

    def test_an_mpirun_of_another_mpi(self):
        launcher = shutil.which("mpiexec.mpich")
        if launcher is None:
            self.skipTest("no MPICH here")
        finished = self.run_command([launcher, "-n", "3", PROGRAM, example("tiny")])

        self.assert_refused(finished, "-n 3", "another MPI", "Open MPI v")

    def test_another_number_of_gpus_than_workers(self):
        self.assert_refused(self.tune(3, "--gpus", 3, example("tiny")), "--gpus", "mpirun has started 2 workers",
                            "mpirun -n 4")

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
                ("tensor_parallel", {"autotp_size": "two"}, "/tensor_parallel/autotp_size"),
                ("torch_autocast", {"enabled": 5}, "/torch_autocast/enabled"),
                ("timers", {"throughput": {"enabled": 5}}, "/timers/throughput/enabled")):
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
        self.assertIn("another --results-dir", finished.stderr)
        self.assertIn("summary.txt", finished.stderr)
        self.assertEqual(self.listing(), ["autotuning_results/summary.txt"])
        self.assertEqual(kept.read_text(encoding="utf-8"), "mine")

    def test_nothing_that_is_modelled(self):
        config = self.tiny(zero_optimization={"stage": 2, "zenflow": {"topk_ratio": 0.1}})

        self.assert_refused(self.tune(3, self.write_config(config)),
                            "/zero_optimization/zenflow", "--without")

    def test_overwrite_keeps_results_until_the_plan_is_known(self):
        self.results.mkdir()
        for name in ("journal.jsonl", "summary.txt"):
            (self.results / name).write_text("mine", encoding="utf-8")
        config = self.tiny(zero_optimization={"stage": 2, "zenflow": {"topk_ratio": 0.1}})

        finished = self.tune(3, "--overwrite", self.write_config(config))

        self.assertEqual(finished.returncode, 2, finished.stderr)
        self.assertEqual((self.results / "journal.jsonl").read_text(encoding="utf-8"), "mine")
        self.assertTrue((self.results / "summary.txt").exists())

    def test_results_folder_that_cannot_be_made(self):
        (self.directory / "file").write_text("", encoding="utf-8")
        for folder, reason in (("file/results", "Not a directory"),
                               ("/proc/dstune", "No such file or directory")):
            finished = self.tune(3, "--results-dir", folder, example("tiny"))

            self.assert_refused(finished, folder, reason)

    def test_option_of_mpirun(self):
        finished = self.run_command([PROGRAM, "-n", "4", "x.json"])

        self.assert_refused(finished, "belongs before the program: mpirun -n 4 dstune-mpi x.json")

    def test_unreadable_texts(self):
        for text, words in (('{"a":1 "b":2}'.encode(), 'a comma is missing before "b"'),
                            (b'{"train_batch_size": GBSIZE}', "placeholder of a template"),
                            ("{}".encode("utf-16"), "is UTF-16; save it as UTF-8"),
                            (b" " * (1 << 20) + b"{}", "is longer than 1.00 MiB")):
            path = self.directory / "config.json"
            path.write_bytes(text)

            self.assert_refused(self.run_command([PROGRAM, "--check", str(path)]), words)

    def test_standard_input_goes_to_rank_0(self):
        finished = self.run_command(mpi_command(3, "-"), stdin='{"a": 1 "b": 2}')

        self.assert_refused(finished, "-: 1 problem", 'a comma is missing before "b"')

    def test_pipe_without_a_writer(self):
        path = self.directory / "pipe"
        os.mkfifo(path)

        self.assert_refused(self.run_command([PROGRAM, "--check", str(path)]),
                            "nothing was written to")

    def test_names_cannot_write_to_the_terminal(self):
        name = os.fsencode(self.directory) + b"/a\x1b[2J\n\xff.json"

        finished = self.run_command([PROGRAM.encode(), b"--check", name])

        self.assert_refused(finished, "a\\x1B[2J\\x0A\\xFF.json")

    def test_model_without_a_family(self):
        config = self.tiny()
        del config["dstune"]["model"]["model_type"]

        finished = self.run_command([PROGRAM, "--check", str(self.write_config(config))])

        self.assert_refused(finished, "/dstune/model/model_type", "gpt2")

    def test_check_names_the_stages_that_cannot_run(self):
        config = self.tiny(zero_optimization={"stage": [2, 3], "enable_sanity_checks": True,
                                              "offload_param": {"device": "cpu"}})

        finished = self.run_command([PROGRAM, "--check", str(self.write_config(config))])

        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertIn("stages 2,", finished.stdout)
        self.assertIn("offload_param has no effect below stage 3", finished.stderr)
        self.assertIn("stage 3 cannot run: not modelled: zero_optimization.enable_sanity_checks",
                      finished.stderr)

    def test_check_holds_earlier_results_against_nobody(self):
        config = str(self.write_config(self.tiny()))
        self.results.mkdir()
        (self.results / "journal.jsonl").write_text('{"schema":3,"type":"run"', encoding="utf-8")

        finished = self.run_command([PROGRAM, "--check", "--results-dir", "autotuning_results", config])

        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertIn("would run: ", finished.stdout)
        self.assertIn("has the results of an earlier run: --resume continues it",
                      finished.stderr)

    def test_check_tells_what_a_run_would(self):
        good = self.run_command([PROGRAM, "--check", str(example("tiny"))])
        small = self.run_command([PROGRAM, "--check", "--memory-limit", "1MiB",
                                  str(example("tiny"))])
        self.assertEqual(self.listing(), [])
        self.results.mkdir()
        (self.results / "mine").write_text("", encoding="utf-8")
        config = self.tiny(zero_optimization={"stage": 3, "enable_sanity_checks": True})
        bad = self.run_command([PROGRAM, "--check", "--results-dir", "autotuning_results",
                                str(self.write_config(config))])

        self.assertEqual(good.returncode, 0, good.stderr)
        self.assertIn("would run: ", good.stdout)
        self.assertEqual((small.returncode, small.stdout), (3, ""), small.stderr)
        self.assertEqual((bad.returncode, bad.stdout), (2, ""), bad.stderr)
        self.assertEqual(bad.stderr.count("error:"), 1, bad.stderr)
        self.assertIn("/zero_optimization/enable_sanity_checks", bad.stderr)
        self.assertIn("autotuning_results  holds mine and no results", bad.stderr)

    def test_output_that_cannot_be_written(self):
        plan = ["--plan", "--world-size", "2", str(example("tiny"))]
        results = self.directory / "ended"
        results.mkdir()
        (results / "status.json").write_text(
            '{"schema": 2, "status": "found", "exit_code": 0, "best": "z0", "provisional": false,'
            ' "message": "", "experiments": 1, "elapsed_s": 1}', encoding="utf-8")
        for arguments in (["--help"], ["--version"], ["--check", str(example("tiny"))], plan,
                          ["--status", str(results)], ["--status", str(results), "--format", "json"],
                          ["--explain", "z0_gas1_tmbspg4", *plan]):
            with open("/dev/full", "wb") as full:
                finished = subprocess.run([PROGRAM, *arguments], stdout=full,
                                          stderr=subprocess.PIPE, text=True, timeout=DEADLOCK,
                                          cwd=self.directory, check=False)

            self.assertEqual(finished.returncode, 1, arguments)
            self.assertIn("cannot write standard output: No space left", finished.stderr)
            self.assertEqual(finished.stderr.count("error:"), 1, finished.stderr)

    def test_result_that_cannot_be_printed_is_kept_with_its_notes(self):
        config = self.tiny(zero_optimization={"stage": [1, 2],
                                              "offload_optimizer": {"device": "cpu"}})
        options = ["--backend", "sim", "--results-dir", self.results, "--without", "offload_optimizer",
                   self.write_config(config)]
        *mpi, program = mpi_command(3)
        script = 'exec "$0" "$@" >/dev/full'

        finished = self.run_command([*mpi, "sh", "-c", script, program, *map(str, options)])

        self.assertEqual(finished.returncode, 1, finished.stderr)
        self.assertIn("cannot write standard output: No space left", finished.stderr)
        self.assertIn("tuned without /zero_optimization/offload_optimizer", finished.stderr)
        status = read_json(self.results / "status.json")
        self.assertEqual((status["status"], status["exit_code"]), ("found", 1))
        self.assertNotIn("offload_optimizer",
                         read_json(self.results / "ds_config_optimal.json")["zero_optimization"])
        self.assertIn("Note: tuned without /zero_optimization/offload_optimizer",
                      (self.results / "summary.txt").read_text(encoding="utf-8"))

    def test_reader_that_has_gone(self):
        read_end, write_end = os.pipe()
        os.close(read_end)
        try:
            finished = subprocess.run([PROGRAM, "--help"], stdout=write_end,
                                      stderr=subprocess.PIPE, text=True, timeout=DEADLOCK,
                                      check=False)
        finally:
            os.close(write_end)

        self.assertEqual(finished.returncode, 1, finished.stderr)
        self.assertIn("Broken pipe", finished.stderr)

    def test_help_and_version_need_no_mpirun(self):
        help_text = self.run_command([PROGRAM, "--help"])
        version = self.run_command([PROGRAM, "--version"])

        self.assertEqual((help_text.returncode, version.returncode), (0, 0))
        self.assertIn("Usage:", help_text.stdout)
        self.assertIn("dstune-mpi", version.stdout)


if __name__ == "__main__":
    unittest.main()
