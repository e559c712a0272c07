"""How often DeepSpeed's stage 3 stops at a module: before and after its forward, before and after its backward.

Every module that is called has hooks, containers and those without parameters too, but for what is inside of a leaf.
"""
HOOK = "sub_module_hook"  # the event
HOOKS = ("pre_sub_module_forward_function", "post_sub_module_forward_function", "pre_sub_module_backward_function",
         "post_sub_module_backward_function")


class HookCounter:
    """The calls of each of HOOKS while this is active. optimizer: the engine's; of a lower stage it has none."""

    def __init__(self, optimizer):
        self.offload = getattr(optimizer, "parameter_offload", None)
        self.calls = dict.fromkeys(HOOKS, 0)

    def __enter__(self):
        if self.offload is not None:
            for name in HOOKS:
                setattr(self.offload, name, self.counting(name, getattr(self.offload, name)))
        return self

    def counting(self, name, original):
        def hook(module):
            self.calls[name] += 1
            return original(module)
        return hook

    def __exit__(self, *_):
        if self.offload is not None:
            for name in HOOKS:
                delattr(self.offload, name)

    @property
    def total(self):
        return sum(self.calls.values())
