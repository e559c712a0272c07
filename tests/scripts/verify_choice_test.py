"""scripts/verify: what is read, chosen and run."""

import json
import pathlib
import types
import unittest

from verify_support import PEAK, SPEC, configurations, grid, journal, record

from calibration import commented_json
from verify import batches, choice, fine_tuning, lengths, models, tuned, watch
from verify.schedule import CHECK, REFERENCE, TIME, WARM, Schedule


class Results(unittest.TestCase):
    def test_comments_and_trailing_commas_go_but_not_in_strings(self):
        text = '{"a": "x // y", /* b\n */ "c": [1, 2,], // d\n "e": "f,]",}'

        self.assertEqual(json.loads(commented_json.without_comments(text)), {"a": "x // y", "c": [1, 2], "e": "f,]"})

    def test_repetitions_are_of_one_configuration_whose_time_is_their_median(self):
        lines = [record("a", 1.0), record("b", 5.0, stage=1), record("a_again1", 3.0), record("a_again2", 2.0)]

        read = configurations(lines)

        self.assertEqual([(each.name, each.step_s) for each in read], [("a", 2.0), ("b", 5.0)])

    def test_what_was_not_measured_and_a_torn_line_have_no_place(self):
        text = journal([record("a", 1.0), record("b", 1.0, stage=3, status="failed")]) + '{"type": "fini'

        self.assertEqual([each.name for each in tuned.configurations_of(text)], ["a"])

    def test_collectives_of_a_kind_and_type_are_summed_over_their_purposes(self):
        each = configurations([record("a", 1.0)])[0]

        self.assertEqual(each.collectives, {"all_reduce fp32": [3, 26, 104], "all_gather bf16": [1, 25, 50]})

    def test_what_is_locked_for_a_drive_is_no_memory_of_torch(self):
        one_memory, apart = record("a", 1.0), record("b", 1.0, stage=3, host_memory_limit_bytes=2**30)
        for line in (one_memory, apart):
            line["outcome"]["peak_host_memory_bytes"] = {"pinned": 0, "pageable": 5, "locked": 2**20, "held": 2**20}

        peaks = [each.peak_bytes for each in configurations([one_memory, apart])]

        self.assertEqual(peaks, [PEAK - 2**20, PEAK])

    def test_types_of_a_byte_are_one(self):
        line = {"kind": "all_reduce", "calls": 1, "elements": 1, "bytes": 1}
        lines = [dict(line, dtype=name) for name in ("uint8", "int8")]

        self.assertEqual(tuned.sums_by_kind(lines), {"all_reduce int8": [2, 2, 2]})

    def test_a_cost_is_seconds_per_sample_or_per_step(self):
        each = configurations([record("a", 4.0, micro_batch=2, accumulation=2)])[0]

        self.assertEqual([each.cost(4.0, metric) for metric in ("throughput", "latency", "tokens")], [0.5, 4.0, 0.0625])

    def test_the_objective_wins_over_the_metric(self):
        config = {"autotuning": {"metric": "latency"}, "dstune": {"objective": {"metric": "tokens"}}}

        self.assertEqual([tuned.metric_of(config), tuned.metric_of({})], ["tokens", "throughput"])
        with self.assertRaisesRegex(tuned.InputFault, "the objective is speed"):
            tuned.metric_of({"dstune": {"objective": "speed"}})

    def test_what_cannot_be_run_is_told_by_its_name(self):
        lines = [record("a", 1.0, loss="fused"), record("b", 1.0, attention="flash"), record("c", 1.0, backend="sim"),
                 record("d", 1.0, loss="chunked"), record("e", 1.0, lengths={"packed": True}),
                 record("f", 1.0, model=dict(SPEC, expert_imbalance=1.0))]

        self.assertEqual([tuned.why_not(each, lambda _: False) for each in configurations(lines)],
                         ["loss fused, which needs liger_kernel and a GPU",
                          "attention flash, which needs a GPU and flash_attn",
                          "backend sim, which has no time of its own",
                          "loss chunked, which is a part of TRL's trainer", "packed batches",
                          "dstune.expert_imbalance, which transformers' routers do not follow"])

    def test_layers_that_return_tuples_or_differ_are_not_grouped(self):
        lines = [record("a", 1.0, model=dict(SPEC, model_type=name)) for name in ("t5", "gemma3_text", "t5", "gpt2")]
        for line, form in zip(lines, ("groups_of_2_layers", "groups_of_1_layers_by_deepspeed", "every_2_layers",
                                      "groups_of_2_layers")):
            line["experiment"]["ds_config"]["dstune"] = {"activation_checkpointing": form}

        self.assertEqual([tuned.why_not(each) for each in configurations(lines)],
                         ["groups of layers of t5", "groups of layers of gemma3_text", None, None])

    def test_what_was_tuned_without_zero_init_is_what_is_run(self):
        line = record("a", 1.0, stage=3)
        under = configurations([line])[0]
        line["experiment"]["ds_config"]["dstune"] = {"zero_init": False}
        without = configurations([line])[0]

        self.assertIsNone(tuned.why_not(without))
        self.assertEqual([each.is_under_zero_init for each in (under, without)], [True, False])

    def test_what_people_train_can_be_run(self):
        lines = [record("a", 1.0, attention="eager", keep_logits=True), record("b", 1.0, lengths={"law": "uniform"}),
                 record("c", 1.0, model=dict(SPEC, lora={}, trainable=["h.1.*"])), record("d", 1.0, loss="tiled"),
                 record("e", 1.0, backend="cuda", loss="fused", attention="flash"), record("f", 1.0)]
        lines[-1]["experiment"]["ds_config"]["dstune"] = {"activation_checkpointing": "every_2_layers"}

        self.assertEqual([tuned.why_not(each, lambda _: True) for each in configurations(lines)], [None] * 6)

    def test_the_error_of_a_time_is_of_its_independent_steps(self):
        outcome = {"noise_percent": 6.0, "steps": 9, "independent_steps": 4.0}

        self.assertAlmostEqual(tuned.error_of(outcome), 0.03)
        self.assertAlmostEqual(tuned.error_of(dict(outcome, independent_steps=0.0)), 0.02)
        self.assertAlmostEqual(tuned.error_of({"noise_percent": 6.0}), 0.06)

    def test_steps_whose_lengths_vary_have_a_mean(self):
        outcome = {"step_time_s": {"median": 1.0}, "varying_steps": {"mean_step_time_s": 2.0}}

        self.assertEqual(tuned.step_time_of(outcome), 2.0)


