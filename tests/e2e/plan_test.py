"""--plan: no mpirun, nothing written."""

import json
import pathlib
import unittest

from support import ProgramTest, PROGRAM, SOURCE, example

SHORT_GPT2 = {"model": "gpt2", "sequence_length": 16}


class PlanOfAModel(ProgramTest):
    """A model by its name on the hub, with what is usual as options."""

    def plan(self, *arguments, **variables):
        command = ["env", *(f"{name}={value}" for name, value in variables.items()), PROGRAM, "--plan",
                   "--memory-limit", "80GiB", "--backend", "sim", *map(str, arguments)]
        return self.run_command(command)

    def test_a_plain_deepspeed_file_is_enough(self):
        (self.directory / "ds_config.json").write_text(
            '{"bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}}}')
        finished = self.plan("--world-size", 8, "--model", "Qwen/Qwen2.5-0.5B-Instruct", "--sequence-length", 256,
                             "--checkpointing", "true", "--lora-r", 8, "--format", "json", "ds_config.json",
                             HF_HUB_CACHE=self.directory)

        self.assertEqual(finished.returncode, 0, finished.stderr)
        plan = json.loads(finished.stdout)
        self.assertEqual(plan["num_params"] - plan["trainable_num_params"], 494032768)

    def test_a_model_is_enough(self):
        finished = self.plan("--gpus", 2, "--model", "eleutherai/PYTHIA-70m", HF_HUB_CACHE=self.directory)

        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertIn("model         EleutherAI/pythia-70m (preset pythia-70m), 70.4 M parameters", finished.stdout)

    def test_the_cache_of_the_hub_is_read(self):
        folder = self.directory / "hub" / "models--me--mine"
        (folder / "refs").mkdir(parents=True)
        (folder / "refs" / "main").write_text("c0ffee")
        (folder / "snapshots" / "c0ffee").mkdir(parents=True)
        (folder / "snapshots" / "c0ffee" / "config.json").write_text(
            '{"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "vocab_size": 512}')
        finished = self.plan("--gpus", 2, "--model", "Me/Mine", HF_HOME=self.directory)

        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertIn("model         me/mine (", finished.stdout)
        self.assertIn("snapshots/c0ffee/config.json), ", finished.stdout)

    def test_an_unknown_model_is_told_how_it_is_brought(self):
        finished = self.plan("--gpus", 2, "--model", "Qwen/Qwen9-7B", HF_HUB_CACHE="/nowhere")

        self.assertEqual(finished.returncode, 2)
        self.assertIn("the cache of Hugging Face's hub (/nowhere) has no config.json for it", finished.stderr)
        self.assertIn("`hf download Qwen/Qwen9-7B config.json`", finished.stderr)

    def test_models_are_listed(self):
        finished = self.run_command([PROGRAM, "--list-models", "--format", "json"])

        self.assertEqual(finished.returncode, 0, finished.stderr)
        names = {row["name"]: row for row in json.loads(finished.stdout)}
        self.assertEqual(names["qwen2.5-7b"]["num_params"], 7615616512)
        self.assertIn("Qwen/Qwen2.5-7B-Instruct", names["qwen2.5-7b"]["hub_names"])


