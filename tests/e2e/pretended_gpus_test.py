"""A tuning from its configuration to its optimum on GPUs of CUDA on the host, whose ranks are processes
that talk through its NCCL."""

import json
import os
import re
import sys
import unittest

from support import MPIEXEC, PROGRAM, SOURCE, ProgramTest, events, outcomes, read_json

SHAPE = {"model_type": "gpt2", "vocab_size": 512, "n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 2}
EXPERIMENTS = {f"z{stage}_gas{2 // size}_tmbspg{size}" for stage in range(4) for size in (1, 2)}
FILES = {"journal.jsonl", "results.csv", "status.json", "summary.txt", "ds_config_optimal.json"}


class TuningOnGpus(ProgramTest):
    def setUp(self):
        super().setUp()
        for name in ("PRETENDED_GPUS", "PRETENDED_GPU_MIB", "PRETENDED_GPU_NAME", "PRETENDED_GPU_CAPABILITY",
                     "PRETENDED_DRIVER", "CUDA_ON_HOST_NCCL", "OMPI_MCA_rmaps_base_oversubscribe"):
            self.addCleanup(os.environ.pop, name, None)
        os.environ["CUDA_ON_HOST_NCCL"] = str(self.directory / "nccl")

    # One measured step has no noise that more of them could lower: every run has equally many.
    def config(self, name="config.json", **zero):
        return self.write_config({
            "train_micro_batch_size_per_gpu": [1, 2],
            "zero_optimization": {"stage": "all", "reduce_bucket_size": 10000,
                                  "stage3_prefetch_bucket_size": 10000,
                                  "stage3_param_persistence_threshold": 100, **zero},
            "autotuning": {"enabled": True},
            "dstune": {"tuner": "fast", "model": SHAPE, "sequence_length": 16, "memory_limit": "256MiB",
                       "backend": "cuda", "host_overhead": "none", "warmup_steps": 1, "measure_steps": 1,
                       "warmup_seconds": 0, "measure_seconds": 0}}, name)

    def tune_on(self, gpus, ranks, *arguments):
        os.environ["PRETENDED_GPUS"] = str(gpus)
        return self.tune(ranks, *arguments)

    def tuned(self, gpus, ranks, *arguments):
        finished = self.tune_on(gpus, ranks, *arguments)
        self.assertEqual(finished.returncode, 0, finished.stderr)
        results = outcomes(self.results)
        self.assertEqual({outcome["status"] for outcome in results.values()}, {"measured"}, finished.stderr)
        return finished, results

    def losses(self, results):
        return {name: (outcome["first_loss"], outcome["last_loss"]) for name, outcome in results.items()}

    def assert_close(self, losses, expected):
        self.assertEqual(set(losses), set(expected))
        for name, pair in losses.items():
            for loss, other in zip(pair, expected[name]):
                self.assertAlmostEqual(loss, other, delta=1e-4 * other, msg=name)

    def test_two_workers_measure_every_stage_and_write_the_best(self):
        finished, results = self.tuned(2, 3, self.config())

        self.assertEqual(set(results), EXPERIMENTS)
        self.assertIn("2 per experiment, cuda, ", finished.stderr)
        self.assertEqual(len(re.findall("communicator of 2 ranks: ", finished.stderr)), 1, finished.stderr)
        run = events(self.results, "run")[0]["identity"]
        self.assertEqual((run["backend"], run["machine"]), ("cuda", "CUDA on host"))
        listed = self.run_command([PROGRAM, "--list-backends"]).stdout.splitlines()
        self.assertIn("NCCL: ", "\n".join(run["libraries_found"]))
        self.assertEqual(set(run["libraries_found"]) - set(listed), set())
        self.assertEqual(FILES - {path.name for path in self.results.iterdir()}, set())
        self.assertEqual(read_json(self.results / "status.json")["exit_code"], 0)
        self.assert_optimum(results)

    def assert_optimum(self, results):
        """What is not faster beyond noise, of which 5 % count at most, does not replace a micro-batch of its stage,
        nor its best that of a stage before."""
        chosen = read_json(self.results / "status.json")["best"]
        speeds = {name: outcome["samples_per_s"] for name, outcome in results.items()}
        self.assertGreaterEqual(speeds[chosen] * 1.05 ** 2, max(speeds.values()), speeds)
        optimum = read_json(self.results / "ds_config_optimal.json")
        self.assertEqual(chosen, f"z{optimum['zero_optimization']['stage']}_"
                                 f"gas{optimum['gradient_accumulation_steps']}_"
                                 f"tmbspg{optimum['train_micro_batch_size_per_gpu']}")

    def test_it_trains_as_the_cpu_does(self):
        _, on_gpus = self.tuned(2, 3, self.config())

        _, on_cpus = self.tuned(0, 3, "--backend", "cpu", "--overwrite", self.config())

        self.assert_close(self.losses(on_gpus), self.losses(on_cpus))

    def test_parts_of_a_group_train_as_the_whole(self):
        _, whole = self.tuned(4, 5, self.config(stage=3))

        _, parts = self.tuned(4, 5, "--overwrite", self.config(stage=3, zero_hpz_partition_size=2))

        self.assert_close(self.losses(parts), self.losses(whole))

    def test_two_workers_share_a_gpu_only_where_it_is_allowed(self):
        refused = self.tune_on(1, 3, self.config())
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertFalse(self.results.exists())

        finished, results = self.tuned(1, 3, "--share-gpu", self.config())

        self.assertEqual(set(results), EXPERIMENTS)
        self.assertIn("communicator of 2 ranks: ", finished.stderr)

    def listed(self, **pretended):
        """Lines of --list-backends by what they are of."""
        os.environ.update(pretended)
        listed = self.run_command([PROGRAM, "--list-backends"])
        self.assertEqual(listed.returncode, 0, listed.stderr)
        return dict(line.split(": ", 1) for line in listed.stdout.splitlines()[1:])

    def test_a_gpu_without_code_is_refused_before_the_first_experiment(self):
        listed = self.listed(PRETENDED_GPU_NAME="Tesla V100-SXM2-32GB", PRETENDED_GPU_CAPABILITY="70")
        refused = self.tune_on(2, 3, "--backend", "cuda", self.config())

        reason = ("this program has no code for Tesla V100-SXM2-32GB, compute capability 7.0: CUDA 13.0 compiled it "
                  "for 7.5, 8.0, 9.0+PTX; CUDA 13 has dropped all before 7.5: build with a CUDA 12 toolkit (12.2 or "
                  "newer) and CUDAARCHS=70 (scripts/build.sh)")
        self.assertEqual(listed["cuda"], f"unavailable: {reason}")
        self.assertEqual(listed["CUDA run time"], "13.0 (linked), needs driver 580 or newer")
        self.assertEqual(listed["CUDA code"], "for compute capability 7.5, 8.0, 9.0+PTX")
        self.assertRegex(listed["GPU 0"], r"^Tesla V100-SXM2-32GB, 4\.00 GiB, compute capability 7\.0 \(GPU-")
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertRegex(refused.stderr, r"is cuda, which rank 1 on \S+ cannot use: " + re.escape(reason))
        self.assertFalse(self.results.exists())

        config = read_json(self.config())
        del config["dstune"]["backend"]
        by_default = self.tune_on(2, 3, self.write_config(config))
        self.assertEqual(by_default.returncode, 0, by_default.stderr)
        self.assertRegex(by_default.stderr,
                         r"backend auto chooses cpu, since the GPU of rank 1 on \S+ cannot be used: "
                         + re.escape(reason))

    def test_a_driver_that_is_too_old_is_told_from_none(self):
        listed = self.listed(PRETENDED_DRIVER="12040")

        self.assertEqual(listed["CUDA driver"], "for CUDA 12.4")
        self.assertEqual(listed["cuda"], "unavailable: the NVIDIA driver is for CUDA 12.4; this program was built "
                         "with CUDA 13.0, which needs driver 580 or newer")

    def test_mig_instances_of_one_gpu_are_told_apart_and_nccl_is_warned_of(self):
        name = "NVIDIA A100-SXM4-40GB MIG 3g.20gb"
        listed = self.listed(PRETENDED_GPUS="2", PRETENDED_GPU_NAME=name, PRETENDED_GPU_CAPABILITY="80")

        finished, _ = self.tuned(2, 3, "--ranks-per-experiment", "1", self.config(stage=1))

        for index, first in enumerate(("01", "02")):
            self.assertEqual(listed[f"GPU {index}"], f"{name}, 4.00 GiB, compute capability 8.0, MIG instance "
                                                     f"(MIG-{first}000000-0000-0000-0000-000000000000)")
        self.assertNotIn("MIG instances, which NCCL does not connect", finished.stderr)
        self.assertEqual(events(self.results, "run")[0]["identity"]["machine"], name)

        together = self.tune_on(2, 3, "--overwrite", self.config(stage=1))
        self.assertNotEqual(together.returncode, 0, together.stderr)
        self.assertIn("MIG instances, which NCCL does not connect", together.stderr)

    def small_gpu_config(self):
        """Without micro-batches and a limit, on a GPU with 69 MiB for buffers, 65 of which torch gives to cuBLAS."""
        os.environ["PRETENDED_GPU_MIB"] = "743"
        config = read_json(self.config())
        del config["train_micro_batch_size_per_gpu"], config["dstune"]["memory_limit"]
        return self.write_config(config)

    def test_a_plan_takes_the_memory_of_the_gpu_here_as_a_run_does(self):
        path = self.small_gpu_config()
        limit = r"69\.00 MiB per rank: 743\.00 MiB free on CUDA on host of {}, less 130\.00 MiB operations' scratch"

        planned = self.run_command([PROGRAM, "--plan", "--world-size", "1", path])
        checked = self.run_command([PROGRAM, "--check", "--world-size", "1", path])
        alone = self.tune_on(1, 2, path)
        together = self.run_command([PROGRAM, "--plan", "--world-size", "2", path])

        self.assertEqual(planned.returncode, 0, planned.stderr)
        self.assertRegex(planned.stdout, "memory limit  " + limit.format("this machine"))
        self.assertRegex(planned.stdout, r"\|     3 \|.*\| no       \|               - \|")
        self.assertIn("stage 3 needs 70.00 MiB per rank for one sample, more than the 69.00 MiB that it could have",
                      checked.stderr)
        self.assertIn("; here a rank could have 69.00 MiB: 743.00 MiB free on CUDA on host of this machine",
                      checked.stdout)
        self.assertRegex(alone.stderr, "memory limit " + limit.format("rank 1 on \\S+"))
        self.assertIn("memory limit  not known", together.stdout)
        self.assertIn("nothing is left of 743.00 MiB free", together.stderr)
        self.assertIn("2.00 GiB NCCL's buffers (estimated)", together.stderr)

    def test_what_is_planned_for_the_gpu_here_runs_and_one_sequence_more_does_not(self):
        os.environ["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
        found = self.run_command([sys.executable, "-B", SOURCE / "scripts" / "gpu_check" / "predicted_batches.py",
                                  self.directory / "predicted", "cuda", MPIEXEC, PROGRAM, self.small_gpu_config()])

        self.assertEqual(found.returncode, 0, found.stderr)
        stages = [json.loads(line) for line in found.stdout.splitlines() if line.startswith('{"stage"')]
        self.assertEqual([each["stage"] for each in stages], [0, 1, 2], "no sample fits in stage 3")
        for each in stages:
            self.assertGreater(each["predicted"], 1)
            self.assertEqual((each["of_predicted"], each["of_one_more"]), ("measured", "out_of_memory"), each)


if __name__ == "__main__":
    unittest.main()