class Choice(unittest.TestCase):
    def choose(self, count, pick="z0_f_1_100"):
        return [each.name for each in choice.choose(configurations(grid()), pick, count, "throughput")]

    def test_the_pick_and_the_best_of_each_stage_and_type_come_first(self):
        names = self.choose(12, pick="z1_f_1_200")

        self.assertEqual(names[0], "z1_f_1_200")
        self.assertEqual(set(names[1:9]), {f"z{stage}_{kind}_1_100" for stage in range(4) for kind in "bf"})

    def test_a_sixth_are_far_and_stand_at_the_end(self):
        names = self.choose(12)

        self.assertEqual(names[-2:], ["z3_b_2_200", "z0_b_2_200"])

    def test_none_is_chosen_twice_and_all_if_there_is_room(self):
        for count in (2, 5, 12, 31, 32, 50):
            names = self.choose(count)

            self.assertEqual(len(names), min(count, 32))
            self.assertEqual(len(set(names)), len(names))

    def test_every_batch_is_there_and_the_order_of_the_journal_does_not_matter(self):
        everything = configurations(grid())

        chosen = choice.choose(everything, "z0_f_1_100", 16, "throughput")

        self.assertEqual({each.batch for each in chosen}, {each.batch for each in everything})
        again = choice.choose(everything[::-1], "z0_f_1_100", 16, "throughput")
        self.assertEqual([each.name for each in again], [each.name for each in chosen])


def plan(**settings):
    return dict({"order": ["a", "b", "c"], "reference": "a", "baselines": ["s"], "reference_every": 2, "check_share": 2,
                 "expected_s": {"a": 1.0, "b": 1.0, "c": 1.0}, "budget_s": None}, **settings)


