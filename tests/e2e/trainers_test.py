"""A trainer's file in the place of CONFIG.json."""

import json
import unittest

from support import ProgramTest, PROGRAM, SOURCE, read_json

FILES = SOURCE / "tests" / "data" / "trainers"
MODEL = {"model_type": "gpt2", "vocab_size": 512, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2}
DEEPSPEED = {"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
             "gradient_clipping": "auto", "bf16": {"enabled": "auto"},
             "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"},
             "autotuning": {"max_train_batch_size": 8, "tuner_num_trials": 3}}
TRAIN = """
model_name_or_path: model
stage: sft
finetuning_type: lora
lora_rank: 4
lora_target: c_attn
template: default
cutoff_len: 32
deepspeed: zero2.json
output_dir: out
per_device_train_batch_size: 2
gradient_accumulation_steps: 2
learning_rate: 1e-4
max_grad_norm: 0.5
"""


class Trainers(ProgramTest):
    def plan(self, name, *options):
        finished = self.run_command([PROGRAM, "--plan", "--world-size", "2", "--format", "json", *options, FILES / name])
        self.assertEqual(finished.returncode, 0, finished.stderr)
        return json.loads(finished.stdout), finished.stderr

    def test_plans_have_the_stage_and_the_model_of_the_file(self):
        for name, stage, parameters, trained in (
                ("arguments_zero2.json", 2, 124439808, 124439808),
                ("llama_factory_lora.yaml", 3, 7635801600, 20185088),
                ("axolotl_fp16.yaml", 1, 125619456, 1179648)):
            plan, said = self.plan(name)

            self.assertEqual([each["stage"] for each in plan["stages"]], [stage], name)
            self.assertEqual((plan["num_params"], plan["trainable_num_params"]), (parameters, trained), name)
            self.assertIn(f"{name}: ", said)

    def test_accelerate_says_nothing_of_the_model(self):
        plan, said = self.plan("accelerate_zero2.yaml", "--model", "gpt2")

        self.assertEqual([each["stage"] for each in plan["stages"]], [2])
        self.assertIn("trains on 8 ranks", said)

        finished = self.run_command([PROGRAM, "--check", FILES / "accelerate_zero2.yaml"])
        self.assertEqual(finished.returncode, 2)
        self.assertIn("--model", finished.stderr)

    def test_a_run_tunes_what_the_trainer_would_train(self):
        folder = self.directory / "mine"
        folder.mkdir()
        (folder / "train.yaml").write_text(TRAIN, encoding="utf-8")
        (folder / "zero2.json").write_text(json.dumps(DEEPSPEED), encoding="utf-8")
        (folder / "model").mkdir()
        (folder / "model" / "config.json").write_text(json.dumps(MODEL), encoding="utf-8")

        self.tune_well(3, folder / "train.yaml", "--backend", "cpu", "--memory-limit", "64MiB")

        optimum = read_json(self.results / "ds_config_optimal.json")
        self.assertEqual(optimum["zero_optimization"]["stage"], 2)
        self.assertEqual(optimum["gradient_clipping"], 0.5)
        self.assertEqual(optimum["bf16"]["enabled"], False)
        self.assertIn("sequence_length 32 from cutoff_len", (self.results / "summary.txt").read_text("utf-8"))

    def test_a_fault_names_the_key_of_the_trainers_file(self):
        (self.directory / "train.yaml").write_text(TRAIN + "quantization_bit: 4\n", encoding="utf-8")
        (self.directory / "zero2.json").write_text(json.dumps(DEEPSPEED), encoding="utf-8")

        finished = self.run_command([PROGRAM, "--plan", "--world-size", "2", self.directory / "train.yaml"])

        self.assertEqual(finished.returncode, 2)
        self.assertIn("/quantization_bit", finished.stderr)


if __name__ == "__main__":
    unittest.main()
