"""The report, written row by row: a session that is cut off keeps what it had."""
import datetime
import json
import os
import sys
import tarfile

from rows import FAILED, NOT_RUN, PASSED

LEFT_OUT = ("cache", "nccl")  # of the file to send: what only other runs use


class Report:
    """checks.jsonl and report.md in the output folder; all that the latter gets but the logs is printed, too."""

    def __init__(self, output, is_pretended):
        self.output, self.is_pretended = output, is_pretended
        self.counts = {PASSED: 0, FAILED: 0, NOT_RUN: 0}
        self.lines = os.open(output / "checks.jsonl", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        self.markdown = open(output / "report.md", "w", encoding="utf-8")

    def say(self, text):
        self.write(f"{text}\n")
        tell(text)

    def write(self, text):
        self.markdown.write(text)
        self.markdown.flush()

    def begin(self, version, gpus, commit):
        self.say(f"{version}, {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}{commit}")
        for gpu in gpus:
            self.say(f"GPU: {gpu}")
        if self.is_pretended:
            self.say("PRETENDED: no GPU was used. This shows that every line runs; the figures mean nothing.")
        self.say("\n| check | verdict | detail | s |\n| :---- | :------ | :----- | -: |")

    def add(self, group, row, seconds=None, log=None):
        if self.is_pretended:
            row = row.as_pretended()
        self.counts[row.result] += 1
        line = {"check": row.check, "group": group, "result": row.result, "verdict": row.verdict, **row.values,
                "reference": row.reference, "ratio": row.ratio, "aim": row.aim,
                "seconds": seconds if seconds is None else round(seconds, 1), "detail": row.detail,
                "log": log and log.name, "pretended": self.is_pretended}
        os.write(self.lines, (json.dumps(line) + "\n").encode())
        os.fsync(self.lines)
        figures = [*row.values.items(), ("ratio", row.ratio)]
        detail = "; ".join(filter(None, [*map(figure, figures), row.detail])).replace("|", "/")
        said = "" if seconds is None else f"{seconds:.0f}"
        self.say(f"| {row.check} | {row.verdict.replace('|', '/')} | {detail} | {said} |")

    def end(self):
        """The last lines, and all of it as one file to send. Returns whether nothing failed and something passed."""
        failed, not_run, total = self.counts[FAILED], self.counts[NOT_RUN], sum(self.counts.values())
        text = f"{failed} of {total} failed" if failed else f"{self.counts[PASSED]} of {total} passed"
        self.say(f"\n{text}{f', {not_run} did not run' if not_run else ''}")
        for log in sorted(self.output.glob("bench_gpu_*.log")):
            self.write(f"\n## {log.stem}\n\n{log.read_text(encoding='utf-8', errors='replace')}")
        self.markdown.close()
        os.close(self.lines)
        tell(f"all of it in one file: {pack(self.output)}")
        return failed == 0 and self.counts[PASSED] > 0


def tell(text):
    """On standard output, as long as somebody listens: a connection that is lost ends no check."""
    try:
        print(text, flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")


def figure(item):
    name, value = item
    if value is None:
        return ""
    return f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"


def pack(output):
    """OUTPUT.tar.gz beside the folder."""
    path = output.with_name(output.name + ".tar.gz")
    partial = path.with_name(path.name + ".partial")
    with tarfile.open(partial, "w:gz") as tar:
        tar.add(output, output.name, filter=lambda entry: None if os.path.basename(entry.name) in LEFT_OUT else entry)
    os.replace(partial, path)
    return path
