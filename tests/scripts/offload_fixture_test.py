"""What make_offload_fixture.py asks of DeepSpeed, and what tests/data/offload_fixture.json must be."""
import itertools
import json
import math
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "scripts"))
from offload_recording import cases, deaths, drive_cases, purposes  # noqa: E402
from offload_recording.pinned_requests import PinnedRequests, rounded  # noqa: E402

FIXTURE = json.loads((ROOT / "tests/data/offload_fixture.json").read_text(encoding="utf-8"))
ROWS = FIXTURE["rows"]
DRAWN = cases.drawn() + drive_cases.drawn()
PLACEMENTS = {**cases.PLACEMENTS, **drive_cases.PLACEMENTS}
HOST_TIERS = ("pinned", "host", "locked")
STREAMS = {"default", "reduction", "gather"}


def as_json(value):
    return json.loads(json.dumps(value))


def copies_of(row):
    return [copy for phase in row["phases"].values() for copy in phase["copies"]]


def bytes_on_drive(phases, *which):
    """Of one purpose and direction."""
    return sum(size for phase in phases.values() for *key, _, size in phase["drive"] if key == [*which])


class Cases(unittest.TestCase):
    def test_names_are_unique_and_every_draw_is_the_same(self):
        names = [case["name"] for case in DRAWN]

        self.assertEqual(len(names), len(set(names)))
        self.assertGreaterEqual(len(names), 60)
        self.assertEqual(DRAWN, cases.drawn() + drive_cases.drawn())

    def test_each_pair_of_values_occurs_within_each_placement(self):
        for name, placement in PLACEMENTS.items():
            found = [case for case in DRAWN + drive_cases.with_the_dying() if case["placement"] == name]
            for one, other in itertools.combinations(placement["axes"], 2):
                with self.subTest(placement=name, axes=(one, other)):
                    self.assertLessEqual(set(itertools.product(placement["axes"][one], placement["axes"][other])),
                                         {(case[one], case[other]) for case in found})

    def test_parameters_are_each_in_one_module_and_one_group(self):
        for case in DRAWN:
            everything = list(range(len(cases.parameters_of(case["model"]))))
            in_modules = [i for _, _, members in cases.modules_of(case["model"]) for i in members]
            in_groups = [i for _, members in cases.groups_of(case) for i in members]
            with self.subTest(name=case["name"]):
                self.assertEqual(in_modules, everything)
                self.assertEqual(sorted(in_groups), everything)
                self.assertEqual(len(cases.groups_of(case)), case["groups"])

    def test_small_buckets_are_exceeded_by_a_tensor_and_large_ones_hold_the_model(self):
        for model, buckets in cases.BUCKETS.items():
            elements = [math.prod(shape) for _, shape in cases.parameters_of(model)]
            with self.subTest(model=model):
                self.assertLess(min(elements), buckets["small"])
                self.assertGreater(max(elements), buckets["small"])
                self.assertGreater(buckets["large"], sum(elements))

    def test_a_share_of_some_sub_groups_is_asked_for_by_the_ratio(self):
        configs = [cases.config_of(case) for case in cases.drawn() if "ratio" in case]

        for config in configs:
            zero = config["zero_optimization"]
            self.assertLess(zero["offload_optimizer"]["ratio"], 1)
            self.assertIn("sub_group_size", zero)


class PinnedMemory(unittest.TestCase):
    def test_requests_take_powers_of_two(self):
        self.assertEqual([rounded(size) for size in (0, 1, 2, 3, 4096, 4097)], [0, 1, 2, 4, 4096, 8192])

    def test_a_freed_block_is_handed_out_again_only_for_the_same_size(self):
        pins = PinnedRequests()
        pins.free(pins.add("shard", 100))
        pins.add("shard", 120)
        pins.add("master", 60)

        self.assertEqual(pins.summary(), dict(asked=280, rounded=128 + 128 + 64, taken=128 + 64))
        self.assertEqual(pins.requests, [["shard", 100, 1], ["shard", 120], ["master", 60]])


