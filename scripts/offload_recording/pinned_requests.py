"""Pinned memory as torch's caching host allocator takes it from the system. Needs no torch."""
import collections


def rounded(size):
    """The power of two that torch's caching allocator of pinned memory makes of a request."""
    return 1 << (size - 1).bit_length() if size > 0 else 0


class PinnedRequests:
    """Requests for pinned memory in their order, and what a cache that gives nothing back takes for them."""

    def __init__(self):
        self.requests = []  # [purpose, bytes], and after which request it was freed
        self.taken = 0
        self._cache = collections.Counter()

    def add(self, purpose, size):
        self.requests.append([purpose, size])
        block = rounded(size)
        if self._cache[block]:
            self._cache[block] -= 1
        else:
            self.taken += block
        return len(self.requests) - 1

    def free(self, request):
        self.requests[request].append(len(self.requests))
        self._cache[rounded(self.requests[request][1])] += 1

    def summary(self):
        sizes = [request[1] for request in self.requests]
        return dict(asked=sum(sizes), rounded=sum(map(rounded, sizes)), taken=self.taken)
