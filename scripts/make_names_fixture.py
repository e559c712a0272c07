#!/usr/bin/env python3
"""Writes tests/data/deepspeed_names.json: spaces as DeepSpeed's own autotuner enumerates and names them.

    pip download --no-deps --no-binary :all: deepspeed==0.19.8 && tar xzf deepspeed-0.19.8.tar.gz
    python3 scripts/make_names_fixture.py deepspeed-0.19.8 tests/data/deepspeed_names.json

Only deepspeed/autotuning/utils.py runs (get_all_configs, canonical_name and their helpers), so that
torch is not needed. What is between them is Autotuner._generate_experiments, line by line.
"""
import copy
import importlib.util
import json
import sys
import time
import types

RANKS = 8
MICRO_BATCHES = [1, 2, 4]
MAX_TRAIN_BATCH_PER_GPU = 8


def load(root):
    """(utils, constants) of deepspeed.autotuning without the rest of the package."""
    for name in ["deepspeed", "deepspeed.utils", "deepspeed.runtime", "deepspeed.autotuning"]:
        module = types.ModuleType(name)
        module.__path__ = []
        sys.modules[name] = module
    sys.modules["deepspeed.utils"].logger = None
    sys.modules["deepspeed.runtime.constants"] = types.SimpleNamespace(
        GRADIENT_ACCUMULATION_STEPS="gradient_accumulation_steps",
        TRAIN_MICRO_BATCH_SIZE_PER_GPU="train_micro_batch_size_per_gpu")

    def module(name, path):
        spec = importlib.util.spec_from_file_location(name, f"{root}/deepspeed/{path}")
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[name] = loaded
        spec.loader.exec_module(loaded)
        return loaded

    return (module("deepspeed.autotuning.utils", "autotuning/utils.py"),
            module("deepspeed.autotuning.constants", "autotuning/constants.py"))


