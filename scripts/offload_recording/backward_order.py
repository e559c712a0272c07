"""The order in which autograd calls the hooks of a model's gradients and those that ZeRO-3 puts around its modules."""
import torch

BEFORE, AFTER, GRADIENT = "before", "after", "gradient"


def noting(events, event):
    """The identity, whose backward notes an event."""

    class Note(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensor):
            return tensor.detach()

        @staticmethod
        def backward(ctx, gradient):
            events.append(event)
            return gradient

    return Note.apply


def of(make_model, tokens):
    """Pairs of what happens and to which module or parameter, in a real backward on the CPU."""
    model, events = make_model(), []
    for name, module in model.named_modules():
        # DeepSpeed passes a module's inputs and outputs through functions of its own in these hooks.
        module.register_forward_pre_hook(lambda _, given, name=name: tuple(
            noting(events, (AFTER, name))(each) if each.requires_grad else each for each in given))
        module.register_forward_hook(lambda _, __, made, name=name: noting(events, (BEFORE, name))(made))
    for name, parameter in model.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda _, name=name: events.append((GRADIENT, name)))
    model(torch.zeros(1, tokens, dtype=torch.long)).mean().backward()
    return events
