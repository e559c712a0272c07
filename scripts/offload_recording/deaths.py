"""Configurations of which DeepSpeed may die when it swaps to a drive, as too little is asked for. Needs no torch.

All are like LIKE but in what is `asked`. What comes of it, {} or how it dies, is in the fixture beside the rows.
"""
import itertools

from . import cases, drive_cases

LIKE = dict(model="wide_blocks", ranks=2, rank="first", accumulation=1, dtype="bf16", overlap_comm=False,
            pin_memory=True, bucket="large", groups=1, gradient_clipping=0.0, sub_group_size="whole", prefetch="none",
            persistence=0, contiguous_gradients=True, block=drive_cases.MIB, threads=1, pipeline_read=False,
            pipeline_write=False, buffer_count=12, parameters_on="device", optimizer="AdamW")
PARAMETERS_ON_DRIVE = dict(placement="stage3_nvme_both", parameters_on=None, parameter_buffers=7,
                           buffer_size="fitting", max_in_cpu=0, fast_init=False)
# How many sub-groups of LIKE are then large enough to be swapped.
SUB_GROUP_SIZES = {1: "whole", 2: 2_500_000, 3: 1_500_000, 4: 600_000}
PIPELINES = dict(plain=(False, False), read=(True, False), write=(False, True), both=(True, True))


def case_of(name, asked, **changes):
    return dict(LIKE, **dict(dict(placement="stage3_nvme"), **{**changes, **asked}), name=name, asked=asked)


def of_optimizer_buffers():
    """Buffers of the optimizer's swapper, with one to four sub-groups to swap."""
    counts = [("AdamW", number, pipeline, count) for number in SUB_GROUP_SIZES for pipeline in PIPELINES
              for count in ((2, 3, 4) if pipeline == "plain" else (3, 4, 7, 8, 11, 12))]
    counts += [(optimizer, 4, pipeline, count) for optimizer in ("Lion", "Adagrad")
               for pipeline, count in itertools.chain(zip(("plain", "read", "write", "both"), (2, 5, 5, 8)),
                                                      zip(("plain", "read", "write", "both"), (3, 6, 6, 9)))]
    for optimizer, number, pipeline, count in counts:
        read, write = PIPELINES[pipeline]
        asked = dict(optimizer=optimizer, sub_group_size=SUB_GROUP_SIZES[number], pipeline_read=read,
                     pipeline_write=write, buffer_count=count)
        yield dict(case_of(f"{optimizer.lower()}_{pipeline}_{number}_sub_groups_{count}_buffers", asked),
                   sub_groups=number)


def of_parameter_buffers():
    """Buffers of the parameters' swapper: too few, too small, and what goes through one at the start."""
    for reuse, prefetch, count in itertools.product(("none", "default"), ("none", "default"), range(1, 7)):
        asked = dict(reuse=reuse, prefetch=prefetch, parameter_buffers=count)
        yield case_of(f"{count}_parameter_buffers_reuse_{reuse}_prefetch_{prefetch}", asked, **PARAMETERS_ON_DRIVE)
    shard = drive_cases.largest_shard(LIKE)
    whole = drive_cases.buffer_size_of(dict(LIKE, buffer_size="fitting", fast_init=True))
    for name, asked in [("shard_fits", dict(buffer_size=shard)), ("shard_too_large", dict(buffer_size=shard - 1)),
                        ("fast_init_fits", dict(fast_init=True, buffer_size=whole)),
                        ("fast_init_too_small", dict(fast_init=True, buffer_size=shard)),
                        ("fast_init_two_threads", dict(fast_init=True, buffer_size=whole, threads=2)),
                        ("fast_init_four_threads", dict(fast_init=True, buffer_size=2 * whole, threads=4))]:
        yield case_of(name, asked, **PARAMETERS_ON_DRIVE)


def drawn():
    """All in the order of the fixture, with those at the end that pairs of values gave."""
    dying = [dict(case, asked={key: case[key] for key in case if key not in ("name", "optimizer")})
             for case in drive_cases.with_the_dying() if case["name"] in drive_cases.DYING]
    return [*of_optimizer_buffers(), *of_parameter_buffers(), *dying]


def line_of(case, files, dies):
    """What is in the fixture; `files` are those that were written by then."""
    if "sub_groups" in case:
        assert files["master"][0] == case["sub_groups"], files
    return dict(name=case["name"], asked=case["asked"], **what_of(case), dies=dies)


def what_of(case):
    """The same as in a row, by which the case can be built anew."""
    return dict(model=case["model"], ranks=case["ranks"], rank=cases.rank_of(case),
                parameter_groups=cases.groups_of(case), ds_config=drive_cases.config_of(case))
