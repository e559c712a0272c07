"""The optimizer and the parameters in the host's memory: planned, limited, trained on CPU ranks, explained."""

import json
import unittest

from support import PROGRAM, ProgramTest, events, example, outcomes, read_json

OFFLOAD = {"device": "cpu", "pin_memory": False}


class Offload(ProgramTest):
    def offloaded(self, stages, **dstune):
        config = self.tiny(zero_optimization={"stage": stages, "offload_optimizer": OFFLOAD},
                           train_micro_batch_size_per_gpu=[4])
        config["dstune"].pop("memory_limit", None)
        config["dstune"].update(dstune)
        return self.write_config(config)

    def plan(self, *options):
        return self.run_command([PROGRAM, "--plan", "--world-size", "2", *map(str, options)])

    def planned(self, *options):
        finished = self.plan("--format", "json", *options)
        self.assertEqual(finished.returncode, 0, finished.stderr)
        return json.loads(finished.stdout)

    def test_a_plan_says_what_a_rank_needs_of_its_host_and_of_its_device(self):
        path = self.offloaded([1, 2, 3], host_memory_limit="1GiB")
        without = self.write_config(self.tiny(zero_optimization={"stage": [1, 2, 3]},
                                              train_micro_batch_size_per_gpu=[4]), "without.json")

        plan = self.planned("--memory-limit", "1GiB", path)
        beside = self.planned("--memory-limit", "1GiB", without)

        self.assertEqual(plan["host_memory_limit_bytes"], 1 << 29)
        for stage, other in zip(plan["stages"], beside["stages"]):
            self.assertTrue(stage["fits_on_host"])
            # fp32: 4 + 4 + 4 + 8 bytes of each of a rank's parameters, and more below stage 3
            self.assertGreaterEqual(stage["peak_host_memory_bytes"], 20 * plan["num_params"] // 2)
            self.assertLess(stage["memory_bytes_per_rank"], other["memory_bytes_per_rank"])
            self.assertNotIn("peak_host_memory_bytes", other)
        text = self.plan("--memory-limit", "1GiB", path).stdout
        self.assertIn("host memory   512.00 MiB per rank", text)
        self.assertRegex(text, r"\| +host \|")

    def test_a_byte_too_little_on_the_host_is_said_before_anything_runs(self):
        path = self.offloaded([2], host_memory_limit="1GiB")
        needed = self.planned("--memory-limit", "1GiB", path)["stages"][0]["peak_host_memory_bytes"]

        enough = self.plan("--memory-limit", "1GiB", self.offloaded([2], host_memory_limit=2 * needed))
        finished = self.plan("--memory-limit", "1GiB",
                             self.offloaded([2], host_memory_limit=2 * needed - 2))

        self.assertEqual(enough.returncode, 0, enough.stderr)
        self.assertEqual(finished.returncode, 3, finished.stderr)
        self.assertIn("stage 2 does not fit into the host's memory: a rank needs", finished.stdout)

    def test_what_only_the_rounding_of_pinned_memory_keeps_out_is_said(self):
        def plan(pins, limit):
            config = self.tiny(zero_optimization={
                "stage": [2], "offload_optimizer": {"device": "cpu", "pin_memory": pins}})
            config["dstune"]["host_memory_limit"] = limit
            return self.plan("--format", "json", self.write_config(config))

        exact, rounded = (json.loads(plan(pins, "1GiB").stdout)["stages"][0]["peak_host_memory_bytes"]
                          for pins in (False, True))
        self.assertGreater(rounded, exact)
        config = self.tiny(zero_optimization={"stage": [2], "offload_optimizer": {"device": "cpu"}})
        config["dstune"]["host_memory_limit"] = 2 * exact

        finished = self.plan(self.write_config(config))

        self.assertEqual(finished.returncode, 3, finished.stderr)
        self.assertRegex(finished.stdout, "with pin_memory false, which rounds nothing up, .* at most, which fits\n")

    def test_training_on_cpu_ranks_and_what_is_said_of_it(self):
        path = self.offloaded([1, 2, 3], host_memory_limit="1GiB")

        finished = self.tune_well(3, path, "--memory-limit", "256MiB")

        results = outcomes(self.results)
        self.assertEqual(len(results), 3)
        for outcome in results.values():
            self.assertEqual(outcome["status"], "measured")
            host = outcome["peak_host_memory_bytes"]
            self.assertEqual(host["pinned"], 0)
            self.assertEqual(host["held"], host["pageable"])
            passes = {line["pass"]: line for line in outcome["ledger"]["host_passes"]}
            self.assertLessEqual({"unscale", "update"}, set(passes))
            self.assertEqual(passes["update"]["read_bytes"] * 12, passes["update"]["written_bytes"] * 16)
            self.assertGreater(passes["update"]["time_s"], 0)
            self.assertEqual(outcome["peak_memory_bytes_by_category"]["optimizer"], 0)
            copied = {(line["purpose"], line["transfer"]): line
                      for line in outcome["ledger"]["transfers"]}
            self.assertIn(("gradient", "device_to_host"), copied)
            self.assertEqual(("gradient_shard", "device_to_host") in copied, outcome is results.get("z3_gas1_tmbspg4"))
            self.assertIn(("update", "host_to_device"), copied)
        optimum = read_json(self.results / "ds_config_optimal.json")
        self.assertEqual(optimum["zero_optimization"]["offload_optimizer"], OFFLOAD)
        self.assertRegex(finished.stdout, r"\| +host \|")
        explained = self.run_command([PROGRAM, "--explain", min(results),
                                      "--results-dir", str(self.results), str(path)])
        self.assertEqual(explained.returncode, 0, explained.stderr)
        self.assertIn("pass on the host", explained.stdout)
        self.assertIn("offload_overflow", explained.stdout)

    def measured_machine(self, device):
        """The log of a search with such values of "device", and what its machine was measured to do."""
        config = self.tiny(zero_optimization={"stage": [1], "offload_optimizer": {"device": device}},
                           train_micro_batch_size_per_gpu=[1, 2])
        config["dstune"].update(host_memory_limit="1GiB", tuner="guided")
        finished = self.tune_well(3, self.write_config(config))
        machines = [line["outcome"]["machine_rates"] for line in events(self.results, "finished")
                    if "machine_rates" in line["outcome"]]
        self.assertTrue(machines)
        return finished.stderr, machines

    def test_the_host_is_measured_once_where_a_candidate_offloads(self):
        log, machines = self.measured_machine(["none", "cpu"])

        (host,) = [machine["host"] for machine in machines]
        self.assertEqual(host["passes"][0]["threads"], 1)
        self.assertEqual(host["passes"][-1]["threads"], host["threads"])
        self.assertGreater(host["passes"][0]["bytes_per_s"], 0)
        for tier in ("pinned", "pageable"):
            for way in ("to_host", "to_device"):
                for company in ("alone", "together"):
                    self.assertGreater(host[f"{tier}_{way}"][company]["bytes_per_s"], 0)
        self.assertRegex(log, r"the host's side of offloading, measured: pinned .* GB/s with 1 thread")

    def test_the_host_is_not_measured_where_none_does(self):
        log, machines = self.measured_machine(["none"])

        self.assertFalse([machine for machine in machines if "host" in machine])
        self.assertNotIn("the host's side of offloading", log)

    def parameters(self, pins, **zero):
        config = self.tiny(zero_optimization={"stage": [3], "offload_param": {"device": "cpu", "pin_memory": pins},
                                              **zero},
                           train_micro_batch_size_per_gpu=[4])
        config["dstune"].update(host_memory_limit="1GiB")
        return self.write_config(config)

    def test_a_plan_says_how_much_of_which_tier_parameters_take(self):
        path = self.write_config(self.tiny(zero_optimization={
            "stage": [2, 3], "offload_param": {"device": "cpu", "pin_memory": False}}))

        plan = self.planned(path)

        stage_2, stage_3 = plan["stages"]
        self.assertNotIn("peak_host_memory_bytes", stage_2)
        of_rank = 4 * plan["num_params"] // 2
        host = stage_3["host_memory_at_peak_bytes"]
        self.assertLess(abs(host["pinned"] - of_rank), of_rank / 10)  # padding; the smaller group comes later
        self.assertGreater(host["pageable"], 0)
        self.assertGreaterEqual(stage_3["peak_host_memory_bytes"], host["pinned"] + host["pageable"])

    def test_no_way_out_is_named_where_parameters_are_pinned_in_any_case(self):
        config = self.tiny(zero_optimization={"stage": [3], "offload_param": {"device": "cpu"}})
        config["dstune"]["host_memory_limit"] = "1GiB"
        host = self.planned(self.write_config(config))["stages"][0]
        config["dstune"]["host_memory_limit"] = 2 * sum(host["host_memory_at_peak_bytes"].values())
        self.assertLess(config["dstune"]["host_memory_limit"], 2 * host["peak_host_memory_bytes"])

        finished = self.plan(self.write_config(config))

        self.assertEqual(finished.returncode, 3, finished.stderr)
        self.assertIn("stage 3 does not fit into the host's memory", finished.stdout)
        self.assertNotIn("with pin_memory false", finished.stdout)

    def test_training_with_parameters_on_the_host(self):
        path = self.parameters(True, stage3_max_live_parameters=20_000)

        self.tune_well(3, path, "--memory-limit", "256MiB")

        results = outcomes(self.results)
        (offloaded,) = results
        self.assertGreater(results[offloaded]["peak_host_memory_bytes"]["pinned"], 0)
        copied = {(line["purpose"], line["transfer"]): line
                  for line in results[offloaded]["ledger"]["transfers"]}
        self.assertTrue(copied["parameter", "host_to_device"]["blocking"])
        self.assertEqual(copied["parameter", "host_to_device"]["tier"], "pinned")
        self.assertIn(("update", "device_to_host"), copied)
        optimum = read_json(self.results / "ds_config_optimal.json")["zero_optimization"]
        self.assertEqual(optimum["offload_param"]["pin_memory"], True)
        explained = self.run_command([PROGRAM, "--explain", offloaded,
                                      "--results-dir", str(self.results), str(path)])
        self.assertEqual(explained.returncode, 0, explained.stderr)
        self.assertRegex(explained.stdout, r"host_to_device +\| +parameter +\| +pinned, the host waits")

    def test_the_example_fits_with_offload_alone(self):
        configurations = self.planned(example("offload"))["configurations"]

        self.assertEqual({(fate["fate"], "oo_dcpu" in fate["name"]) for fate in configurations},
                         {("does not fit", False), ("to be tried", True)})

    def test_without_limits_device_and_host_are_one_memory(self):
        self.tune_well(3, self.offloaded([2]))

        (outcome,) = outcomes(self.results).values()
        self.assertGreater(outcome["peak_memory_bytes"], outcome["peak_host_memory_bytes"]["held"])
        self.assertGreater(outcome["peak_memory_bytes_by_category"]["optimizer"], 0)

    def small_devices(self, **dstune):
        """Virtual devices of 70 MiB, on which no stage fits unless it offloads."""
        model = {"model_type": "gpt2", "vocab_size": 8192, "n_positions": 128, "n_embd": 256,
                 "n_layer": 6, "n_head": 4}
        return self.write_config({
            "train_micro_batch_size_per_gpu": [1, 2, 4],
            "gradient_accumulation_steps": 1,
            "bf16": {"enabled": True},
            "optimizer": {"type": "AdamW"},
            "zero_optimization": {"stage": [0, 1, 2], "reduce_bucket_size": 1000000},
            "autotuning": {"enabled": True},
            "dstune": {"model": model, "sequence_length": 64, "memory_limit": "70MiB",
                       "host_memory_limit": "1GiB", "backend": "sim", **dstune}})

    def test_what_fits_nowhere_is_offloaded_without_being_asked_for(self):
        finished = self.tune_well(3, self.small_devices())

        self.assertIn("nothing of stages 1, 2 fits on the device alone, so the optimizer goes to the host's memory "
                      "there",
                      finished.stderr)
        self.assertEqual(read_json(self.results / "ds_config_optimal.json")["zero_optimization"]
                         ["offload_optimizer"], {"device": "cpu", "pin_memory": True})

    def test_never_means_that_nothing_fits_and_the_plan_says_what_would(self):
        path = self.small_devices(offload="never")

        finished = self.tune(3, path)
        plan = self.plan(path)

        self.assertEqual(finished.returncode, 3, finished.stderr)
        self.assertEqual(plan.returncode, 3, plan.stderr)
        for stage in (1, 2):
            self.assertRegex(plan.stdout, rf"stage {stage}: with the optimizer in the host's memory "
                             r"\(offload_optimizer cpu\) it fits: \S+ MiB of the device and \S+ MiB of the host")

    def test_a_choice_of_levels_is_searched(self):
        path = self.small_devices(offload=["none", "optimizer"], memory_limit="1GiB")

        names = {fate["name"] for fate in self.planned(path)["configurations"]
                 if fate["fate"] == "to be tried"}

        self.assertIn("z1_gas1_tmbspg4_oo_dnone_pmT", names)
        self.assertIn("z2_gas1_tmbspg4_oo_dcpu_pmT", names)
        self.assertIn("z0_gas1_tmbspg4", names)

    def test_stage_0_is_left_out_and_nvme_is_the_host(self):
        config = self.tiny(zero_optimization={"stage": [0, 1], "offload_optimizer": {
            "device": "nvme", "nvme_path": str(self.directory / "nvme")}})
        finished = self.plan(self.write_config(config))

        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertIn('is "nvme", which is the same as "cpu" in stages 1 and 2', finished.stderr)
        self.assertIn("stage 0 cannot run: not modelled: zero_optimization.offload_optimizer",
                      finished.stdout)
        self.assertFalse((self.directory / "nvme").exists())


if __name__ == "__main__":
    unittest.main()
