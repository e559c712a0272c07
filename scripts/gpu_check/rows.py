"""What is said of each check: a row of the table, and a line of JSON."""

PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"
AIM = (0.9, 1.1)  # ours over PyTorch's: what is faster leaves something out, or measures something else
PRETENDED = "not judged: pretended"


class Row:
    """values: figures, whose names have their units; aim: (lowest, highest) of the ratio, each may be None."""

    def __init__(self, check, result, detail="", verdict=None, values=None, reference=None, ratio=None, aim=None):
        self.check, self.result, self.detail, self.verdict = check, result, detail, verdict or result
        self.values, self.reference, self.ratio, self.aim = values or {}, reference, ratio, aim

    def as_pretended(self):
        """Without a judgement of figures."""
        if self.ratio is None:
            return self
        return Row(self.check, PASSED, self.detail, PRETENDED, self.values, self.reference, self.ratio, self.aim)


def aim_text(aim):
    lowest, highest = aim
    if highest is None:
        return f"at least {lowest:g}"
    return f"within {lowest:g} to {highest:g}"


# What a ratio below and above its aim means.
TIME = ("faster", "slower", "time")
SPEED = ("slower", "faster", "speed")
MEMORY = ("smaller", "larger", "peak")
BATCH = ("smaller", "larger", "micro-batch")
SHARE = ("smaller", "larger", "share")


def compared(check, part, ours, theirs, unit, reference, kind=TIME, aim=AIM, detail=""):
    """A row for a figure beside a reference's; without that it is only said."""
    values = {f"ours_{unit}": ours, f"reference_{unit}": theirs}
    if not theirs:
        return Row(check, PASSED, detail or "there is no reference", "not judged", values)
    ratio = ours / theirs
    lowest, highest = aim
    if ratio >= lowest and (highest is None or ratio <= highest):
        return Row(check, PASSED, detail, aim_text(aim), values, reference, ratio, aim)
    below, above, what = kind
    verdict = f"mend: {part} is {below if ratio < lowest else above} than {reference}, {ratio:.2f} of its {what}"
    return Row(check, FAILED, detail, verdict, values, reference, ratio, aim)


def cells_of(line):
    """Cells of a line of a Markdown table; None where it is none."""
    if not line.startswith("|"):
        return None
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables(text):
    """(the last line of text before it, header, rows) of each Markdown table."""
    found, title, current = [], "", None
    for line in text.splitlines():
        cells = cells_of(line)
        if cells is None:
            title, current = line.strip() or title, None
        elif current is None:
            current = []
            found.append((title, cells, current))
        elif not set("".join(cells)) <= set(":-"):
            current.append(cells)
    return found
