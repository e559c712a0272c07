"""examples/sim.json: virtual time, so every run gives the same numbers, and they are written here."""

import unittest

from support import ProgramTest, example, outcomes, read_commented_json, read_json

TIMED_BY_THE_HOST = ("setup_time_s",)

# name: step in us, peak in bytes, collectives of a step, bytes that a rank sends in it. Whoever changes
# what a step does, or what it costs, changes these lines knowingly; the failing test prints the new ones.
EXPECTED = {
    "z0_gas4_tmbspg1": (98876, 2488797184, 2, 497759236),
    "z0_gas2_tmbspg2": (81810, 2488798208, 2, 497759236),
    "z0_gas1_tmbspg4": (75869, 2488800256, 2, 497759236),
    "z1_gas4_tmbspg1": (108226, 2405326848, 7, 746638856),
    "z1_gas2_tmbspg2": (91159, 2414812160, 7, 746638856),
    "z1_gas1_tmbspg4": (85219, 2250940416, 7, 746638856),
    "z2_gas4_tmbspg1": (179891, 2417660928, 16, 2239916552),
    "z2_gas2_tmbspg2": (115139, 2417661952, 10, 1244398088),
    "z2_gas1_tmbspg4": (85356, 2162617344, 7, 746638856),
    "z3_gas4_tmbspg1": (309812, 2255680000, 124, 1990308880),
    "z3_gas2_tmbspg2": (162281, 2414812160, 112, 995275792),
    "z3_gas1_tmbspg4": (88513, 2782966784, 106, 497759248),
}
PARAMETERS = 124439808


def numbers(outcome):
    collectives = outcome["ledger"]["collectives"]
    return (round(outcome["step_time_s"]["median"] * 1e6), outcome["peak_memory_bytes"],
            sum(line["calls"] for line in collectives),
            round(sum(line["wire_bytes_per_rank"] for line in collectives)))


class SimExample(ProgramTest):
    maxDiff = None

    def comparable(self):
        results = outcomes(self.results)
        for outcome in results.values():
            for key in TIMED_BY_THE_HOST:
                outcome.pop(key, None)
        return results

    def test_results_are_the_written_ones(self):
        self.tune_well(3, example("sim"))

        results = outcomes(self.results)
        self.assertEqual({name: numbers(outcome) for name, outcome in results.items()}, EXPECTED)
        optimum = read_json(self.results / "ds_config_optimal.json")
        self.assertEqual(optimum["zero_optimization"]["stage"], 0)
        self.assertEqual(optimum["train_micro_batch_size_per_gpu"], 4)
        self.assertIn("Note: step times of 12 experiments, each predicted from the others: median error 0.",
                      (self.results / "summary.txt").read_text(encoding="utf-8"))

    def test_what_is_sent_is_what_the_stages_send(self):
        """By two ranks, in fp32: an all-reduce sends every element once, a gather or a scatter half of them."""
        self.tune_well(3, example("sim"))

        gradients, gathered = 4 * PARAMETERS, 2 * PARAMETERS
        for name, outcome in outcomes(self.results).items():
            stage, steps = int(name[1]), int(name[len("z0_gas"):].split("_")[0])
            expected = {0: gradients, 1: gradients + gathered, 2: steps * gradients + gathered,
                        3: steps * (gathered + gathered)}[stage]
            self.assertAlmostEqual(numbers(outcome)[3] / expected, 1, places=3, msg=name)

    def test_without_a_tuner_the_optimum_is_found_with_fewer_experiments(self):
        config = read_commented_json(example("sim"))
        del config["dstune"]["tuner"]
        config["dstune"]["model"] = str(example("gpt2").with_suffix("") / "config.json")

        self.tune_well(3, self.write_config(config))

        self.assertIn("Note: guided tried ", (self.results / "summary.txt").read_text(encoding="utf-8"))
        self.assertEqual(read_json(self.results / "status.json")["best"], "z0_gas1_tmbspg4")
        self.assertLess(len(outcomes(self.results)), len(EXPECTED))

    def test_two_runs_give_the_same_results_and_optimum(self):
        self.tune_well(3, example("sim"))
        first = self.comparable()
        first_optimum = read_json(self.results / "ds_config_optimal.json")

        self.tune_well(3, example("sim"), "--overwrite")

        self.assertEqual(self.comparable(), first)
        self.assertEqual(read_json(self.results / "ds_config_optimal.json"), first_optimum)


if __name__ == "__main__":
    unittest.main()
