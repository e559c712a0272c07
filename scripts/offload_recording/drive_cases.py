"""The configurations of make_offload_fixture.py in which DeepSpeed swaps to a drive. Needs no torch.

Axes beside those of cases.py: where the other half lives (`parameters_on`, `optimizer_on`: the device, pinned or
pageable host memory), pipelines, buffers, and the drive's block size and threads. In stage3_nvme there are as many
buffers as the swapper needs, or `spare_buffers` more.
"""
from . import cases
from .cases import COMMON, REUSE, SEED, STAGE_3

MIB = 1 << 20
FOLDER = "drive"  # in the folder in which DeepSpeed runs
STATES = 4  # of a parameter that AdamW has in memory at a time: master, gradient and two moments

SWAPPED = {**COMMON, **STAGE_3, "model": ("wide_blocks", "mixed_blocks"), "block": (MIB, 2 * MIB), "threads": (1, 2, 4)}
OPTIMIZER = dict(pipeline_read=(False, True), pipeline_write=(False, True), spare_buffers=(0, 3))
PARAMETERS = dict(**REUSE, parameter_buffers=(7, 9), buffer_size=("fitting", "large"),
                  max_in_cpu=(0, 1_500_000, 1_000_000_000))


def without(axes, name):
    return {axis: values for axis, values in axes.items() if axis != name}


PLACEMENTS = {
    "stage3_nvme": dict(seed=SEED + 20, first_step=True,
                        axes={**SWAPPED, **OPTIMIZER, "parameters_on": ("device", "pinned", "pageable")}),
    "stage3_nvme_both": dict(seed=SEED + 21, axes={**SWAPPED, **OPTIMIZER, **PARAMETERS, "fast_init": (False, True)}),
    "stage3_nvme_parameters": dict(seed=SEED + 22, axes={**without(SWAPPED, "pin_memory"), **PARAMETERS,
                                                         "optimizer_on": ("device", "pinned", "pageable")}),
}
OTHER_OPTIMIZERS = ("Lion", "Adagrad")
# The gradients of a step are more than all buffers hold, so that backward waits for the drive.
FEW_BUFFERS = dict(model="wide_blocks", ranks=2, rank="first", sub_group_size="small", block=MIB, pipeline_read=False,
                   pipeline_write=False, spare_buffers=0)
# Large tensors that stay gathered: their shards leave their buffers as soon as they are gathered.
PERSISTENT = dict(model="wide_blocks", ranks=2, rank="first", sub_group_size="whole", block=MIB, persistence=3_000_000,
                  parameter_buffers=7, max_in_cpu=0)
# Of these DeepSpeed dies, so that they are no rows: deaths.py has them.
DYING = ("stage3_nvme_both_14", "stage3_nvme_both_17", "stage3_nvme_parameters_13", "stage3_nvme_parameters_15",
         "stage3_nvme_parameters_16", "stage3_nvme_parameters_persistent_default")


def is_on_drive(case):
    return case["placement"] in PLACEMENTS


def drawn():
    """All cases of rows in the order of the fixture, in which they follow those of cases.py."""
    return [case for case in with_the_dying() if case["name"] not in DYING]


def with_the_dying():
    found = []
    for name, placement in PLACEMENTS.items():
        drawn_cases = cases.cases_with_all_pairs(placement["axes"], placement["seed"])
        drawn_cases = [dict(case, placement=name, optimizer="AdamW", name=f"{name}_{i}")
                       for i, case in enumerate(drawn_cases)]
        like = next(case for case in drawn_cases if case["accumulation"] == 2)
        others = OTHER_OPTIMIZERS if name == "stage3_nvme" else ()
        found += drawn_cases + [dict(like, optimizer=other, name=f"{name}_{other.lower()}") for other in others]
        if name == "stage3_nvme_parameters":
            found += [dict(like, **PERSISTENT, reuse=setting, prefetch=setting, name=f"{name}_persistent_{setting}")
                      for setting in ("none", "default")]
        if name == "stage3_nvme":
            found += [dict(like, **FEW_BUFFERS, bucket=bucket, name=f"{name}_few_buffers_{bucket}")
                      for bucket in ("small", "large")]
    return found


def largest_shard(case):
    return max(-(-elements // case["ranks"]) for elements in cases.elements_of(case["model"]))


def optimizer_section(case):
    tiles = 1 + case["pipeline_read"] + case["pipeline_write"]
    section = dict(device="nvme", nvme_path=FOLDER, pin_memory=case["pin_memory"],
                   pipeline_read=case["pipeline_read"], pipeline_write=case["pipeline_write"],
                   buffer_count=case["buffer_count"] if "buffer_count" in case else
                   STATES * tiles + case["spare_buffers"])
    if "fast_init" in case:
        section["fast_init"] = case["fast_init"]
    return section


def parameter_section(case):
    if case.get("parameters_on"):
        return dict(device="cpu", pin_memory=case["parameters_on"] == "pinned")
    return dict(device="nvme", nvme_path=FOLDER, buffer_count=case["parameter_buffers"],
                buffer_size=buffer_size_of(case), max_in_cpu=case["max_in_cpu"])


def buffer_size_of(case):
    """Of a parameter; with fast_init the whole sub-group goes through one."""
    if isinstance(case["buffer_size"], int):
        return case["buffer_size"]
    whole = sum(cases.elements_of(case["model"]))
    if case["buffer_size"] == "large":
        return whole
    return whole // case["ranks"] + case["threads"] * 1024 if case.get("fast_init") else largest_shard(case)


def config_of(case):
    """What DeepSpeed is given, whether or not there is a drive."""
    if not is_on_drive(case):
        return cases.config_of(case)
    like = dict(case, placement="stage3")
    if case.get("optimizer_on", "device") != "device":
        like["pin_memory"] = case["optimizer_on"] == "pinned"
    if isinstance(case["sub_group_size"], int):
        like["sub_group_size"] = "whole"
    config = cases.config_of(like)
    zero = config["zero_optimization"]
    if isinstance(case["sub_group_size"], int):
        zero["sub_group_size"] = case["sub_group_size"]
    if "pipeline_read" in case:
        zero["offload_optimizer"] = optimizer_section(case)
    if case.get("parameters_on") != "device":
        zero["offload_param"] = parameter_section(case)
    config["aio"] = dict(block_size=case["block"], intra_op_parallelism=case["threads"])
    return config

