"""The group frontier: the largest micro-batches, predicted, tried, and beside PyTorch's."""
import json
import sys

from checks import Check, with_parts, write_config
from place import SCRIPTS
from rows import AIM, BATCH, FAILED, PASSED, SHARE, Row, compared, tables

sys.path.append(str(SCRIPTS))
import gpu_tuning  # noqa: E402 (its folder is known only now)

PRETENDED_MIB = "746"  # leaves some MiB for buffers, beside those that torch gives to cuBLAS


def checks(place, work, _):
    yield predicted(place, work)
    yield beside_torch(place, work)


def predicted(place, work):
    """Those that the plan says, and one sequence more."""
    name, path = "predicted micro-batches", work / "predicted.json"
    environment = {}
    if place.is_pretended:
        limit = {}
        if place.has_double:
            environment["PRETENDED_GPU_MIB"] = PRETENDED_MIB
        else:
            limit["memory_limit"] = "4MiB"
        write_config(path, stages=[0, 3], host_overhead="none", **limit)
        config = json.loads(path.read_text(encoding="utf-8"))
        del config["train_micro_batch_size_per_gpu"]
    else:
        config = gpu_tuning.GPT2_LARGE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config), encoding="utf-8")

    def judge(ended):
        if ended.code != 0:
            return [Row(name, FAILED, ended.why_failed())]
        found = [json.loads(line) for line in ended.text.splitlines() if line.startswith('{"stage"')]
        return with_parts(name, [prediction(**each) for each in found])
    return Check(name, [sys.executable, "-B", SCRIPTS / "gpu_check" / "predicted_batches.py", work / "predicted",
                        place.backend, place.mpirun, place.program, path], judge, 300, environment=environment)


def prediction(stage, predicted, of_predicted, of_one_more):
    check, values = f"predicted micro-batch of stage {stage}", {"predicted_sequences": predicted}
    detail = f"one more: {of_one_more.replace('_', ' ')}"
    if of_predicted == "measured":
        return Row(check, PASSED, detail, values=values)
    said = of_predicted.replace("_", " ")
    verdict = f"mend: memory of stage {stage}, {predicted} sequences should fit: {said}"
    return Row(check, FAILED, detail, verdict, values)


def beside_torch(place, work):
    """The largest micro-batches that ran, beside PyTorch's."""
    name = "largest micro-batches"
    small = []
    if place.is_pretended:
        config = write_config(work / "frontier.json", (1, 2), stages=[0, 3], host_overhead="none",
                              memory_limit="256MiB")
        small = ["--config", config, "--backend", "cpu", "--experiments", "8"]

    def judge(ended):
        if ended.code not in (0, 1):
            return [Row(name, FAILED, ended.why_failed())]
        parts = []
        for _, header, lines in tables(ended.text):
            if header[0] == "stage":
                parts += [largest(place, *line) for line in lines]
            else:
                parts += [compared(what, what, percent(figure), percent(aim), "percent", "its aim", SHARE, (1, None))
                          for what, figure, aim, _ in lines if aim]
        return with_parts(name, parts)
    return Check(name, [place.python, "-B", SCRIPTS / "gpu_tuning.py", place.plain, "--mpirun", place.mpirun, *small],
                 judge, 480)


def percent(text):
    return float(text.replace("%", ""))


def largest(place, stage, ran, refused, torchs):
    check = f"largest micro-batch of stage {stage}"
    next_one = f"smallest out of memory {refused}"
    if not ran.isdigit():
        return Row(check, FAILED, f"none ran; {next_one}")
    if not torchs.isdigit():
        return Row(check, PASSED, f"{next_one}; PyTorch's {torchs}", "not judged", {"ours_sequences": int(ran)})
    row = compared(check, check, int(ran), int(torchs), "sequences", "PyTorch", BATCH, AIM, next_one)
    if refused.isdigit() and int(refused) <= int(ran) and not place.is_pretended:
        return Row(check, FAILED, next_one, f"mend: {ran} ran and {refused} did not", row.values)
    return row
