"""What a tuning left in its results_dir, as far as a verdict needs it (docs/results.md)."""
import dataclasses
import importlib.util
import json
import math
import pathlib
import statistics

from calibration import commented_json

METRICS = ("throughput", "latency", "flops", "tokens")
# Of an experiment's JSON, which can be run: without zero.Init the runs are anyhow.
KEYS_OF_DSTUNE = {"activation_checkpointing", "sequence_length", "zero_init"}
# By loss: (the library that makes it, whether a GPU alone runs it). TRL 1.7 to 1.14 made "chunked" in its trainer only.
LIBRARIES = {"tiled": ("trl", False), "fused": ("liger_kernel", True)}
# Their layers return tuples, or are given positions of their own: verify/fine_tuning.py cannot run several as one.
NOT_GROUPED = ("t5", "mt5", "deberta-v2", "gemma3_text")
TASKS = ("causal_lm", "masked_lm", "sequence_classification", "seq2seq_lm")


class InputFault(Exception):
    """What the user can mend: exit code 2."""


def read_configuration(path):
    try:
        config = commented_json.read(path)
    except (OSError, ValueError) as fault:
        raise InputFault(f"{path}: {fault}") from fault
    if not isinstance(config, dict):
        raise InputFault(f"{path}: not a JSON object")
    return config


def metric_of(config):
    objective = config.get("dstune", {}).get("objective")
    if isinstance(objective, dict):
        objective = objective.get("metric")
    metric = objective or config.get("autotuning", {}).get("metric") or "throughput"
    if metric not in METRICS:
        raise InputFault(f"the objective is {metric}, not one of {', '.join(METRICS)}")
    return metric


@dataclasses.dataclass
class Configuration:
    """One that was measured: repetitions are of it, not beside it."""
    name: str
    ds_config: dict
    settings: dict
    ranks: int
    step_s: float          # median of all its measurements
    noise_percent: float   # of the first: a step's standard deviation,
    error: float           # and that of the mean of its steps, as a share
    peak_bytes: int
    collectives: dict      # "kind type": [calls, elements, bytes of the full messages]
    memory_limit: int = None  # bytes, of a rank

    @property
    def stage(self):
        return self.ds_config.get("zero_optimization", {}).get("stage", 0)

    @property
    def micro_batch(self):
        return self.ds_config["train_micro_batch_size_per_gpu"]

    @property
    def accumulation(self):
        return self.ds_config.get("gradient_accumulation_steps", 1)

    @property
    def precision(self):
        for name in ("bf16", "fp16"):
            if self.ds_config.get(name, {}).get("enabled"):
                return name
        return "fp32"

    @property
    def is_under_zero_init(self):
        return self.stage == 3 and self.ds_config.get("dstune", {}).get("zero_init", True)

    @property
    def batch(self):
        """Those alike in it compute the same losses from the same data."""
        return self.micro_batch, self.accumulation, self.precision, self.settings["sequence_length"]

    def cost(self, step_s, metric):
        """What the search makes small, of a step of so many seconds."""
        if metric == "latency":
            return step_s
        tokens = self.settings["sequence_length"] if metric == "tokens" else 1
        return step_s / (self.micro_batch * self.accumulation * self.ranks * tokens)


def sums_by_kind(collectives):
    """Of a ledger's lines, by kind and type, of which those of a byte are one, as in verify/watch.py."""
    sums = {}
    for line in collectives:
        key = f"{line['kind']} {'int8' if line['dtype'] == 'uint8' else line['dtype']}"
        sums[key] = [a + b for a, b in zip(sums.get(key, (0, 0, 0)), (line["calls"], line["elements"], line["bytes"]))]
    return sums


def step_time_of(outcome):
    """Seconds: the median, or the mean where lengths vary, and steps with them."""
    varying = outcome.get("varying_steps")
    return varying["mean_step_time_s"] if varying else outcome["step_time_s"]["median"]


def error_of(outcome):
    """Of the mean step time, as a share: noise_percent is one standard deviation of single steps. Earlier versions did
    not tell how many of the steps are independent."""
    steps = outcome.get("independent_steps") or outcome.get("steps") or 1
    return outcome["noise_percent"] / 100 / math.sqrt(steps)


def peak_of(outcome, settings):
    """Where device and host are one memory, without the buffers through which a drive is read and written: DeepSpeed's
    aio operator locks them, beside what torch allocates and counts."""
    is_one_memory = "host_memory_limit_bytes" not in settings
    locked = outcome.get("peak_host_memory_bytes", {}).get("locked", 0)
    return outcome["peak_memory_bytes"] - (locked if is_one_memory else 0)


def configuration_of(records):
    first = records[0]["experiment"]
    outcomes = [record["outcome"] for record in records]
    return Configuration(
        name=first["name"], ds_config=first["ds_config"], settings=first["settings"], ranks=first["ranks"],
        step_s=statistics.median(step_time_of(outcome) for outcome in outcomes),
        noise_percent=outcomes[0]["noise_percent"], error=error_of(outcomes[0]),
        peak_bytes=peak_of(outcomes[0], first["settings"]),
        collectives=sums_by_kind(outcomes[0]["ledger"]["collectives"]),
        memory_limit=first["settings"].get("memory_limit_bytes"))


