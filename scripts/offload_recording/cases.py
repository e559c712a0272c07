"""The configurations that make_offload_fixture.py records, and the models in them. Needs no torch.

A case is one placement (which stage, what lives on the host) and one value of each of the placement's axes. Within a
placement every pair of values of two axes occurs in at least one case, drawn by a seed that is part of the source, so
that the list is the same everywhere.
"""
import itertools
import math
import random

SEED = 20260219
CANDIDATES = 64  # drawn for each case, of which the one with the most new pairs is taken
LEARNING_RATE = 1e-4

# A module is its name, its kind and its sizes: embedding (rows, columns), linear (inputs, outputs, bias), norm (width).
# They run one after the other. No width is a multiple of all the numbers of ranks.


def blocks(number, width, wide):
    for i in range(number):
        yield f"up{i}", "linear", (width, wide, True)
        yield f"down{i}", "linear", (wide, width, True)
        yield f"norm{i}", "norm", (width, )


MODELS = {
    # For the drive: parts of tensors and sub-groups above what DeepSpeed swaps, just below it, and far below.
    "wide_blocks": [("embedding", "embedding", (8009, 133)), *blocks(2, 133, 16001),
                    ("head", "linear", (133, 517, False))],
    "mixed_blocks": [("embedding", "embedding", (1009, 131)), *blocks(1, 131, 16007),
                     ("up1", "linear", (131, 394, True)), ("down1", "linear", (394, 131, True)),
                     ("up2", "linear", (131, 16007, True)), ("down2", "linear", (16007, 131, True)),
                     ("norm2", "norm", (131, )), ("head", "linear", (131, 77, True))],
    "two_blocks": [("embedding", "embedding", (509, 65)), *blocks(2, 65, 190), ("head", "linear", (65, 509, False))],
    "four_blocks": [("embedding", "embedding", (1000, 130)), *blocks(4, 130, 394), ("head", "linear", (130, 77, True))],
}


def tensors_of(kind, sizes):
    """Names and shapes of a module's parameters, in the order in which torch registers them."""
    if kind == "embedding":
        return [("weight", list(sizes))]
    if kind == "norm":
        return [("weight", list(sizes)), ("bias", list(sizes))]
    inputs, outputs, bias = sizes
    return [("weight", [outputs, inputs])] + ([("bias", [outputs])] if bias else [])


def parameters_of(model):
    """Names and shapes in the order of model.parameters()."""
    return [(f"{module}.{name}", shape) for module, kind, sizes in MODELS[model]
            for name, shape in tensors_of(kind, sizes)]


def elements_of(model):
    return [math.prod(shape) for _, shape in parameters_of(model)]


def modules_of(model):
    """Each module's name, kind, and which of the parameters it has."""
    found, first = [], 0
    for module, kind, sizes in MODELS[model]:
        number = len(tensors_of(kind, sizes))
        found.append((module, kind, list(range(first, first + number))))
        first += number
    return found


def groups_of(case):
    """Weight decay and parameters of each group: all in one, or matrices with decay and the others without."""
    shapes = [shape for _, shape in parameters_of(case["model"])]
    if case["groups"] == 1:
        return [(0.0, list(range(len(shapes))))]
    return [(0.1, [i for i, shape in enumerate(shapes) if len(shape) > 1]),
            (0.0, [i for i, shape in enumerate(shapes) if len(shape) == 1])]


COMMON = dict(model=("two_blocks", "four_blocks"), ranks=(2, 3, 4), rank=("first", "last"), accumulation=(1, 2, 3),
              dtype=("bf16", "fp16", "fp32"), overlap_comm=(False, True), pin_memory=(True, False),
              bucket=("small", "large"), groups=(1, 2), gradient_clipping=(0.0, 1.0))
BELOW_3 = dict(round_robin_gradients=(False, True), contiguous_gradients=(True, False))
STAGE_3 = dict(sub_group_size=("small", "medium", "whole"), prefetch=("none", "small", "default"),
               persistence=(0, 400), contiguous_gradients=(True, False))
# How far ahead DeepSpeed looks for the next use of a tensor before it releases it: nothing stays for backward, or all.
REUSE = dict(reuse=("none", "default"))

PLACEMENTS = {
    "stage1": dict(stage=1, axes={**COMMON, **BELOW_3}),
    "stage2": dict(stage=2, axes={**COMMON, **BELOW_3}),
    "stage3": dict(stage=3, axes={**COMMON, **STAGE_3}),
    "stage3_ratio": dict(stage=3, axes={**COMMON, **STAGE_3, "sub_group_size": ("small", "medium"),
                                        "ratio": (0.5, 0.3, 0.75)}),
    "stage3_parameters": dict(stage=3, axes={**COMMON, **STAGE_3, **REUSE, "pin_parameters": (True, False)}),
    "stage2_fp32_sums": dict(stage=2, axes={**COMMON, **BELOW_3, "dtype": ("bf16", )}),
    "stage1_fp32_sums": dict(stage=1, axes={**COMMON, **BELOW_3, "dtype": ("bf16", "fp16")}),
    # The optimizer stays on the device.
    "stage3_parameters_alone": dict(stage=3, seed=SEED + 6,
                                    axes={**{axis: COMMON[axis] for axis in COMMON if axis != "pin_memory"},
                                          **STAGE_3, **REUSE, "pin_parameters": (True, False)}),
    # Persistent tensors are gathered one by one after the update: where there is one, as below 80 elements, or if asked.
    "stage3_sequential": dict(stage=3, seed=SEED + 7,
                              axes={**COMMON, **STAGE_3, "model": ("four_blocks", ), "ranks": (2, 3),
                                    "accumulation": (1, ), "bucket": ("large", ), "groups": (1, ),
                                    "sub_group_size": ("whole", ), "prefetch": ("default", ),
                                    "persistence": (80, 400), "contiguous_gradients": (True, ),
                                    "pin_parameters": (True, False), "sequential": (False, True)}),
    # Part of the sub-groups has its optimizer on the device, and all of them their parameters on the host.
    "stage3_parameters_ratio": dict(stage=3, seed=SEED + 8,
                                    axes={**COMMON, **STAGE_3, **REUSE, "accumulation": (1, 2),
                                          "sub_group_size": ("small", "medium"), "prefetch": ("none", "default"),
                                          "contiguous_gradients": (True, ), "ratio": (0.5, 0.3),
                                          "pin_parameters": (True, False)}),
}
# Other optimizers keep other states, in the same places.
OTHER_OPTIMIZERS = [("stage1", "Lion"), ("stage2", "Adagrad"), ("stage2", "Lion"), ("stage3", "Adagrad"),
                    ("stage3", "Lion"), ("stage3_parameters", "Adagrad")]

