"""A check: a program with a limit, and what is read from its end."""
import json

from rows import FAILED, NOT_RUN, PASSED, Row

SMALL = {"model_type": "gpt2", "vocab_size": 512, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2}


class Check:
    """judge(ended) gives its rows, the first of which is the check's own; without it the exit code 0 passes.

    reason: why it does not run, "" if it does. limit_s: seconds of the program, in a real and in a pretended check.
    """

    def __init__(self, name, command=(), judge=None, limit_s=180, reason="", environment=None):
        self.name, self.command, self.judge, self.limit_s = name, list(command), judge, limit_s
        self.reason, self.environment = reason, environment or {}

    def rows(self, ended):
        """Never raises: what cannot be read is a row too."""
        if ended.limit_s is not None:
            return [self.failed(ended.why_failed())]
        if self.judge is None:
            return [self.passed(ended) if ended.code == 0 else self.failed(ended.why_failed())]
        try:
            rows = self.judge(ended)
        except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as fault:
            if ended.code != 0:
                return [self.failed(ended.why_failed())]
            return [self.failed(f"what it printed cannot be read: {type(fault).__name__}: {fault}")]
        return rows or [self.failed("it printed no figure")]

    def passed(self, _, detail="", **values):
        return Row(self.name, PASSED, detail, values=values)

    def failed(self, detail):
        return Row(self.name, FAILED, detail)


def not_run(name, reason):
    return Row(name, NOT_RUN, reason)


def with_parts(name, parts):
    """The check's own row before those of its parts; no rows without parts."""
    if not parts:
        return []
    return [Row(name, PASSED, f"figures: {len(parts)}"), *parts]


def write_config(path, micro_batches=(1,), stages="all", shape=None, sequence=16, precision=None, **dstune):
    """A configuration of which every experiment is measured. Returns its path."""
    config = {
        "train_micro_batch_size_per_gpu": list(micro_batches), "gradient_clipping": 1.0,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
        "zero_optimization": {"stage": stages, "reduce_bucket_size": 1e5}, "autotuning": {"enabled": True},
        "dstune": {"tuner": "fast", "model": shape or SMALL, "sequence_length": sequence, "warmup_steps": 1,
                   "measure_steps": 1, "warmup_seconds": 0, "measure_seconds": 0, "learnt": False,
                   "preflight": False, **dstune}}
    if precision == "bf16":
        config["bf16"] = {"enabled": True}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config, indent=1), encoding="utf-8")
    return path
