"""Times torch.distributed's collectives (NCCL, or gloo without a GPU), alone or in groups that send at the same time.

usage: torchrun --standalone --nproc_per_node N messages_by_torch.py LARGEST_BYTES GROUPS

Sizes are those of nccl-tests: the bytes of the whole tensor, from 1 KiB on, each 8 times the one before; GB/s are bus
bandwidths, 2 (n - 1) / n of the bytes for a sum and (n - 1) / n for a gather. Times are of the slowest rank. Rank 0
prints a line of JSON for each kind and size.
"""
import json
import os
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "calibration"))
from collectives import bus_factor  # noqa: E402 (its folder is known only now)

SMALLEST, FACTOR, LARGE = 1 << 10, 8, 1 << 26
CALLS, LARGE_CALLS, WARM_UP = 20, 5, 3


def sizes(largest):
    size, found = SMALLEST, []
    while size < largest:
        found.append(size)
        size *= FACTOR
    return [*found, largest]


class Messages:
    """One rank's."""

    def __init__(self, torch, groups):
        self.torch, self.distributed = torch, torch.distributed
        self.on_gpu = torch.cuda.is_available()
        if self.on_gpu:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        self.device = "cuda" if self.on_gpu else "cpu"
        self.distributed.init_process_group("nccl" if self.on_gpu else "gloo")
        self.rank = self.distributed.get_rank()
        self.ranks = self.distributed.get_world_size() // groups
        parts = [self.distributed.new_group(list(range(i * self.ranks, (i + 1) * self.ranks))) for i in range(groups)]
        self.group = parts[self.rank // self.ranks]

    def synchronize(self):
        if self.on_gpu:
            self.torch.cuda.synchronize()

    def call(self, kind, whole, part):
        if kind == "all_reduce":
            self.distributed.all_reduce(whole, group=self.group)
        else:
            self.distributed.all_gather_into_tensor(whole, part, group=self.group)

    def seconds(self, kind, size):
        """Of one call, the mean of several; the slowest rank's of all groups."""
        whole = self.torch.zeros(max(1, size // 4 // self.ranks) * self.ranks, device=self.device)
        part = whole[:whole.numel() // self.ranks].clone()
        for _ in range(WARM_UP):
            self.call(kind, whole, part)
        calls = LARGE_CALLS if size >= LARGE else CALLS
        self.distributed.barrier()
        self.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            self.call(kind, whole, part)
        self.synchronize()
        mean = self.torch.tensor([(time.perf_counter() - begin) / calls], dtype=self.torch.float64, device=self.device)
        self.distributed.all_reduce(mean, op=self.distributed.ReduceOp.MAX)
        return mean.item()


def main():
    import torch
    largest, groups = int(sys.argv[1]), int(sys.argv[2])
    messages = Messages(torch, groups)
    for kind in ("all_reduce", "all_gather"):
        for size in sizes(largest):
            seconds = messages.seconds(kind, size)
            speed = 1e-9 * size * bus_factor(kind, messages.ranks) / seconds
            if messages.rank == 0:
                print(json.dumps({"kind": kind, "bytes": size, "us": 1e6 * seconds, "bus_gb_per_s": speed}), flush=True)
    messages.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