class Purposes(unittest.TestCase):
    RULES = [("zero", "step", "master", "master"), ("zero", "step", "norm", "norm")]

    def named_in(self, source):
        """The name in the place of ask(), called by a file of a package of DeepSpeed's name."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "deepspeed" / "zero.py"
            file.parent.mkdir()
            file.write_text(source, encoding="utf-8")
            names = []
            scope = dict(ask=lambda *_, **__: names.append(purposes.name_by(self.RULES)))
            exec(compile(source, str(file), "exec"), scope)
            scope["step"]()
        return names

    def test_a_statement_is_known_by_all_of_its_lines(self):
        self.assertEqual(self.named_in("def step():\n    master = ask(\n        1,\n        2)\n"), ["master"])

    def test_what_is_called_inside_is_named_by_the_caller(self):
        self.assertEqual(self.named_in("def to(x):\n    return ask(x)\n\ndef step():\n    norm = to(1)\n"), ["norm"])

    def test_what_no_rule_names_is_other(self):
        self.assertEqual(self.named_in("def step():\n    loss = ask()\n"), [purposes.OTHER])


class Fixture(unittest.TestCase):
    def test_it_has_the_cases_as_they_are_drawn(self):
        self.assertEqual([row["name"] for row in ROWS], [case["name"] for case in DRAWN])
        for row, case in zip(ROWS, DRAWN):
            with self.subTest(name=row["name"]):
                self.assertEqual(row["ds_config"], as_json(drive_cases.config_of(case)))
                self.assertEqual(row["parameter_groups"], as_json(cases.groups_of(case)))
                self.assertEqual((row["ranks"], row["rank"]), (case["ranks"], cases.rank_of(case)))

    def test_it_has_the_models_that_rows_name(self):
        for name, model in FIXTURE["models"].items():
            self.assertEqual(model, as_json(dict(parameters=cases.parameters_of(name),
                                                 modules=cases.modules_of(name))))
        self.assertLessEqual({row["model"] for row in ROWS}, set(FIXTURE["models"]))

    def test_everything_in_it_has_a_purpose(self):
        for row in ROWS:
            found = {purpose for tier in row["steady"].values() for purpose in tier}
            found |= {purpose for purpose, *_ in row["pins"]} | {copy[1] for copy in copies_of(row)}
            for phase in row["phases"].values():
                found |= {*phase["waits"], *phase["reads"]}
            with self.subTest(name=row["name"]):
                self.assertNotIn("other", found)

    def test_copies_are_well_formed(self):
        for row in ROWS:
            for stream, _, direction, tier, kind, calls, size in copies_of(row):
                with self.subTest(name=row["name"]):
                    self.assertIn(stream, STREAMS)
                    self.assertIn(direction, ("D2H", "H2D"))
                    self.assertIn(tier, HOST_TIERS)
                    self.assertIn(kind, ("blocking", "async"))
                    self.assertGreater(calls, 0)
                    self.assertGreater(size, 0)

    def test_pinned_memory_is_what_the_requests_give(self):
        for row in ROWS:
            pins = PinnedRequests()
            freed = [(request[2], place) for place, request in enumerate(row["pins"]) if len(request) == 3]
            for place, (purpose, size, *_) in enumerate(row["pins"]):
                for _, which in [each for each in freed if each[0] == place]:
                    pins.free(which)
                pins.add(purpose, size)
            kept = {}
            for purpose, size, *after in row["pins"]:
                if not after:
                    kept[purpose] = kept.get(purpose, 0) + size
            with self.subTest(name=row["name"]):
                self.assertEqual(pins.summary(), row["pinned"])
                self.assertEqual(kept, row["steady"]["pinned"])

    def test_peaks_are_no_less_than_what_stays(self):
        for row in ROWS:
            after = sum(sum(row["steady"].get(tier, {}).values()) for tier in HOST_TIERS)
            with self.subTest(name=row["name"]):
                self.assertGreaterEqual(sum(row["step"]["at_host_peak"].values()), after)
                self.assertGreaterEqual(sum(row["setup"]["at_host_peak"].values()),
                                        sum(row["setup"].get(tier, 0) for tier in HOST_TIERS))

    def test_gradients_and_updates_go_once_each_way_in_a_step(self):
        """Below stage 3 and of the elements that are this rank's, without those that pad its part."""
        for row in ROWS:
            if row["ds_config"]["zero_optimization"]["stage"] == 3:
                continue
            down = sum(copy[-1] for copy in copies_of(row) if copy[1:3] == ["gradient", "D2H"])
            fp32 = row["steady"]["pinned"].get("master", 0) + row["steady"]["host"].get("master", 0)
            padding = 4 * 2 * row["ranks"] * len(row["parameter_groups"])
            up = sum(copy[-1] for copy in copies_of(row) if copy[1:3] == ["update", "H2D"])
            size = 4 if "bf16" not in row["ds_config"] and "fp16" not in row["ds_config"] else 2
            with self.subTest(name=row["name"]):
                self.assertLessEqual(fp32 - padding, down)
                self.assertLessEqual(down, fp32)
                self.assertEqual(up * 4, fp32 * size)


