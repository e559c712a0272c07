"""What tests/data/operator_fixture.json must be, whatever release wrote it."""
import json
import os
import pathlib
import unittest

ROOT = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])
ROWS = json.loads((ROOT / "tests/data/operator_fixture.json").read_text(encoding="utf-8"))["rows"]
DTYPES = ("fp32", "bf16")


class OperatorFixture(unittest.TestCase):
    def test_each_family_case_is_there_with_one_layer_and_with_three(self):
        cases = {path.stem for path in (ROOT / "scripts/family_cases").glob("*.json")}
        counted = [(row["name"], row["layers"]) for row in ROWS]

        self.assertEqual(counted, sorted(set(counted)))
        self.assertEqual({name for name, layers in counted if layers == 1},
                         {name for name, layers in counted if layers == 3})
        self.assertLessEqual(cases, {name for name, _ in counted})

    def test_counts_are_the_sums_of_the_calls_by_name(self):
        for row in ROWS:
            for dtype in DTYPES:
                with self.subTest(name=row["name"], layers=row["layers"], dtype=dtype):
                    counts = row[dtype]
                    self.assertEqual("names" in counts, row["layers"] == 1)
                    for phase, calls in counts.get("names", {}).items():
                        self.assertEqual(sum(calls.values()), counts[phase])

    def test_shallow_copies_of_saved_outputs_are_not_counted(self):
        for row in ROWS:
            if row["layers"] == 1 and "activation_checkpointing" not in row:
                with self.subTest(name=row["name"]):
                    self.assertNotIn("detach", row["fp32"]["names"]["forward"])

    def test_each_trained_parameter_takes_its_gradient_over_once(self):
        """GPT-2's fixture has two layers, of which the second is not there."""
        fixture = json.loads((ROOT / "tests/data/families/gpt2_gelu_new.json").read_text(encoding="utf-8"))
        parameters = [each["name"] for each in fixture["parameters"] if ".h.1." not in each["name"]]
        row = next(row for row in ROWS if (row["name"], row["layers"]) == ("gpt2_gelu_new", 1))

        self.assertEqual(row["fp32"]["names"]["backward"]["detach"], len(parameters))

    def test_only_checkpointing_runs_modules_again(self):
        for row in ROWS:
            for dtype in DTYPES:
                with self.subTest(name=row["name"], layers=row["layers"], dtype=dtype):
                    self.assertEqual(row[dtype]["modules_in_backward"] > 0, "activation_checkpointing" in row)

    def test_the_type_changes_casts_alone(self):
        for row in ROWS:
            if row["layers"] != 1:
                continue
            with self.subTest(name=row["name"]):
                fp32, bf16 = (row[dtype]["names"] for dtype in DTYPES)
                for phase in ("forward", "backward"):
                    casts = bf16[phase].get("_to_copy", 0) - fp32[phase].get("_to_copy", 0)
                    self.assertGreaterEqual(casts, 0)
                    self.assertEqual({**fp32[phase], "_to_copy": 0}, {**bf16[phase], "_to_copy": 0})


if __name__ == "__main__":
    unittest.main()