class Plan(ProgramTest):
    def plan(self, *arguments):
        return self.run_command([PROGRAM, "--plan", *map(str, arguments)])

    def test_json_has_the_model_the_stages_and_the_experiments(self):
        finished = self.plan("--world-size", 2, "--format", "json", example("gpt2"))

        self.assertEqual(finished.returncode, 0, finished.stderr)
        plan = json.loads(finished.stdout)
        self.assertEqual(plan["num_params"], 124439808)
        self.assertEqual(plan["trainable_num_params"], 124439808)
        self.assertEqual(plan["world_size"], 2)
        self.assertEqual([stage["stage"] for stage in plan["stages"]], [0, 1, 2, 3])
        for stage in plan["stages"]:
            self.assertGreater(stage["memory_bytes_per_rank"], 0)
            self.assertGreater(stage["activation_bytes_per_micro_batch"], 0)
            self.assertIs(stage["feasible"], True)
        self.assertGreaterEqual(len(plan["experiments"]), 10)
        for experiment in plan["experiments"]:
            config = experiment["ds_config"]
            self.assertEqual(config["train_batch_size"],
                             2 * config["train_micro_batch_size_per_gpu"]
                             * config["gradient_accumulation_steps"])
        self.assertEqual(self.listing(), [])

    def test_the_spaces_of_verification_have_a_fixed_batch_and_enough_to_rank(self):
        for path in sorted((SOURCE / "bench" / "verify").glob("*.json")):
            finished = self.plan("--world-size", 2, "--format", "json", path)

            self.assertEqual(finished.returncode, 0, finished.stderr)
            configs = [each["ds_config"] for each in json.loads(finished.stdout)["experiments"]]
            is_small = path.stem in ("deep_gpt2", "narrow_llama", "shallow_bert")  # of micro-batches, in one type
            self.assertGreaterEqual(len(configs), 20 if is_small else 30, path)
            self.assertEqual(len({each["train_batch_size"] for each in configs}), 1, path)
            types = {False} if is_small else {True, False}
            self.assertEqual({each["bf16"]["enabled"] for each in configs}, types, path)

    def test_model_option_wins_and_a_small_limit_rules_stages_out(self):
        finished = self.plan("--world-size", 8, "--model", "gpt2-xl", "--memory-limit", "16GiB",
                             "--format", "json", example("gpt2"))

        plan = json.loads(finished.stdout)
        self.assertEqual(plan["num_params"], 1557611200)
        feasible = {stage["stage"]: stage["feasible"] for stage in plan["stages"]}
        self.assertFalse(feasible[0])
        self.assertTrue(feasible[3])

    def test_host_file_counts_the_workers(self):
        hosts = self.directory / "hosts"
        hosts.write_text("a slots=5\nb slots=4 # no rank 0 here\n", encoding="utf-8")

        finished = self.plan("--hostfile", hosts, "--format", "json", example("tiny"))

        self.assertEqual(json.loads(finished.stdout)["world_size"], 8)

    def test_every_example_has_something_to_try_on_two_workers(self):
        examples = sorted((SOURCE / "examples").glob("*.json"))
        self.assertTrue(examples)
        for path in examples:
            with self.subTest(path.name):
                finished = self.plan("--world-size", 2, "--format", "json", path)

                self.assertEqual(finished.returncode, 0, finished.stderr)
                self.assertRegex(finished.stderr, r"\Ahost overhead: preset [a-z-]+\n\Z")
                self.assertTrue(json.loads(finished.stdout)["experiments"])

    def spaces(self, **dstune):
        return self.write_config({"train_micro_batch_size_per_gpu": [1, 2, 4],
                                  "bf16": {"enabled": True}, "dstune": {"model": "gpt2", **dstune}})

    def test_funnel_of_deepspeeds_spaces(self):
        finished = self.plan("--world-size", 8, "--memory-limit", "16GiB", "--backend", "sim",
                             "--format", "json", self.spaces(space="deepspeed"))

        self.assertEqual(finished.returncode, 0, finished.stderr)
        plan = json.loads(finished.stdout)
        # 9, 72 and 144 points, and the file's own configuration, with three micro-batches each.
        self.assertEqual([stage["generated"] for stage in plan["funnel"]], [3, 30, 219, 435])
        for stage in plan["funnel"]:
            self.assertEqual(stage["invalid"], {})
            self.assertLess(stage["distinct"] * 3, stage["generated"] + 3 * 3)
        configurations = plan["configurations"]
        self.assertEqual(len(configurations), 687)
        tried = {one["name"] for one in configurations if one["fate"] == "to be tried"}
        self.assertEqual(len(tried), sum(stage["to_be_tried"] for stage in plan["funnel"]))
        for one in configurations:
            if one["fate"] == "same effect":
                self.assertIn(one["same_as"], tried)
        # Nothing reads what DeepSpeed calls allgather_bucket_size: one of three is enough.
        one_size = {name for name in tried if "_abs" in name}
        self.assertEqual({name for name in one_size if "_abs5.0e+07_" in name}, one_size)

    def test_funnel_says_which_rule_and_how_much_memory(self):
        finished = self.plan(
            "--world-size", 8, "--memory-limit", "4GiB", "--backend", "sim",
            self.spaces(space={"/prescale_gradients": [False, True],
                               "z2": {"/zero_optimization/reduce_bucket_size": [5e7, 5e9]}}))

        self.assertRegex(finished.stdout, r"\| +2 \| +12 \| +6 \| +6 \| +\d \|")
        self.assertIn("stage 2: 6 invalid: DeepSpeed refuses prescale_gradients in stages 2 and 3",
                      finished.stdout)

    def test_every_fault_of_a_space_in_one_message(self):
        finished = self.plan("--world-size", 8, self.spaces(
            space={"/zero_optimization/overlap_com": [True], "zero_optimization": [1]},
            precision=["int8"], variables={"A": [1]}))

        self.assertEqual(finished.returncode, 2)
        for pointer in ["/dstune/space/~1zero_optimization~1overlap_com",
                        "/dstune/space/zero_optimization", "/dstune/precision/0",
                        "/dstune/variables/A"]:
            self.assertIn(pointer, finished.stderr)

    def test_model_parallel_ranks_share_the_model_and_the_batch(self):
        config = self.tiny(autotuning={"mp_size": 2, "model_info": {"num_layers": 2}},
                           gradient_accumulation_steps=3)
        path = self.write_config(config)
        whole = json.loads(self.plan("--world-size", 4, "--format", "json", self.write_config(
            self.tiny(gradient_accumulation_steps=3), "whole.json")).stdout)

        finished = self.plan("--world-size", 8, "--format", "json", path)

        plan = json.loads(finished.stdout)
        self.assertEqual(plan["num_params"], whole["num_params"])
        for experiment in plan["experiments"]:
            ds_config = experiment["ds_config"]
            self.assertEqual(ds_config["train_batch_size"],
                             ds_config["train_micro_batch_size_per_gpu"]
                             * ds_config["gradient_accumulation_steps"] * 8 // 2)
        for part, full in zip(plan["stages"], whole["stages"]):
            self.assertLess(part["memory_bytes_per_rank"], full["memory_bytes_per_rank"])
        self.assertIn("mp_size 2: a rank holds ", finished.stderr)
        self.assertIn("are not modelled", finished.stderr)

    def test_table_names_every_stage(self):
        finished = self.plan("--world-size", 2, example("gpt2"))

        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertIn("124 M parameters", finished.stdout)
        for stage in range(4):
            self.assertRegex(finished.stdout, rf"\| +{stage} \| .*MiB")
        self.assertIn("z2_gas1_tmbspg", finished.stdout)

    def test_nothing_fits(self):
        finished = self.plan("--world-size", 2, "--memory-limit", "1MiB", example("tiny"))

        self.assertEqual(finished.returncode, 3, finished.stderr)
        self.assertIn("no experiment fits in memory", finished.stderr)
        self.assertRegex(finished.stdout, r"\| +0 \| .*MiB .*\| no ")

    def test_what_is_not_modelled_is_refused_with_the_way_out(self):
        config = self.tiny(zero_optimization={"stage": [1, 3],
                                              "zenflow": {"topk_ratio": 0.1}})
        path = self.write_config(config)

        finished = self.plan("--world-size", 2, path)
        without = self.plan("--world-size", 2, "--without", "zenflow", path)

        self.assertEqual((finished.returncode, finished.stdout), (2, ""), finished.stderr)
        self.assertIn("/zero_optimization/zenflow  is not modelled in stages 1, 3",
                      finished.stderr)
        self.assertIn("--without /zero_optimization/zenflow", finished.stderr)
        self.assertEqual(without.returncode, 0, without.stderr)
        self.assertIn("tuned without /zero_optimization/zenflow", without.stderr)

    def test_a_stage_that_is_not_modelled_has_no_numbers(self):
        config = self.tiny(zero_optimization={"stage": "all",
                                              "enable_sanity_checks": True})

        finished = self.plan("--world-size", 2, self.write_config(config))

        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertRegex(finished.stdout, r"\| +3 \|( +- \|){7} no +\| +- \|")

    def test_precision_settles_what_the_file_leaves_open(self):
        path = self.write_config(self.tiny(bf16={"enabled": "auto"}))

        def activations(*options):
            finished = self.plan("--world-size", 2, "--format", "json", *options, path)
            stage = json.loads(finished.stdout)["stages"][0]
            return stage["activation_bytes_per_micro_batch"], finished.stderr

        by_default, said = activations()
        self.assertIn("--precision fp16 or fp32 to change it", said)
        self.assertEqual(activations("--precision", "bf16")[0], by_default)
        self.assertGreater(activations("--precision", "fp32")[0], by_default)
        self.assertRegex(self.plan("--world-size", 2, path).stdout, r"^precision +bf16, assumed since no ")
        checked = self.run_command([PROGRAM, "--check", str(path)])
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertIn("a run on this machine would ask: the file leaves the precision to the Trainer", checked.stderr)

    def test_a_fixed_batch_is_that_of_every_planned_experiment(self):
        for tuner in ["fast", "guided"]:
            config = self.tiny(train_batch_size=24)
            config["dstune"]["tuner"] = tuner

            finished = self.plan("--world-size", 2, "--format", "json", self.write_config(config))

            self.assertEqual(finished.returncode, 0, finished.stderr)
            planned = [each["ds_config"] for each in json.loads(finished.stdout)["experiments"]]
            self.assertGreater(len({each["train_micro_batch_size_per_gpu"] for each in planned}), 1)
            for each in planned:
                self.assertEqual(each["train_batch_size"], 24)
                self.assertEqual(each["train_micro_batch_size_per_gpu"] * each["gradient_accumulation_steps"] * 2, 24)

    def test_a_batch_that_cannot_be_is_refused_with_the_nearest(self):
        path = self.write_config(self.tiny(train_batch_size=60))

        finished = self.plan("--world-size", 8, path)

        self.assertEqual(finished.returncode, 2)
        self.assertIn("not a multiple of 8 ranks; the nearest that work are 56 and 64", finished.stderr)

    def test_check_says_what_runs_of_a_list_of_micro_batches(self):
        left = "is 2048, above the 32 that autotuning's limits leave to each of the 2 ranks"
        for keys, code, said in (
                ({}, 0, "would run: "),
                ({"train_batch_size": 4096}, 0, "would run: "),
                ({"autotuning": {"max_train_batch_size": 64}}, 2, left),
                ({"autotuning": {"max_train_micro_batch_size_per_gpu": 1024}}, 2, "is 2048, outside the 1 to 1024")):
            path = self.write_config({"train_micro_batch_size_per_gpu": [2048], "dstune": SHORT_GPT2, **keys})

            finished = self.run_command([PROGRAM, "--check", "--gpus", "2", str(path)])

            self.assertEqual(finished.returncode, code, (keys, finished.stderr))
            self.assertIn(said, finished.stdout + finished.stderr)

    def test_products_of_sizes_beyond_64_bits_are_faults(self):
        path = self.write_config({"train_batch_size": 9, "gradient_accumulation_steps": 536870912,
                                  "autotuning": {"min_train_micro_batch_size_per_gpu": 536870912},
                                  "dstune": SHORT_GPT2})

        finished = self.run_command([PROGRAM, "--check", "--world-size", "64", str(path)])

        self.assertEqual(finished.returncode, 2, finished.stderr)
        self.assertIn("is 9, which is not a multiple of accumulation steps 536870912 x 64 ranks", finished.stderr)

    def test_standard_input(self):
        text = example("tiny").read_text(encoding="utf-8")

        finished = self.run_command([PROGRAM, "--plan", "--world-size", "2", "-"], stdin=text)

        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertIn("z0_gas1_tmbspg4", finished.stdout)

    def test_a_million_micro_steps_on_100000_ranks_cost_what_a_few_do(self):
        config = self.directory / "config.json"
        config.write_text('{"gradient_accumulation_steps": 1000000, "fp16": {"enabled": true}}', encoding="utf-8")

        finished = self.plan("--world-size", 100000, "--model", "gpt2", "--memory-limit", "16GiB", config)

        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertRegex(finished.stdout, r"\| +1000000 \| +\d+0{11} \|")

    def test_wrong_host_file_is_refused(self):
        hosts = self.directory / "hosts"
        hosts.write_text("a slots=none\n", encoding="utf-8")

        finished = self.plan("--hostfile", hosts, example("tiny"))

        self.assertEqual(finished.returncode, 2)
        self.assertIn("slots", finished.stderr)


if __name__ == "__main__":
    unittest.main()
