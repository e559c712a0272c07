"""Notes what a program does with tensors that torch only pretends to have (FakeTensorMode).

A Recorder sees every operator before FakeTensorMode does. It knows each storage that is alive, where it would be
(device, pinned or pageable host memory) and what for (purposes.py), and notes copies between host and device, reads of
device scalars, what the host computes, and the requests for pinned memory.

What operators on real tensors do inside is booked here, as torch's Copy.cu, TensorConversions.cpp and TensorCompare.cpp
(aten/src/ATen/native) have it: a copy between host and device that also converts goes through a temporary, on the host
if it blocks and on the device if not, and sends the type that the other side has or makes of it; a non-blocking
.to("cpu") of a device tensor makes a pinned one; and isinf() compares a copy without signs.
"""
import collections
import contextlib

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from . import purposes
from .pinned_requests import PinnedRequests

DEVICE, PINNED, HOST = "device", "pinned", "host"
# By mlock() and of the exact size: CUDA does not know, so a copy from or to it is like one of pageable memory.
LOCKED = "locked"
ARROWS = {True: "D2H", False: "H2D"}
# What is no pass over the elements: views, and memory that is handed out.
NO_PASSES = {"_unsafe_view", "alias", "as_strided", "detach", "device", "empty", "empty_like", "empty_strided",
             "expand", "lift_fresh", "narrow", "new_empty", "new_empty_strided", "permute", "reshape", "select", "set_",
             "slice", "split", "squeeze", "t", "transpose", "unsqueeze", "view"}


class Live:
    """A storage that somebody still refers to."""

    def __init__(self, storage, tier, purpose, request=None):
        self.reference, self.bytes = StorageWeakRef(storage), storage.nbytes()
        self.tier, self.purpose, self.request = tier, purpose, request