# In elements: small ones are exceeded by some tensors, so that these are reduced alone.
BUCKETS = {"two_blocks": dict(small=20_000, large=400_000), "four_blocks": dict(small=60_000, large=2_000_000),
           "wide_blocks": dict(small=60_000, large=12_000_000), "mixed_blocks": dict(small=60_000, large=12_000_000)}
# Of this rank's elements: "whole" is DeepSpeed's default.
SUB_GROUPS = {"two_blocks": dict(small=4_000, medium=15_000), "four_blocks": dict(small=12_000, medium=50_000),
              "wide_blocks": dict(small=400_000, medium=1_200_000),
              "mixed_blocks": dict(small=40_000, medium=300_000)}
PREFETCH = {"none": 0, "small": 20_000}


def pairs_of(case, axes):
    return {((one, case[one]), (other, case[other])) for one, other in itertools.combinations(axes, 2)}


def cases_with_all_pairs(axes, seed):
    """Of random candidates the one that has the most pairs which no case has yet, until all pairs are there."""
    draw = random.Random(seed)
    missing = {((one, a), (other, b)) for one, other in itertools.combinations(axes, 2)
               for a, b in itertools.product(axes[one], axes[other])}
    cases = []
    while missing:
        candidates = [{axis: draw.choice(values) for axis, values in axes.items()} for _ in range(CANDIDATES)]
        best = max(candidates, key=lambda case: len(pairs_of(case, axes) & missing))
        found = pairs_of(best, axes) & missing
        if found:
            cases.append(best)
            missing -= found
    return cases


def drawn():
    """All cases in the order of the fixture, each with a name of its own."""
    cases = []
    for place, (name, placement) in enumerate(PLACEMENTS.items()):
        found = cases_with_all_pairs(placement["axes"], placement.get("seed", SEED + place))
        cases += [dict(case, placement=name, optimizer="AdamW", name=f"{name}_{i}") for i, case in enumerate(found)]
    for name, optimizer in OTHER_OPTIMIZERS:
        like = next(case for case in cases if case["placement"] == name and case["accumulation"] == 2)
        cases.append(dict(like, optimizer=optimizer, name=f"{name}_{optimizer.lower()}"))
    return cases


def zero_of(case):
    placement = PLACEMENTS[case["placement"]]
    zero = dict(stage=placement["stage"], overlap_comm=case["overlap_comm"],
                contiguous_gradients=case["contiguous_gradients"],
                reduce_bucket_size=BUCKETS[case["model"]][case["bucket"]])
    if "pin_memory" in case:
        zero["offload_optimizer"] = dict(device="cpu", pin_memory=case["pin_memory"])
    if "ratio" in case:
        zero["offload_optimizer"]["ratio"] = case["ratio"]
    if "pin_parameters" in case:
        zero["offload_param"] = dict(device="cpu", pin_memory=case["pin_parameters"])
    if placement["stage"] < 3:
        zero["round_robin_gradients"] = case["round_robin_gradients"]
        return zero
    zero["stage3_param_persistence_threshold"] = case["persistence"]
    if case["sub_group_size"] != "whole":
        zero["sub_group_size"] = SUB_GROUPS[case["model"]][case["sub_group_size"]]
    if case["prefetch"] != "default":
        zero["stage3_prefetch_bucket_size"] = PREFETCH[case["prefetch"]]
    if case.get("sequential"):
        zero["stage3_allgather_sequential"] = True
    if case.get("reuse") == "none":
        zero["stage3_max_reuse_distance"] = 0
    return zero


def config_of(case):
    """What DeepSpeed is given."""
    accumulation = case["accumulation"]
    optimizer = dict(lr=LEARNING_RATE)
    if "pin_memory" not in case:
        optimizer["torch_adam"] = True  # DeepSpeed's own for a GPU needs one
    config = dict(train_micro_batch_size_per_gpu=1, gradient_accumulation_steps=accumulation,
                  train_batch_size=accumulation * case["ranks"],
                  optimizer=dict(type=case["optimizer"], params=optimizer),
                  gradient_clipping=case["gradient_clipping"], zero_optimization=zero_of(case))
    if case["dtype"] != "fp32":
        config[case["dtype"]] = dict(enabled=True)
    if case["placement"].endswith("fp32_sums"):
        config["data_types"] = dict(grad_accum_dtype="fp32")
    return config


def rank_of(case):
    return 0 if case["rank"] == "first" else case["ranks"] - 1
