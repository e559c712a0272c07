#!/usr/bin/env python3
"""Writes tests/data/optimizer_fixture.json: a few updates of a small tensor by every optimizer.

    pip install torch && python3 scripts/make_optimizer_fixture.py tests/data/optimizer_fixture.json

Adam, SGD and Adagrad are torch.optim's, in fp64. DeepSpeed's Lion and Lamb run on GPUs only: here
they are their published rules (arXiv 2302.06675, algorithm 2; 1904.00962, algorithm 2) in Python's
floats, with DeepSpeed's bounds of Lamb's ratio. Inputs are rounded to fp32, so that the numbers are
exact as far as fp32 can tell.
"""
import json
import math
import random
import struct
import sys

import torch

STEPS, LENGTH, SEED = 4, 19, 20250411

CASES = [
    dict(type="Adam", params=dict(lr=0.01, adam_w_mode=False, weight_decay=0.1)),
    dict(type="AdamW", params=dict(lr=0.01, betas=[0.8, 0.95], eps=1e-3, weight_decay=0.1)),
    dict(type="AdamW", params=dict(lr=0.02, torch_adam=True)),
    dict(type="SGD", params=dict(lr=0.1)),
    dict(type="SGD", params=dict(lr=0.1, weight_decay=0.2)),
    dict(type="SGD", params=dict(lr=0.1, momentum=0.9)),
    dict(type="SGD", params=dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.2)),
    dict(type="SGD", params=dict(lr=0.1, momentum=0.9, nesterov=True)),
    dict(type="SGD", params=dict(lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.2)),
    dict(type="Adagrad", params=dict()),
    dict(type="adagrad", params=dict(lr=0.1, lr_decay=0.5, weight_decay=0.2, eps=1e-3,
                                     initial_accumulator_value=0.3)),
    dict(type="Lion", params=dict(lr=0.01)),
    dict(type="lion", params=dict(lr=0.02, betas=[0.7, 0.9], weight_decay=0.1)),
    dict(type="Lamb", params=dict(lr=0.01)),
    dict(type="LAMB", params=dict(lr=0.02, betas=[0.8, 0.95], eps=1e-3, weight_decay=0.1)),
    dict(type="lamb", params=dict(lr=0.5, eps_inside_sqrt=True, bias_correction=False)),
    dict(type="lamb", params=dict(lr=0.02, max_coeff=0.2)),
    dict(type="lamb", params=dict(lr=0.02, min_coeff=2)),
]


def to_fp32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def by_torch(name, params, values, gradients):
    params = {key: value for key, value in params.items() if key not in ("torch_adam", "adam_w_mode")}
    tensor = torch.nn.Parameter(torch.tensor(values, dtype=torch.float64))
    optimizer = getattr(torch.optim, name)([tensor], **params)
    history = []
    for gradient in gradients:
        tensor.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
        history.append(tensor.detach().tolist())
    return history


def by_lion(params, values, gradients):
    lr, (beta1, beta2) = params["lr"], params.get("betas", [0.9, 0.999])
    decay = params.get("weight_decay", 0)
    momentum, history = [0.0] * len(values), []
    for gradient in gradients:
        for i, g in enumerate(gradient):
            direction = beta1 * momentum[i] + (1 - beta1) * g
            values[i] -= lr * (math.copysign(1, direction) + decay * values[i])
            momentum[i] = beta2 * momentum[i] + (1 - beta2) * g
        history.append(list(values))
    return history


def norm(values):
    return math.sqrt(sum(value * value for value in values))


def by_lamb(params, values, gradients):
    lr, (beta1, beta2) = params["lr"], params.get("betas", [0.9, 0.999])
    epsilon, decay = params.get("eps", 1e-8), params.get("weight_decay", 0)
    low, high = params.get("min_coeff", 0.01), params.get("max_coeff", 10)
    first, second, history = [0.0] * len(values), [0.0] * len(values), []
    for step, gradient in enumerate(gradients, 1):
        corrects = params.get("bias_correction", True)
        bias1, bias2 = (1 - beta1 ** step, 1 - beta2 ** step) if corrects else (1, 1)
        update = []
        for i, g in enumerate(gradient):
            first[i] = beta1 * first[i] + (1 - beta1) * g
            second[i] = beta2 * second[i] + (1 - beta2) * g * g
            square = second[i] / bias2
            inside = params.get("eps_inside_sqrt", False)
            root = math.sqrt(square + epsilon) if inside else math.sqrt(square) + epsilon
            update.append(first[i] / bias1 / root + decay * values[i])
        ratio = min(max(norm(values) / norm(update), low), high)
        values = [value - lr * ratio * u for value, u in zip(values, update)]
        history.append(values)
    return history


def history_of(case, values, gradients):
    name = case["type"].lower()
    if name == "lion":
        return by_lion(case["params"], list(values), gradients)
    if name == "lamb":
        return by_lamb(case["params"], list(values), gradients)
    decoupled = name == "adamw" or (name == "adam" and case["params"].get("adam_w_mode", True))
    torch_name = {"adam": "AdamW" if decoupled else "Adam", "adamw": "AdamW", "sgd": "SGD",
                  "adagrad": "Adagrad"}[name]
    return by_torch(torch_name, case["params"], values, gradients)


def main(path):
    generator = random.Random(SEED)
    numbers = lambda scale: [to_fp32(generator.gauss(0, scale)) for _ in range(LENGTH)]
    values, gradients = numbers(1), [numbers(0.5) for _ in range(STEPS)]
    cases = [dict(case, parameters=history_of(case, values, gradients)) for case in CASES]
    fixture = dict(made_by="scripts/make_optimizer_fixture.py", torch=torch.__version__, seed=SEED,
                   initial=values, gradients=gradients, cases=cases)
    with open(path, "w", encoding="utf-8") as file:
        lines = json.dumps(fixture).replace('"cases": [', '"cases": [\n').replace("}, {", "},\n{")
        file.write(lines + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