class Visits(unittest.TestCase):
    def visits(self, schedule, seconds=1.0):
        now, visits = 0.0, []
        while (visit := schedule.next(now)) is not None:
            visits.append(visit)
            now += seconds
            schedule.took_s(visit[1], seconds)
        return visits

    def test_two_passes_in_turns_with_the_reference_then_the_checks(self):
        self.assertEqual(self.visits(Schedule(plan())), [
            (WARM, "a", 0), (REFERENCE, "a", 1), (TIME, "a", 1), (TIME, "b", 1), (REFERENCE, "a", 1), (TIME, "c", 1),
            (REFERENCE, "a", 1), (REFERENCE, "a", 2), (TIME, "c", 2), (TIME, "b", 2), (REFERENCE, "a", 2),
            (TIME, "a", 2), (REFERENCE, "a", 2), (CHECK, "s", 0), (CHECK, "a", 0), (CHECK, "b", 0), (CHECK, "c", 0)])

    def test_further_passes_change_their_direction(self):
        visits = self.visits(Schedule(plan(passes=3)))

        self.assertEqual([name for kind, name, number in visits if kind == TIME and number == 3], ["a", "b", "c"])

    def test_a_budget_drops_the_last_ones(self):
        schedule = Schedule(plan(order=list("abcdefgh"), expected_s=dict.fromkeys("abcdefgh", 1.0), budget_s=25.0))

        visits = self.visits(schedule)

        self.assertTrue(schedule.dropped)
        self.assertEqual(schedule.kept + schedule.dropped, list("abcdefgh"))
        self.assertEqual([name for kind, name, _ in visits if kind == CHECK], ["s"] + schedule.kept)
        self.assertLessEqual(len(visits), 25 + 2)

    def test_what_failed_is_not_run_again(self):
        schedule = Schedule(plan())
        visits = []
        while (visit := schedule.next(0.0)) is not None:
            if visit[1] == "b":
                schedule.fails("b")
                continue
            visits.append(visit)
            schedule.took_s(visit[1], 1.0)

        self.assertEqual([name for kind, name, number in visits if kind != REFERENCE and number == 2], ["c", "a"])


class Models(unittest.TestCase):
    def test_a_preset_is_a_published_config_by_the_last_part_of_its_name(self):
        model = models.config_json({"dstune": {"model": "pythia-14m"}}, pathlib.Path("config.json"))

        self.assertEqual((model["model_type"], model["hidden_size"]), ("gpt_neox", 128))
        with self.assertRaisesRegex(tuned.InputFault, "no-such-model is neither a file"):
            models.config_json({"dstune": {"model": "no-such-model"}}, pathlib.Path("config.json"))

    def test_a_path_is_relative_to_the_configuration(self):
        path = pathlib.Path(models.PUBLISHED.parent.parent) / "examples" / "gpt2-30m.json"

        model = models.config_json(tuned.read_configuration(path), path)

        self.assertEqual(model["model_type"], "gpt2")
        self.assertNotIn("architectures", model)

    def test_a_model_is_made_by_its_task_or_by_the_trainers_own_class(self):
        names = ["AutoModelForCausalLM", "AutoModelForSeq2SeqLM"]
        library = types.SimpleNamespace(**{name: types.SimpleNamespace(from_config=name) for name in names})

        self.assertEqual([models.class_of(library, task) for task in ("causal_lm", "seq2seq_lm")], names)
        with self.assertRaises(AttributeError):
            models.class_of(None, "causal_lm", "types:NoSuchClass")

    def test_dropout_is_that_of_the_tuning(self):
        self.assertIn("attention_dropout", models.with_dropout_of({}, SPEC)["no_dropout"])
        self.assertEqual(models.with_dropout_of({}, dict(SPEC, resid_pdrop=0.1)), {})

    def test_a_batch_hangs_on_its_seed_alone(self):
        config = types.SimpleNamespace(vocab_size=50, pad_token_id=0, model_type="bert")
        seeds = {batches.seed_of_micro_step(1, rank, 2, step, micro_step) for rank in (0, 1) for step in range(3)
                 for micro_step in range(4)}

        tokens, labels = batches.micro_step(config, "masked_lm", (2, 30, 0), 7)

        self.assertEqual((tokens, labels), batches.micro_step(config, "masked_lm", (2, 30, 0), 7))
        self.assertEqual([len(row) for row in tokens + labels], [30] * 4)
        self.assertTrue(0 < sum(label != -100 for row in labels for label in row) < 60)
        self.assertEqual(len(seeds), 24)


