"""One run, told in several places: the table, summary.txt, results.csv, JSON and the log name the same optimum with
the same numbers, and no line of the table's side is wider than a terminal."""

import csv
import json
import re
import unittest

from support import ProgramTest, example, read_commented_json, read_json, tiny

WIDTH = 100
SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
BYTES = {"B": 1, "KiB": 2 ** 10, "MiB": 2 ** 20, "GiB": 2 ** 30}
FIGURES = re.compile(r"([\d.]+) (us|ms|s) per step \+- ([\d.]+) % \(95 %, ([^)]*)\), ([\d.]+) samples/s, "
                     r"peak ([\d.]+) (B|KiB|MiB|GiB)")


def half_a_digit(text):
    """What a number that was rounded to this text may differ by."""
    return 0.5001 * 10 ** -len(text.partition(".")[2])


class Results(ProgramTest):
    def assert_rounded(self, text, number, what):
        self.assertLessEqual(abs(float(text) - number), half_a_digit(text), f"{what}: {text} for {number}")

    def rows_of_csv(self):
        with open(self.results / "results.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def assert_figures(self, text, best):
        """That a line of figures is that of the optimum's row of results.csv."""
        found = FIGURES.search(text)
        self.assertIsNotNone(found, text)
        step, unit, interval, runs, samples, peak, size = found.groups()
        self.assert_rounded(step, float(best["step_time_median_s"]) / SECONDS[unit], "step")
        self.assert_rounded(interval, float(best["interval_percent"]), "interval")
        self.assert_rounded(samples, float(best["samples_per_s"]), "samples/s")
        self.assert_rounded(peak, int(best["peak_memory_bytes"]) / BYTES[size], "peak")
        expected = "the steps of one run" if best["runs"] == "1" else f"{best['runs']} runs"
        self.assertEqual(runs, expected)

    def assert_files_and_log(self, finished):
        """@returns the rows of results.csv, the optimum first"""
        rows = self.rows_of_csv()
        best = rows[0]
        self.assertEqual([row["name"] for row in rows if row["optimum"] == "true"], [best["name"]])
        self.assertEqual([int(row["position"]) for row in rows], list(range(1, len(rows) + 1)))
        self.assertEqual(read_json(self.results / "status.json")["best"], best["name"])
        optimum = read_json(self.results / "ds_config_optimal.json")
        self.assertEqual(optimum["zero_optimization"]["stage"], int(best["zero_stage"]))
        self.assertEqual(optimum["train_micro_batch_size_per_gpu"], int(best["train_micro_batch_size_per_gpu"]))
        summary = (self.results / "summary.txt").read_text(encoding="utf-8")
        self.assertIn(f"\n{best['name']} is the optimal setup", summary)
        takes = re.search("^It takes .*$", summary, re.MULTILINE)
        self.assert_figures(takes.group(), best)
        self.assertIn(f"best: {best['name']}, written to ", finished.stderr)
        self.assert_figures(finished.stderr.splitlines()[-1], best)
        self.assertIn("it takes ", finished.stderr.splitlines()[-1])
        return rows

    def cells(self, line):
        return [cell.strip() for cell in line.strip("|").split("|")]

    def assert_table(self, text, rows):
        lines = text.splitlines()
        self.assertEqual([line for line in lines if len(line) > WIDTH], [])
        titles, units = self.cells(lines[0]), self.cells(lines[2])
        table = [dict(zip(titles, self.cells(line))) for line in lines[3:] if line.startswith("|")]
        self.assertEqual([row["experiment"] for row in table], [row["name"] for row in rows])
        self.assertEqual([row["#"] for row in table if row["#"].startswith("*")], ["*1"])
        size = BYTES[units[titles.index("peak")]]
        for shown, row in zip(table, rows):
            self.assert_rounded(shown["step"], float(row["step_time_median_s"]) * 1e3, "step")
            self.assert_rounded(shown["+-"], float(row["interval_percent"]), "+-")
            self.assert_rounded(shown["samples"], float(row["samples_per_s"]), "samples/s")
            self.assert_rounded(shown["peak"], int(row["peak_memory_bytes"]) / size, "peak")
            self.assert_rounded(shown["vs"], float(rows[0]["samples_per_s"]) / float(row["samples_per_s"]), "vs best")
            looks_better = float(row["samples_per_s"]) > float(rows[0]["samples_per_s"])
            self.assertEqual(shown["#"].startswith("~"), looks_better)

    def assert_json(self, text, rows):
        found = [entry for entry in json.loads(text) if "announced" in entry]
        by_name = {entry["name"]: entry for entry in found}
        self.assertEqual(set(by_name), {row["name"] for row in rows})
        self.assertEqual([entry["name"] for entry in found if entry["optimum"]], [rows[0]["name"]])
        for row in rows:
            entry = by_name[row["name"]]
            announced = entry["announced"]
            self.assertEqual(announced["runs"], int(row["runs"]))
            self.assertEqual(announced["step_time_s"], float(row["step_time_median_s"]))
            self.assertEqual(announced["samples_per_s"], float(row["samples_per_s"]))
            self.assertEqual(announced["peak_memory_bytes"], int(row["peak_memory_bytes"]))
            self.assertAlmostEqual(announced["interval_percent"], float(row["interval_percent"]), delta=5e-4)
            self.assertAlmostEqual(announced["versus_best"],
                                   float(rows[0]["samples_per_s"]) / float(row["samples_per_s"]))
            self.assertEqual(entry["pareto"], row["pareto"] == "true")
            self.assertEqual(entry["tie"], row["tie"] == "true")
            self.assertEqual(entry.get("note", ""), row["note"])
            self.assertEqual(entry["searched"]["zero_optimization.stage"], int(row["zero_stage"]))

    def assert_agreement(self, config):
        finished = self.tune_well(3, config)
        self.assert_table(finished.stdout, self.assert_files_and_log(finished))
        finished = self.tune_well(3, config, "--overwrite", "--format", "json")
        self.assert_json(finished.stdout, self.assert_files_and_log(finished))

    def test_all_say_the_same_of_single_runs(self):
        self.assert_agreement(example("sim"))

    def test_all_say_the_same_of_repeated_runs(self):
        config = tiny(zero_optimization={"stage": [0, 1]}, train_micro_batch_size_per_gpu=[1, 2])
        del config["dstune"]["tuner"]

        self.assert_agreement(self.write_config(config))

        self.assertGreater(int(self.rows_of_csv()[0]["runs"]), 1)

    def test_everything_that_was_searched_has_a_column(self):
        config = read_commented_json(example("sim"))
        config["zero_optimization"] = {"stage": 1, "reduce_bucket_size": "$BUCKET"}
        config["train_micro_batch_size_per_gpu"] = 1
        config["dstune"] |= {"tuner": "gridsearch", "model": str(example("gpt2").with_suffix("") / "config.json"),
                             "precision": ["bf16", "fp32"], "activation_checkpointing": [False, True],
                             "lengths": [64, 128], "variables": {"BUCKET": [1e7, 5e8]}}
        del config["dstune"]["sequence_length"]
        config["autotuning"] = {"enabled": True, "tuner_early_stopping": 100}
        path = self.write_config(config)

        finished = self.tune_well(3, path, "--wide")

        rows = self.rows_of_csv()
        self.assertEqual({row["precision"] for row in rows}, {"bf16", "fp32"})
        self.assertEqual({row["activation_checkpointing"] for row in rows}, {"false", "true"})
        self.assertEqual({row["sequence_length"] for row in rows}, {"64", "128"})
        self.assertEqual({float(row["zero_optimization.reduce_bucket_size"]) for row in rows}, {1e7, 5e8})
        heads = [" ".join(pair) for pair in zip(self.cells(finished.stdout.splitlines()[0]),
                                                self.cells(finished.stdout.splitlines()[2]))]
        for title in ("reduce_ bucket_size", "precision ", "activation_ checkpointing", "sequence_ length"):
            self.assertIn(title, heads)

        config["autotuning"]["tuner_num_trials"] = 1
        self.tune_well(3, self.write_config(config), "--overwrite")
        (row,) = self.rows_of_csv()
        self.assertLessEqual({"precision", "activation_checkpointing", "sequence_length",
                              "zero_optimization.reduce_bucket_size"}, set(row), "they were searched all the same")


if __name__ == "__main__":
    unittest.main()