class Recorder(TorchDispatchMode):
    def __init__(self, locks=False):
        """`locks`: locked memory is one of the tiers, else there must be none."""
        super().__init__()
        self.pins, self.locks = PinnedRequests(), PinnedRequests()
        self.host_tiers = (PINNED, HOST, LOCKED) if locks else (PINNED, HOST)
        self.phase = ""
        self.notes = collections.defaultdict(lambda: dict(copies={}, waits=collections.Counter(),
                                                          reads=collections.Counter(), host_passes={},
                                                          drive={}))
        self.host_peak = {}
        self.unnamed = collections.Counter()  # sites that no rule names, for who adds rules
        self._live = {}
        self._purpose = None
        self._request = None  # tier and purpose of the request that is being answered
        self._streams = ["default"]

    # What the accelerator tells.

    @contextlib.contextmanager
    def on_stream(self, name):
        self._streams.append(name)
        try:
            yield
        finally:
            self._streams.pop()

    @contextlib.contextmanager
    def making(self, purpose):
        """What is made inside is for this, whoever makes it."""
        before, self._purpose = self._purpose, purpose
        try:
            yield
        finally:
            self._purpose = before

    def pinning(self):
        """The next host tensor is pinned."""
        return self._answering(PINNED)

    def locking(self):
        """The next host tensor is locked."""
        return self._answering(LOCKED)

    @contextlib.contextmanager
    def _answering(self, tier):
        self._request = tier, self._name(purposes.ALLOCATIONS)
        try:
            yield
        finally:
            self._request = None

    def is_pinned(self, tensor):
        return self._tier(tensor) == PINNED

    def is_locked(self, tensor):
        return self._tier(tensor) == LOCKED

    def wait(self):
        name = purposes.name_by(purposes.WAITS)
        if name == purposes.OTHER:
            self._note_unnamed("wait")
        self.notes[self.phase]["waits"][name] += 1

    def host_pass(self, what, elements):
        passes = self.notes[self.phase]["host_passes"].setdefault(what, [0, 0])
        passes[0] += 1
        passes[1] += elements

    def transfer(self, purpose, direction, size):
        """Between memory and the drive; direction is "read" or "write"."""
        sums = self.notes[self.phase]["drive"].setdefault((purpose, direction), [0, 0])
        sums[0] += 1
        sums[1] += size

    def copy(self, to_host, tier, blocking, size):
        key = (self._streams[-1], purposes.name_by(purposes.COPIES), ARROWS[to_host], tier,
               "blocking" if blocking else "async")
        if key[1] == purposes.OTHER:
            self._note_unnamed("copy")
        copies = self.notes[self.phase]["copies"].setdefault(key, [0, 0])
        copies[0] += 1
        copies[1] += size

    # What is asked afterwards.

    def begin_peak(self):
        self.host_peak = dict.fromkeys(self.host_tiers, 0)
        self._note_peak(0)

    def bytes_by_tier(self):
        sums = dict.fromkeys((*self.host_tiers, DEVICE), 0)
        for live in self._alive():
            sums[live.tier] += live.bytes
        return sums

    def bytes_by_purpose(self):
        sums = collections.defaultdict(collections.Counter)
        for live in self._alive():
            sums[live.tier][live.purpose] += live.bytes
        return {tier: dict(sorted((name, size) for name, size in sums[tier].items() if size))
                for tier in (DEVICE, *self.host_tiers)}

    # What is seen.

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name == "_local_scalar_dense":
            return self._read(args[0])
        if name == "is_pinned":
            return self.is_pinned(args[0])
        if name == "record_stream":
            return None
        out = func(*args, **kwargs)
        between = (name in ("copy_", "_to_copy") and isinstance(args[1 if name == "copy_" else 0], FakeTensor)
                   and self._between(name, out, args, kwargs))
        pinned = bool(between) and name == "_to_copy" and between["to_host"] and not between["blocking"]
        with self.pinning() if pinned else contextlib.nullcontext():
            for each in out if isinstance(out, (list, tuple)) else [out]:
                self._see(each)
        if between:
            self._note_peak(between["temporary"])
        else:
            inside = args[0].nbytes if name == "isinf" and args[0].device.type == "cpu" else 0
            self._note_peak(inside)
        if between:
            tier = HOST if between["temporary"] else self._tier(between["on_host"])
            self.copy(between["to_host"], tier, between["blocking"], between["bytes"])
        self._note_host_pass(name, out, args, bool(between))
        return out

    def _read(self, tensor):
        """What the host would wait for; all values are finite, and no flag is set."""
        if self._tier(tensor) == DEVICE:
            name = purposes.name_by(purposes.READS)
            if name == purposes.OTHER:
                self._note_unnamed("read")
            self.notes[self.phase]["reads"][name] += 1
        if tensor.dtype == torch.bool:
            return False
        return 0.25 if tensor.dtype.is_floating_point else 0

    def _between(self, name, out, args, kwargs):
        """What a copy between host and device takes, None if it stays on one side."""
        to, source = (args[0], args[1]) if name == "copy_" else (out, args[0])
        if to.device.type == source.device.type or "meta" in (to.device.type, source.device.type):
            return None
        non_blocking = args[2] if name == "copy_" and len(args) > 2 else kwargs.get("non_blocking", False)
        to_host, blocking = to.device.type == "cpu", not non_blocking
        converted_first = to_host != blocking  # at the source: D2H by the device, H2D by the host
        sent = to.dtype if converted_first else source.dtype
        converts = to.dtype != source.dtype
        return dict(to_host=to_host, blocking=blocking, on_host=to if to_host else source,
                    bytes=to.numel() * sent.itemsize,
                    temporary=to.numel() * sent.itemsize if converts and blocking else 0)

    def _note_host_pass(self, name, out, args, between):
        if name in NO_PASSES:
            return
        tensors = [each for each in (*args, *(out if isinstance(out, (list, tuple)) else [out]))
                   if isinstance(each, FakeTensor)]
        elements = max((each.numel() for each in tensors if each.device.type == "cpu"), default=0)
        converts = between and len({each.dtype for each in tensors}) > 1 and name in ("copy_", "_to_copy")
        if elements > 1 and (not between or converts):
            what = purposes.name_by(purposes.HOST_PASSES, otherwise=name.rstrip("_"))
            if what is not None:
                self.host_pass(what, elements)

    def _name(self, rules):
        if self._purpose:
            return self._purpose
        name = purposes.name_by(rules)
        if name == purposes.OTHER:
            self._note_unnamed("allocation")
        return name

    def _note_unnamed(self, what):
        self.unnamed[(what, *[site[:2] for site in purposes.sites()][:2])] += 1

    def _tier(self, tensor):
        if tensor.device.type != "cpu":
            return DEVICE
        live = self._live.get(tensor.untyped_storage()._cdata) if isinstance(tensor, FakeTensor) else None
        return live.tier if live and not live.reference.expired() else HOST

    def _see(self, tensor):
        if not isinstance(tensor, FakeTensor) or tensor.device.type == "meta":
            return
        storage = tensor.untyped_storage()
        live = self._live.get(storage._cdata)
        if live and not live.reference.expired():
            return
        if live:
            self._forget(storage._cdata)
        if tensor.device.type != "cpu":
            self._live[storage._cdata] = Live(storage, DEVICE, self._name(purposes.ALLOCATIONS))
        elif self._request:
            self._sweep()  # what was freed is in the cache by now
            tier, purpose = self._request
            request = self._requests_of(tier).add(purpose, storage.nbytes())
            self._live[storage._cdata] = Live(storage, tier, purpose, request)
        else:
            purpose = self._name(purposes.ALLOCATIONS)
            if purpose != purposes.UNTOUCHED:
                self._live[storage._cdata] = Live(storage, HOST, purpose)

    def _forget(self, key):
        live = self._live.pop(key)
        if live.request is not None:
            self._requests_of(live.tier).free(live.request)

    def _requests_of(self, tier):
        return self.pins if tier == PINNED else self.locks

    def _sweep(self):
        for key in [key for key, live in self._live.items() if live.reference.expired()]:
            self._forget(key)

    def _alive(self):
        self._sweep()
        return self._live.values()

    def _note_peak(self, temporary):
        sums = self.bytes_by_tier()
        sums[HOST] += temporary
        if sum(sums[tier] for tier in self.host_tiers) > sum(self.host_peak.values()):
            self.host_peak = {tier: sums[tier] for tier in self.host_tiers}