def finished_lines(text):
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue  # torn
        if record.get("type") == "finished" and not record["experiment"].get("measures_machine"):
            yield record


def configurations_of(text):
    """By the journal's order; what was not measured has no place in a ranking."""
    groups = {}
    for record in finished_lines(text):
        experiment = record["experiment"]
        if record["outcome"]["status"] == "measured":
            key = json.dumps([experiment["ds_config"], experiment["settings"], experiment["ranks"]], sort_keys=True)
            groups.setdefault(key, []).append(record)
    return [configuration_of(records) for records in groups.values()]


def is_installed(library):
    return importlib.util.find_spec(library) is not None


def why_not(configuration, installed=is_installed):
    """What of it the runs in DeepSpeed cannot be given, or None. installed(library) is whether Python finds it."""
    settings, model = configuration.settings, configuration.settings["model"]
    on_gpu = settings["backend"] == "cuda"
    if settings["backend"] not in ("cpu", "cuda"):
        return f"backend {settings['backend']}, which has no time of its own"
    if "share_gpu" in settings:
        return "dstune.share_gpu, several ranks on a GPU"
    if settings.get("attention") == "flash" and not (on_gpu and installed("flash_attn")):
        return "attention flash, which needs a GPU and flash_attn"
    if settings.get("lengths", {}).get("packed"):
        return "packed batches"
    library, needs_gpu = LIBRARIES.get(settings.get("loss"), (None, False))
    if settings.get("loss") == "chunked":
        return "loss chunked, which is a part of TRL's trainer"
    if library and not (installed(library) and (on_gpu or not needs_gpu)):
        return f"loss {settings['loss']}, which needs {library}{' and a GPU' * needs_gpu}"
    if model.get("task", "causal_lm") not in TASKS:
        return f"task {model['task']}"
    if "expert_imbalance" in model:
        return "dstune.expert_imbalance, which transformers' routers do not follow"
    way = configuration.ds_config.get("dstune", {}).get("activation_checkpointing")
    if str(way).startswith("groups_of") and model.get("model_type") in NOT_GROUPED:
        return f"groups of layers of {model['model_type']}"
    others = sorted(set(configuration.ds_config.get("dstune", {})) - KEYS_OF_DSTUNE)
    return f"dstune.{others[0]}" if others else None


@dataclasses.dataclass
class Tuned:
    configurations: list
    pick: str
    notes: list             # summary.txt's, without "Note: "
    parameters: int | None  # of the model
    left_out: dict          # reason: how many configurations


def results_folder(config):
    """The folder of the configuration's results: that of the last run, if it names none."""
    named = config.get("autotuning", {}).get("results_dir")
    root = pathlib.Path(named or "autotuning_results")
    latest = root / "latest"
    return root / latest.readlink() if not named and latest.is_symlink() else root


def profile_of(results):
    """The path of the profile that a calibration left for the run: in its folder, or beside those of all runs."""
    root = results.parent if (results.parent / "latest").is_symlink() else results
    return root / "host_overhead.json"


def read_results(folder, ranks=None):
    """Tuned, of experiments of so many ranks (None: of those of the pick)."""
    folder = pathlib.Path(folder)
    try:
        text = (folder / "journal.jsonl").read_text(encoding="utf-8")
        pick = json.loads((folder / "status.json").read_text(encoding="utf-8")).get("best")
    except (OSError, ValueError) as fault:
        raise InputFault(f"no results in {folder}: {fault}") from fault
    measured = configurations_of(text)
    picked = [each for each in measured if each.name == pick]
    if not picked:
        raise InputFault(f"{folder} has no optimum that was measured")
    ranks = ranks or picked[0].ranks
    if picked[0].ranks != ranks:
        raise InputFault(f"{folder} was tuned on {picked[0].ranks} ranks per experiment, not {ranks}")
    left_out = {}
    for each in measured:
        if why_not(each) is not None:
            left_out[why_not(each)] = left_out.get(why_not(each), 0) + 1
    if why_not(picked[0]) is not None:
        raise InputFault(f"the optimum {pick} cannot be run for comparison: {why_not(picked[0])}")
    kept = [each for each in measured if each.ranks == ranks and why_not(each) is None]
    return Tuned(kept, pick, notes_of(folder), parameters_of(folder), left_out)


def notes_of(folder):
    try:
        lines = (folder / "summary.txt").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [line.removeprefix("Note: ") for line in lines if line.startswith("Note: ")]


def parameters_of(folder):
    try:
        return json.loads((folder / "profile_model_info" / "model_info.json").read_text(encoding="utf-8"))["num_params"]
    except (OSError, ValueError, KeyError):
        return None
