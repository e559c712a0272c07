"""The rows of a micro-batch whose sequences vary in length: those that dstune-mpi draws (docs/lengths.md)."""
from simulate_lengths import micro_batch

IGNORED = -100
LEAST_STEPS = 8  # of which a mean is taken


def drawn(settings, seed, first, rows):
    """(lengths, tokens of a row) of a padded micro-batch whose first sequence has that number in the data."""
    return micro_batch(dict({"pad_to_multiple_of": 1}, **settings), seed, first, {"micro_batch": rows})


def longest(settings, rows):
    """Likewise of the micro-batch that decides what fits: every row at the most, the last one at the next length."""
    multiple, most = settings.get("pad_to_multiple_of", 1), settings["most"]
    others = [length for length, _ in settings.get("counts", [[most - 1, 1]]) if length < most]
    lengths = [most] * rows
    if rows > 1:
        lengths[-1] = max([settings["least"], *others])
    return lengths, -(-most // multiple) * multiple


def padded(tokens, labels, lengths, padding):
    """{input_ids, labels, attention_mask} of rows that are cut to their lengths and padded on the right."""
    def fill(rows, value):
        return [row[:length] + [value] * (len(row) - length) for row, length in zip(rows, lengths)]
    return {"input_ids": fill(tokens, padding or 0), "labels": fill(labels, IGNORED),
            "attention_mask": fill([[1] * len(row) for row in tokens], 0)}
