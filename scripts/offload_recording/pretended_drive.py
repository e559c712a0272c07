"""A drive that has nothing but the lengths of its files, in the place of DeepSpeed's aio operator.

It refuses what the operator refuses: to read beyond the end of a file, and lengths that its threads cannot share
equally. To wait for nothing, and what would go through a bounce buffer, is an error here as nothing asks for it.
"""
import collections
import pathlib

import torch

REFUSED = -1


def purpose_of(path):
    """What DeepSpeed keeps in a file, from the name that it gives it."""
    name = pathlib.Path(path).name
    for part, purpose in (("_gradient_", "gradient"), ("_param.", "parameter"), ("-", "state")):
        if part in name:
            return purpose
    return "master"


class Drive:
    def __init__(self, recorder):
        self.recorder, self.lengths, self.locked = recorder, {}, {}

    def files(self):
        """Number and bytes of the files by what is in them."""
        found = collections.defaultdict(lambda: [0, 0])
        for path, length in self.lengths.items():
            found[purpose_of(path)][0] += 1
            found[purpose_of(path)][1] += length
        return dict(sorted(found.items()))

    def load(self, verbose=True):
        """As of the operator's builder, and so is the next."""
        return self

    def aio_handle(self, *, intra_op_parallelism, **_):
        return Handle(self, intra_op_parallelism)


class Handle:
    """Operations that were submitted and not yet waited for, in one direction or both."""

    def __init__(self, drive, threads):
        self.drive, self.threads, self.pending = drive, threads, 0

    def async_pread(self, buffer, path, offset):
        if offset + buffer.nbytes > self.drive.lengths.get(str(path), -1):
            return REFUSED
        return self._submit("read", buffer, path)

    def async_pwrite(self, buffer, path, offset):
        lengths, end = self.drive.lengths, offset + buffer.nbytes
        status = self._submit("write", buffer, path)
        if status != REFUSED:
            lengths[str(path)] = max(lengths.get(str(path), 0), end)  # nothing is cut off
        return status

    def wait(self):
        assert self.pending > 0, "there is nothing to wait for"
        self.drive.recorder.wait()
        done, self.pending = self.pending, 0
        return done

    def new_cpu_locked_tensor(self, elements, example):
        with self.drive.recorder.locking():
            made = torch.empty(elements, dtype=example.dtype, device="cpu")
        self.drive.locked[id(made)] = made  # the operator has it, too, until it is freed
        return made

    def free_cpu_locked_tensor(self, tensor):
        return self.drive.locked.pop(id(tensor), None) is not None

    def is_pinned(self, tensor):
        return self.drive.recorder.is_locked(tensor) or self.drive.recorder.is_pinned(tensor)

    def _submit(self, direction, buffer, path):
        assert self.is_pinned(buffer), f"the operator would make a bounce buffer of {buffer.nbytes} bytes"
        if buffer.nbytes % self.threads != 0:
            return REFUSED
        self.drive.recorder.transfer(purpose_of(path), direction, buffer.nbytes)
        self.pending += 1
        return 0


def replace_operator(drive):
    """DeepSpeed's swappers get this drive."""
    import deepspeed.runtime.swap_tensor.partitioned_optimizer_swapper as plain
    import deepspeed.runtime.swap_tensor.partitioned_param_swapper as parameters
    import deepspeed.runtime.swap_tensor.pipelined_optimizer_swapper as pipelined

    for module in (plain, pipelined, parameters):
        assert hasattr(module, "AsyncIOBuilder")
        module.AsyncIOBuilder = lambda: drive
