"""What eager PyTorch's own host code takes in a step without DeepSpeed: an operator, and the call of a module.

Models have so little to compute that host code is all they take, and differ in one term where they can: layers change
operators and modules, attention by single operators has more operators and the same modules.
"""
import collections
import contextlib
import math
import statistics
import time

import fitting
from kernels import DIRECTIONS
from steps import HEADS, HIDDEN, SEQUENCE, VOCABULARY, make_model

ONCE = "micro_step"  # the model's own Python, the loss, a graph's begin and end: forward's and backward's together
EVENTS = ("operator_forward", "operator_backward", "module_call", ONCE)
TERMS = {"forward": ("operator_forward", "module_call", "forward_once"),
         "backward": ("operator_backward", "backward_once")}
ONCE_TERMS = ("forward_once", "backward_once")
TRIES = 5  # of a model in a round, after one that is not measured

Model = collections.namedtuple("Model", "family layers attention")
MODELS = tuple(Model(family, layers, attention) for family in ("gpt2", "llama") for attention in ("sdpa", "eager")
               for layers in (2, 6))


def make_llama(transformers, layers, attention):
    config = transformers.LlamaConfig(
        num_hidden_layers=layers, hidden_size=HIDDEN, intermediate_size=2 * HIDDEN, num_attention_heads=HEADS,
        num_key_value_heads=HEADS, vocab_size=VOCABULARY, max_position_embeddings=SEQUENCE, use_cache=False,
        bos_token_id=0, eos_token_id=0, attn_implementation=attention)
    return transformers.LlamaForCausalLM(config).train()


def make(transformers, setting):
    of_family = {"gpt2": make_model, "llama": make_llama}[setting.family]
    return of_family(transformers, setting.layers, setting.attention)


def count_operators(run):
    """(ATen calls in run(), views too, and what it returns)

    A mode gets a `detach` for each output that autograd saves or unpacks, which without a mode calls nothing: none is
    counted.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counter(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, operator, classes, arguments=(), options=None):
            self.count += operator.overloadpacket is not torch.ops.aten.detach
            return operator(*arguments, **(options or {}))

    with Counter() as counter:
        result = run()
    return counter.count, result


def count_module_calls(model, run):
    """(calls of the model's modules in run(), its own too, and what run() returns)"""
    calls = []
    hooks = [module.register_forward_pre_hook(lambda module, _: calls.append(module)) for module in model.modules()]
    try:
        result = run()
    finally:
        for hook in hooks:
            hook.remove()
    return len(calls), result


class PlainStep:
    """Forward and backward of one model in fp32, and how often they do what is fitted."""

    def __init__(self, model, tokens, synchronize):
        self.model, self.tokens, self.synchronize = model, tokens, synchronize
        # On a CPU both directions run in this thread, whose own time other work does not add to; but being interrupted
        # costs caches, too. A GPU's steps have backward in another thread, and are handed over to it now and then late.
        self.clock, self.typical = ((time.thread_time, min) if tokens.device.type == "cpu" else
                                    (time.perf_counter, statistics.median))
        self.run()  # whatever a first step does besides
        modules, _ = count_module_calls(model, self.forward)
        forward, loss = count_operators(self.forward)
        backward, _ = count_operators(loss.backward)
        backward += self.gradients()  # each first one is detached from what it was made of, mode or none
        self.forget_gradients()
        self.counts = dict(operator_forward=forward, operator_backward=backward, module_call=modules)

    def forward(self):
        return self.model(self.tokens, labels=self.tokens).loss

    def gradients(self):
        return sum(parameter.grad is not None for parameter in self.model.parameters())

    def forget_gradients(self):
        for parameter in self.model.parameters():
            parameter.grad = None

    def run(self):
        """(seconds of forward, of backward)"""
        self.synchronize()
        begin = self.clock()
        loss = self.forward()
        self.synchronize()
        middle = self.clock()
        loss.backward()
        self.synchronize()
        end = self.clock()
        self.forget_gradients()
        return middle - begin, end - middle

    def seconds(self):
        """What each direction takes: the least on a CPU, the median on other devices."""
        times = [self.run() for _ in range(TRIES + 1)][1:]
        return [self.typical(of_direction) for of_direction in zip(*times)]


@contextlib.contextmanager
def replaced(functional, linear):
    """torch.nn.functional with this `linear`."""
    before, functional.linear = functional.linear, linear
    try:
        yield
    finally:
        functional.linear = before


class EagerTimer:
    """Plain steps of all models on this rank's device, whose ranks do not wait for each other.

    To be made before any engine of stage 3, which replaces torch's `linear` by its own, slower one for all models.
    """

    def __init__(self, torch, transformers, device, synchronize):
        self.functional, self.linear = torch.nn.functional, torch.nn.functional.linear
        tokens = torch.randint(0, VOCABULARY, (1, SEQUENCE), device=device)
        self.steps = {setting: PlainStep(make(transformers, setting).to(device), tokens, synchronize)
                      for setting in MODELS}
        self.counts = {setting: step.counts for setting, step in self.steps.items()}
        self.order = collections.deque(MODELS)

    def round(self):
        """{(family, layers, attention, direction): this rank's seconds}, begun with another model each round,
        since a scheduler is kinder to a process that has just waited."""
        self.order.rotate(1)
        with replaced(self.functional, self.linear):
            return {(*setting, direction): seconds for setting in self.order
                    for direction, seconds in zip(DIRECTIONS, self.steps[setting].seconds())}


def samples(rounds, counts, direction):
    """[(counts, seconds)] of the models' forward or backward."""
    once = f"{direction}_once"
    return [({**of_model, once: 1}, statistics.median(part["eager"][(*setting, direction)] for part in rounds))
            for setting, of_model in counts.items()]


def numbers(rounds, counts):
    """Seconds of each of EVENTS, and of a forward and a backward once. counts: by model; without any: none."""
    found = {}
    if counts:
        for direction, terms in TERMS.items():
            found.update(fitting.fit(samples(rounds, counts, direction), terms))
        found[ONCE] = sum(found[term] for term in ONCE_TERMS)
    return found


def standard_errors(rounds, counts, found):
    errors = {}
    if counts:
        for direction, terms in TERMS.items():
            errors.update(fitting.errors_of(found, samples(rounds, counts, direction), terms))
        errors[ONCE] = math.hypot(*(errors[term] for term in ONCE_TERMS))
    return errors
