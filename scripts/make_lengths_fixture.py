#!/usr/bin/env python3
"""Writes tests/data/lengths/models.json: what Hugging Face's models compute of padded and packed batches.

    pip install torch transformers && python3 scripts/make_lengths_fixture.py

The models and tokens are those of scripts/family_cases (make_family_fixture.py). A row has

    case        NAME of scripts/family_cases
    batches     padded: attention_mask and labels of -100 behind each sequence; packed: one row with
                position_ids that begin anew, and no label for the first token of each sequence, as
                TRL's collator without padding
    lengths     of the sequences, in order
    loss        in fp64
    gradients   of each parameter in the order of named_parameters(): all of it (case llama), or its sum
                of products with value_of(PROBE, element)
    saved       padded: bytes that each layer keeps for backward in fp32, by attention, as in
                make_family_fixture.py

That packed sequences do not see each other is not taken from the model's mask: loss and gradients are those
of each sequence alone, weighted with its labels; packed ones in one forward must agree.
"""
import json
import pathlib

import torch

import make_family_fixture as families

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "tests/data/lengths/models.json"
PROBE = 2000
make_batch = families.make_batch
IGNORED = -100

ROWS = [
    ("llama", "padded", [7, 4]), ("llama", "packed", [3, 4, 1, 6]),
    ("gpt2_gelu_new", "padded", [2, 5]), ("gpt2_gelu_new", "packed", [4, 1, 3, 2]),
    ("gpt_neox", "padded", [3, 7]), ("gpt_neox", "packed", [5, 2, 7]),
    ("bert_masked_lm", "padded", [6, 9]), ("roberta_masked_lm", "padded", [9, 5]),
    ("distilbert_classification", "padded", [2, 5, 3]), ("opt", "padded", [6, 3]), ("mistral", "padded", [8, 5]), ("mistral", "packed", [5, 8, 3]),
    ("gemma2", "padded", [8, 5]), ("phi3_window", "padded", [8, 5]), ("phi3_window", "packed", [6, 3, 7]),
    ("mixtral", "padded", [8, 5]), ("mixtral", "packed", [6, 3, 7]),
]


def padded_batch(case, model, tokens, lengths):
    mask = torch.zeros_like(tokens)
    for row, length in enumerate(lengths):
        mask[row, :length] = 1
    batch = make_batch(case, model)
    if batch["labels"].shape == tokens.shape:
        batch["labels"] = batch["labels"].masked_fill(mask == 0, IGNORED)
    return dict(batch, attention_mask=mask)


def packed_batch(tokens, lengths):
    flat = tokens.flatten()
    positions = torch.cat([torch.arange(length) for length in lengths])
    assert len(positions) == len(flat)
    labels = flat.masked_fill(positions == 0, IGNORED)
    return dict(input_ids=flat[None], position_ids=positions[None], labels=labels[None])


def gradients_of(model):
    result = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    return result


def together(case, model, batch):
    loss = families.run_forward(case, model, batch)
    loss.backward()
    return loss.item(), gradients_of(model)


def one_by_one(case, model, tokens, lengths):
    flat, begin, loss = tokens.flatten(), 0, 0.0
    labels = sum(length - 1 for length in lengths)
    for length in lengths:
        own = flat[begin:begin + length][None]
        begin += length
        if length == 1:
            continue
        part = families.run_forward(case, model, dict(input_ids=own, labels=own)) * (length - 1) / labels
        part.backward()
        loss += part.item()
    return loss, gradients_of(model)


def compute(case, model, batches, tokens, lengths):
    if batches == "padded":
        return together(case, model, padded_batch(case, model, tokens, lengths))
    loss, gradients = one_by_one(case, model, tokens, lengths)
    packed_loss, packed_gradients = together(case, model, packed_batch(tokens, lengths))
    assert abs(loss - packed_loss) < 1e-6, (loss, packed_loss)
    for own, packed in zip(gradients, packed_gradients):
        assert torch.allclose(own, packed, atol=1e-6)
    return loss, gradients


def saved_of(case, tokens, lengths):
    families.make_batch = lambda _, model: padded_batch(case, model, tokens, lengths)
    try:
        return {attention: families.measure_saved(case, attention)["layers"] for attention in families.attentions_of(case)}
    finally:
        families.make_batch = make_batch


def as_stored(name, gradients):
    if name == "llama":
        return [families.rounded(gradient.flatten().tolist()) for gradient in gradients]
    probes = [torch.from_numpy(families.value_of(PROBE, gradient.numel())) for gradient in gradients]
    return families.rounded((gradient.flatten() @ probe).item() for gradient, probe in zip(gradients, probes))


def make_row(name, batches, lengths):
    case = json.loads((families.CASES / f"{name}.json").read_text(encoding="utf-8"))
    model, _ = families.make_model(case)
    model = model.to(torch.float64)
    tokens = families.make_inputs(case, model)
    loss, gradients = compute(case, model, batches, tokens, lengths)
    row = dict(case=name, batches=batches, lengths=lengths, loss=loss, gradients=as_stored(name, gradients))
    if batches == "padded":
        row["saved"] = saved_of(case, tokens, lengths)
    return row


def main():
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.dumps(make_row(*row), separators=(",", ":")) for row in ROWS]
    TARGET.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")
    print(TARGET, len(rows), "rows")


if __name__ == "__main__":
    main()
