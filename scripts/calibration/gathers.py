"""How many tensors DeepSpeed's coordinator of stage 3 gathers.

It asks a tensor for `all_gather_coalesced`, and hands it all that are gathered together, whatever comes of that: a
call of the library, several, or with one rank none. Persistent tensors, which are gathered after the update, go
another way.
"""
GATHERED = "gathered_tensor"  # the event


class GatherCounter:
    """The tensors of a model that are gathered for its modules while this is active."""

    def __init__(self, parameters):
        self.parameters = [tensor for tensor in parameters if hasattr(tensor, "all_gather_coalesced")]
        self.originals, self.tensors = [], 0

    def __enter__(self):
        self.originals = [tensor.all_gather_coalesced for tensor in self.parameters]
        for tensor, original in zip(self.parameters, self.originals):
            tensor.all_gather_coalesced = self.counting(original)
        return self

    def counting(self, original):
        def gather(tensors, *arguments, **options):
            tensors = list(tensors)
            self.tensors += len(tensors)
            return original(tensors, *arguments, **options)
        return gather

    def __exit__(self, *_):
        for tensor, original in zip(self.parameters, self.originals):
            tensor.all_gather_coalesced = original
