"""Synthetic batches: the same for every configuration with the same micro-batch, rank, step and seed."""
from drawn_batches import drawn_tokens, masked_tokens, seed_of

MASK_TOKENS = {"deberta-v2": 128000, "roberta": None}  # None: the last; else bert-base-uncased's


def mask_token(config):
    last = config.vocab_size - 1
    token = MASK_TOKENS.get(config.model_type, 103)
    return last if token is None else min(token, last)


def micro_step(config, task, shape, seed):
    """(input_ids, labels) as lists of rows: Zipf's tokens, with the labels of the task."""
    rows, length, target_length = shape
    vocabulary, padding = config.vocab_size, getattr(config, "pad_token_id", None)
    tokens = drawn_tokens(rows * length, vocabulary, seed)
    if padding is not None:
        tokens = [(token + 1) % vocabulary if token == padding else token for token in tokens]
    labels = tokens
    if task == "masked_lm":
        tokens, labels = masked_tokens(tokens, seed_of(seed, 1), mask_token(config), padding, vocabulary)
    elif task == "sequence_classification":
        return cut(tokens, length), drawn_tokens(rows, config.num_labels, seed_of(seed, 1))
    elif task == "seq2seq_lm":
        return cut(tokens, length), cut(drawn_tokens(rows * target_length, vocabulary, seed_of(seed, 1)), target_length)
    return cut(tokens, length), cut(labels, length)


def cut(values, length):
    return [values[i:i + length] for i in range(0, len(values), length)]


def seed_of_micro_step(seed, rank, ranks, step, micro_step_number):
    return seed_of(seed, ((step * 65536 + micro_step_number) * ranks) + rank)