class FixtureOfDrive(unittest.TestCase):
    ROWS = [row for row in ROWS if row["placement"] in drive_cases.PLACEMENTS]

    def test_only_rows_with_a_drive_have_its_columns(self):
        for row in ROWS:
            columns = [key for key in ("files", "locked", "before_step", "first_step") if key in row]
            with self.subTest(name=row["name"]):
                self.assertEqual(len(columns), 4 if row in self.ROWS else 0)
                self.assertEqual("first_phases" in row, row["placement"] == "stage3_nvme")
                self.assertEqual("drive" in row["setup"], row in self.ROWS)
                self.assertEqual("locked" in row["steady"], row in self.ROWS)

    def test_locked_memory_is_what_was_asked_for(self):
        for row in self.ROWS:
            kept = {}
            for purpose, size, *after in row["locked"]:
                if not after:
                    kept[purpose] = kept.get(purpose, 0) + size
            with self.subTest(name=row["name"]):
                self.assertEqual(kept, row["steady"]["locked"])
                self.assertEqual(sum(kept.values()), row["setup"]["locked"])

    def test_transfers_are_whole_pieces_of_the_threads(self):
        for row in self.ROWS:
            piece = 1024 * row["ds_config"]["aio"]["intra_op_parallelism"]
            for phase in row["phases"].values():
                for purpose, direction, calls, size in phase["drive"]:
                    with self.subTest(name=row["name"], purpose=purpose):
                        self.assertIn(purpose, ("master", "state", "gradient", "parameter"))
                        self.assertIn(direction, ("read", "write"))
                        self.assertGreater(calls, 0)
                        self.assertEqual(size % piece, 0)

    def test_a_settled_step_reads_and_writes_all_that_is_on_the_drive_once(self):
        for row in self.ROWS:
            for purpose in {"master", "state", "gradient"} & set(row["files"]):
                for direction in ("read", "write"):
                    with self.subTest(name=row["name"], purpose=purpose, direction=direction):
                        self.assertEqual(bytes_on_drive(row["phases"], purpose, direction),
                                         row["files"][purpose][1])

    def test_the_first_step_writes_states_that_it_has_not_read(self):
        for row in self.ROWS:
            states = row["files"].get("state", [0, 0])[1]
            with self.subTest(name=row["name"]):
                self.assertEqual(bytes_on_drive(row.get("first_phases", {}), "state", "read"), 0)
                if "first_phases" in row:
                    self.assertEqual(bytes_on_drive(row["first_phases"], "state", "write"), states)


class Deaths(unittest.TestCase):
    FOUND = {death["name"]: death for death in FIXTURE["deaths"]}

    def of_buffers(self, optimizer):
        for case in deaths.of_optimizer_buffers():
            if case["optimizer"] == optimizer:
                yield case, self.FOUND[case["name"]]["dies"]

    def test_they_are_as_they_are_drawn_and_none_is_a_row(self):
        drawn = deaths.drawn()

        self.assertEqual(list(self.FOUND), [case["name"] for case in drawn])
        self.assertFalse(set(self.FOUND) & {row["name"] for row in ROWS})
        for case in drawn:
            with self.subTest(name=case["name"]):
                self.assertEqual(self.FOUND[case["name"]]["asked"], as_json(case["asked"]))

    def test_of_what_pairs_of_values_gave_deepspeed_dies(self):
        for name in drive_cases.DYING:
            with self.subTest(name=name):
                self.assertIn("already assigned swap buffer", self.FOUND[name]["dies"]["message"])

    def test_each_sub_group_in_the_pipeline_takes_buffers_for_all_its_states(self):
        for optimizer, states in (("AdamW", 4), ("Lion", 4), ("Adagrad", 3)):
            for case, dies in self.of_buffers(optimizer):
                needed = states * min(case["sub_groups"], 1 + case["pipeline_read"] + case["pipeline_write"])
                with self.subTest(name=case["name"]):
                    self.assertEqual(bool(dies), case["buffer_count"] < needed)

    def test_too_few_buffers_are_found_in_the_first_two_steps(self):
        for optimizer in ("AdamW", "Lion", "Adagrad"):
            for case, dies in self.of_buffers(optimizer):
                with self.subTest(name=case["name"]):
                    self.assertIn(dies.get("phase"), (None, "0 0 step", "1 0 step"))


if __name__ == "__main__":
    unittest.main()