class FineTuning(unittest.TestCase):
    def test_a_way_of_checkpointing_is_read_as_experiments_have_it(self):
        forms = [False, True, "every_2_layers", "every_1_layers_reentrant", "groups_of_4_layers",
                 "groups_of_1_layers_by_deepspeed"]

        ways = [fine_tuning.way_of({"dstune": {"activation_checkpointing": form}}) for form in forms]

        self.assertEqual(ways, [None, ("every", 1, ""), ("every", 2, ""), ("every", 1, "_reentrant"),
                                ("groups_of", 4, ""), ("groups_of", 1, "_by_deepspeed")])
        self.assertIsNone(fine_tuning.way_of({}))
        with self.assertRaisesRegex(ValueError, "by_magic is not known"):
            fine_tuning.way_of({"dstune": {"activation_checkpointing": "by_magic"}})

    def test_adapters_are_those_of_the_model_spec(self):
        lora = {"r": 8, "lora_alpha": 16.0, "target_modules": ["q_proj"], "exclude_modules": [], "bias": "none"}

        self.assertEqual(fine_tuning.lora_options(lora), {"r": 8, "lora_alpha": 16.0, "target_modules": ["q_proj"],
                                                          "bias": "none"})


class Lengths(unittest.TestCase):
    def test_the_longest_rows_are_those_that_the_program_warms_up_with(self):
        settings = {"law": "histogram", "least": 3, "most": 61, "counts": [[3, 1], [17, 4], [61, 2]],
                    "pad_to_multiple_of": 8}

        self.assertEqual(lengths.longest(settings, 3), ([61, 61, 17], 64))
        self.assertEqual(lengths.longest({"law": "uniform", "least": 2, "most": 9}, 2), ([9, 8], 9))

    def test_drawn_lengths_are_the_programs(self):
        path = pathlib.Path(models.PUBLISHED.parent.parent) / "tests" / "data" / "lengths" / "batches.json"
        row = json.loads(path.read_text(encoding="utf-8"))[0]

        drawn, width = lengths.drawn(row["settings"], row["seed"], 4, 4)

        self.assertEqual(drawn, row["lengths"][4:8])
        self.assertEqual(width, max(drawn))

    def test_rows_are_padded_on_the_right(self):
        rows = lengths.padded([[5, 6, 7], [8, 9, 5]], [[5, 6, 7], [8, 9, 5]], [3, 1], 0)

        self.assertEqual(rows, {"input_ids": [[5, 6, 7], [8, 0, 0]], "labels": [[5, 6, 7], [8, -100, -100]],
                                "attention_mask": [[1, 1, 1], [1, 0, 0]]})


class Watching(unittest.TestCase):
    def tensor(self, count, size=4, dtype="torch.float32"):
        return types.SimpleNamespace(numel=lambda: count, element_size=lambda: size, dtype=dtype)

    def test_messages_are_the_full_ones(self):
        whole, part = self.tensor(8), self.tensor(4)

        sizes = [watch.message("all_reduce", (whole,), {}),
                 watch.message("all_gather_into_tensor", (whole, part), {}),
                 watch.message("reduce_scatter_tensor", (part, whole), {}),
                 watch.message("all_gather", ([part, part], part), {}),
                 watch.message("broadcast", (), {"tensor": whole, "src": 0})]

        self.assertEqual(sizes, [("fp32", 8, 32)] * 5)
        self.assertEqual(watch.message("all_reduce", (self.tensor(3, 1, "torch.uint8"),), {}), ("int8", 3, 3))

    def test_a_collective_inside_another_is_not_counted_and_the_backend_is_restored(self):
        class Backend:
            def all_reduce(self, tensor):
                return tensor

            def all_gather_coalesced(self, outputs, _inputs):
                return [self.all_reduce(each) for each in outputs]

        backend = Backend()
        with watch.CollectiveSums(backend) as counted:
            backend.all_reduce(self.tensor(2))
            backend.all_gather_coalesced([self.tensor(3), self.tensor(5)], [])
        backend.all_reduce(self.tensor(9))

        self.assertEqual(counted.sums, {"all_reduce fp32": [1, 2, 8], "all_gather fp32": [1, 8, 32]})


if __name__ == "__main__":
    unittest.main()