def experiments(utils, tuning_space, template, user, stage):
    """{name: configuration} of Autotuner._generate_experiments, and what it would overwrite."""
    tuning_space = copy.deepcopy(tuning_space)
    tuning_space["train_micro_batch_size_per_gpu"] = MICRO_BATCHES
    utils.replace_dict(tuning_space, copy.deepcopy(user),
                       ["zero_optimization", "train_micro_batch_size_per_gpu"])
    all_configs = utils.get_all_configs(tuning_space, ignore_keys=["optimizer"])
    tuning_keys = utils.get_tuning_keys(tuning_space)
    searches_gas = "gradient_accumulation_steps" in tuning_keys  # canonical_name adds to the list
    named = []
    for config in utils.prune_configs(all_configs):
        exp_config = copy.deepcopy(template)
        utils.replace_dict(exp_config, config)
        mbs = exp_config["train_micro_batch_size_per_gpu"]
        # DeepSpeed overwrites the user's accumulation steps; where they are a list, they are searched.
        gas = (exp_config["gradient_accumulation_steps"] if searches_gas
               else MAX_TRAIN_BATCH_PER_GPU // mbs)
        exp_config["gradient_accumulation_steps"] = gas
        exp_config["train_batch_size"] = mbs * gas * RANKS
        named.append([utils.canonical_name(exp_config, tuning_keys, f"z{stage}_"), exp_config])
    return sorted(named, key=lambda pair: (pair[0], json.dumps(pair[1], sort_keys=True)))


ADAMW = {"type": "AdamW", "params": {"lr": 1e-3, "betas": [0.9, 0.95]}}
# Of all of a file's keys; lists where DeepSpeed takes scalars. Without DeepSpeed's templates.
OURS = [
    (0, {"gradient_clipping": [0.5, 1.0]}),
    (0, {"communication_data_type": ["fp32", "bf16"], "bf16": {"enabled": True}}),
    (0, {"gradient_accumulation_steps": [1, 2, 4]}),
    (1, {"zero_optimization": {"reduce_bucket_size": [5e8, 100000000, 9000, 9001, 4e3]}}),
    (1, {"zero_optimization": {"overlap_comm": [True, False], "round_robin_gradients": [False, True]}}),
    (1, {"bf16": {"enabled": True, "check_grad_overflow": [True, False]},
         "data_types": {"grad_accum_dtype": ["fp32", "bf16"]}}),
    (1, {"zero_optimization": {"reduce_bucket_size": [1e7, 1e8]}, "gradient_clipping": 0.3,
         "optimizer": ADAMW}),
    (1, {"prescale_gradients": [True, False], "gradient_predivide_factor": [1.0, 2.5, 10]}),
    (2, {"zero_optimization": {"contiguous_gradients": [True, False], "reduce_scatter": [True, False],
                               "use_multi_rank_bucket_allreduce": [True, False]}}),
    (2, {"zero_optimization": {"reduce_bucket_size": [123456, 5e6], "overlap_comm": True},
         "fp16": {"enabled": True, "loss_scale": [0, 128], "initial_scale_power": [8, 16]}}),
    (2, {"zero_optimization": {"offload_optimizer": {"device": "cpu", "pin_memory": [True, False]}}}),
    (2, {"zero_optimization": {"reduce_bucket_size": [5e8, 2.5e8],
                               "offload_optimizer": {"device": "none"}}}),
    (3, {"zero_optimization": {"stage3_prefetch_bucket_size": [0, 5e7, 5e8],
                               "stage3_param_persistence_threshold": [1e4, 1e5, 1e6]}}),
    (3, {"zero_optimization": {"stage3_max_live_parameters": [1e8, 1e9],
                               "stage3_max_reuse_distance": [0, 1e9], "sub_group_size": [1e9, 1e12]}}),
    (3, {"zero_optimization": {"stage3_use_all_reduce_for_fetch_params": [True, False],
                               "zero_hpz_partition_size": [1, 2, 4]}}),
    (3, {"zero_optimization": {"zero_quantized_weights": [True, False],
                               "zero_quantized_gradients": [False, True]}}),
    (3, {"zero_optimization": {"offload_param": {"device": ["none", "cpu"], "buffer_size": 1e8}}}),
    (3, {"zero_optimization": {"stage3_model_persistence_threshold": [9001, 9002, 12]}}),
    (3, {"timers": {"throughput": {"enabled": [True, False]}}, "bf16": {"enabled": True}}),
    (3, {"zero_optimization": {"overlap_comm": [True, False]}, "gradient_accumulation_steps": 2,
         "steps_per_print": [1, 2000, 20000], "optimizer": ADAMW}),
]
# Files beside which DeepSpeed's own spaces stand.
USERS = [{}, {"bf16": {"enabled": True}, "gradient_clipping": 0.5, "optimizer": ADAMW},
         {"gradient_accumulation_steps": 2, "communication_data_type": ["fp32", "fp16"]}]


def main(root, path):
    utils, constants = load(root)
    cases = []
    for stage in range(4):
        with open(f"{root}/deepspeed/autotuning/config_templates/template_zero{stage}.json") as file:
            template = json.load(file)
        space = getattr(constants, f"DEFAULT_TUNING_SPACE_ZERO_{stage}")
        for user in USERS if stage == 1 else USERS[:1]:
            cases.append(dict(stage=stage, deepspeeds=True, file=user,
                              experiments=experiments(utils, space, template, user, stage)))
    for stage, file in OURS:
        space = copy.deepcopy(file)
        space["zero_optimization"] = {"stage": stage, **file.get("zero_optimization", {})}
        user = {key: value for key, value in file.items() if key == "optimizer"}
        cases.append(dict(stage=stage, deepspeeds=False, file=file,
                          experiments=experiments(utils, space, {}, user, stage)))
    with open(path, "w") as out:
        out.write('{"deepspeed": "0.19.8", "ranks": 8, "micro_batches": [1, 2, 4], "samples": 8,\n "cases": [')
        rows = ",".join("\n  " + json.dumps(case, separators=(",", ":")) for case in cases)
        out.write(rows + "\n]}\n")


def measure(root):
    """Prints what DeepSpeed takes for a space of 100,800 configurations, once per part."""
    utils, _ = load(root)
    space = {"zero_optimization": {
        "stage": 3, "overlap_comm": [True, False], "reduce_scatter": [False, True],
        "reduce_bucket_size": [5e7, 5e8, 1e9], "allgather_partitions": [True, False],
        "allgather_bucket_size": [5e7, 5e8, 1e9], "contiguous_gradients": [False, True],
        "stage3_prefetch_bucket_size": [i * 10**6 for i in range(10)],
        "stage3_param_persistence_threshold": [i * 10**5 for i in range(10)],
        "sub_group_size": [10**8 * i for i in range(1, 8)]}, "train_micro_batch_size_per_gpu": [1]}
    begin = time.process_time()
    configs = utils.get_all_configs(copy.deepcopy(space), ignore_keys=["optimizer"])
    enumerated = time.process_time()
    keys = utils.get_tuning_keys(space)
    pruned = utils.prune_configs(configs)
    distinct = time.process_time()
    for config in pruned:
        utils.canonical_name(copy.deepcopy(config), list(keys), "z3_")
    named = time.process_time()
    for part, seconds in (("get_all_configs", enumerated - begin), ("prune_configs", distinct - enumerated),
                          ("canonical_name", named - distinct), ("all", named - begin)):
        print(f"{part}: {len(configs)} configurations in {seconds:.2f} s, {len(configs) / seconds:.0f}/s")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--measure":
        measure(sys.argv[2])
    elif len(sys.argv) == 3:
        main(*sys.argv[1:])
    else:
        sys.exit(__doc__)
