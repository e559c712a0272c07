"""The groups kernels, host and steps: speed and memory beside NVIDIA's libraries, PyTorch and DeepSpeed."""
import json
import os
import pathlib

from checks import Check, with_parts, write_config
from place import SCRIPTS
from rows import FAILED, MEMORY, PASSED, SPEED, Row, compared, tables

GPT2 = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
PRETENDED_STEP = ["--backend", "cpu", "--model", "gpt2", "--micro-batch", "1", "--sequence", "16", "--steps", "1"]
BESIDE_TORCH = "bench/gpu/kernels_beside_torch.py"


def kernels(place, *_):
    bench = place.bench("bench_gpu_kernels")
    trial = ["cpu", "trial"] if place.is_pretended else []
    yield Check("bench_gpu_kernels", [bench, *trial], beside_libraries, 300, "" if bench else "it was not built")
    yield kernels_beside_torch(place)


def kernels_beside_torch(place):
    script, program = place.script(BESIDE_TORCH), place.bench("kernels_on_request")
    reason = place.why_no_torch() or ("" if script else f"there is no {BESIDE_TORCH}") or (
        "" if program else "kernels_on_request was not built")
    on_cpu = ["--backend", "cpu"] if place.is_pretended else []
    if on_cpu and not reason and "--backend" not in script.read_text(encoding="utf-8"):
        reason = "it runs on a GPU alone"
    return Check("kernels beside PyTorch", [place.python, "-B", script, program, *on_cpu], beside_kernels, 300, reason)


def beside_libraries(ended):
    """The tables of bench_gpu_kernels, whose exit code 1 is an aim that was missed."""
    name = "bench_gpu_kernels"
    if ended.code not in (0, 1):
        return [Row(name, FAILED, ended.why_failed())]
    parts = []
    for title, header, lines in tables(ended.text):
        unit = "gb_per_s" if "GB/s" in title else "tflop_per_s"
        for part, ours, reference, _, aim, verdict in lines:
            if verdict == "not judged":
                values = {f"ours_{unit}": float(ours)}
                parts.append(Row(f"{name}: {part}", PASSED, "", "not judged", values))
            else:
                parts.append(compared(f"{name}: {part}", part, float(ours), float(reference), unit, header[2], SPEED,
                                      (float(aim), None)))
    return with_parts(name, parts)


def beside_kernels(ended):
    name = "kernels beside PyTorch"
    if ended.code not in (0, 1):
        return [Row(name, FAILED, ended.why_failed())]
    found = [json.loads(line) for line in ended.text.splitlines() if line.startswith('{"kernel"')]
    return with_parts(name, [compared(f"kernel: {each['kernel']}", each["kernel"], each["ours_ms"], each["torch_ms"],
                                      "ms", "PyTorch") for each in found])


def host(place, work, options):
    """What DeepSpeed's and PyTorch's host code takes, per event; for later checks too, in the user's cache."""
    ranks = ranks_beside_deepspeed(place)
    reason = place.why_no_torch("deepspeed", "transformers")
    if place.is_pretended and not options.long:
        reason = reason or "pretended, it takes minutes: --long"
    profile = work / "calibration" / "host_overhead.json"
    command = [SCRIPTS / "tune.sh", "--calibrate", ranks, "--results-dir", profile.parent]
    environment = {}
    if place.is_pretended:
        command += ["--backend", "cpu", "--seconds", "1"]
        environment = {"XDG_CACHE_HOME": str(own_cache(work))} if not reason else {}

    def judge(ended):
        if ended.code != 0:
            return [Row("calibrate", FAILED, ended.why_failed())]
        return events_of(json.loads(profile.read_text(encoding="utf-8")))
    yield Check("calibrate", command, judge, 420, reason, environment)


def events_of(profile):
    """Rows of a calibration: its events, then torch's collectives."""
    events = {name: value for name, value in profile.items() if name.endswith("_us")}
    parts = [Row(f"{kind} by torch, {dtype}", PASSED, f"{profile['measured_on']['ranks']} ranks",
                 values={"latency_us": entry["latency_us"], "bus_gb_per_s": entry["bus_bandwidth_gb_per_s"]})
             for kind, types in profile.get("collectives", {}).items() for dtype, entry in types.items()]
    return [Row("calibrate", PASSED if events else FAILED, "" if events else "no event in its profile", values=events),
            *parts]


def ranks_beside_deepspeed(place):
    return 2 if place.is_pretended else min(2, max(1, len(place.gpus())))


def own_cache(work):
    """A pretended profile is none of the user's; what DeepSpeed compiled is."""
    users = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "torch_extensions"
    cache = work / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    users.mkdir(parents=True, exist_ok=True)
    if not (cache / users.name).is_symlink():
        (cache / users.name).symlink_to(users)
    return cache


def steps(place, work, options):
    bench = place.bench("bench_gpu_step")
    small = PRETENDED_STEP if place.is_pretended else []
    built = "" if bench else "bench_gpu_step was not built"
    for path in sorted(place.benches.glob("bench_gpu_*")):
        if path.name != "bench_gpu_kernels" and place.bench(path.name):
            yield Check(path.name, [path, *(small if path == bench else [])])
    fp32 = ["--fp32"] if place.is_pretended else []
    yield Check("steps beside PyTorch",
                [place.python, "-B", SCRIPTS / "compare_step_with_torch.py", bench, *small, *fp32], beside_steps, 300,
                place.why_no_torch("transformers") or built)
    yield from beside_deepspeed(place, work)


def beside_steps(ended):
    name = "steps beside PyTorch"
    if ended.code not in (0, 1):
        return [Row(name, FAILED, ended.why_failed())]
    parts = []
    for _, _, lines in tables(ended.text):
        for model, micro_batch, ours, theirs, *_ in lines:
            case = f"step of {model}, micro-batch {micro_batch}"
            lacking = [ours, theirs].count("out of memory")
            if lacking:
                detail = f"ours {ours} ms, PyTorch's {theirs} ms"
                verdict = "not judged" if lacking == 2 else "mend: memory, one is out of it, the other is not"
                parts.append(Row(case, PASSED if lacking == 2 else FAILED, detail, verdict))
            else:
                parts.append(compared(case, case, float(ours), float(theirs), "ms", "PyTorch"))
    return with_parts(name, parts)


def beside_deepspeed(place, work):
    """All stages tuned by one worker for each GPU, two at most, and the same steps by DeepSpeed."""
    reason = place.why_no_torch("deepspeed", "transformers")
    results, output = work / "deepspeed", work / "verify"
    ranks = ranks_beside_deepspeed(place)
    if place.is_pretended:
        config = write_config(work / "deepspeed.json", host_overhead="none", memory_limit="1GiB", precision="fp32")
    else:
        config = write_config(work / "deepspeed.json", (8,), shape=GPT2, sequence=512, precision="bf16",
                              measure_steps=10, warmup_seconds=1, measure_seconds=1)
    backend = "cpu" if place.is_pretended else "cuda"
    tune = place.on_ranks(1 + ranks, place.plain, "--backend", backend, config, "--results-dir", results, "--overwrite")
    yield Check("tune for DeepSpeed", tune, reason=reason)
    visits = ["--steps", "1", "--loss-steps", "8"] if place.is_pretended else ["--steps", "8", "--loss-steps", "10"]
    command = [place.python, "-B", SCRIPTS / "verify_against_deepspeed.py", config, "--results", results, "--output",
               output, "--configs", "2" if place.is_pretended else "4", "--passes", "2", *visits]

    def judge(ended):
        if ended.code not in (0, 1, 3):
            return [Row("steps beside DeepSpeed", FAILED, ended.why_failed())]
        verdict = json.loads((output / "verdict.json").read_text(encoding="utf-8"))
        return with_parts("steps beside DeepSpeed", [row for each in verdict["configurations"]
                                                     for row in beside_configuration(each)])
    yield Check("steps beside DeepSpeed", command, judge, 480, reason)


def beside_configuration(each):
    name = each["name"]
    yield compared(f"step of {name}", f"the step of {name}", 1e3 * each["ours_s"], 1e3 * each["real_s"], "ms",
                   "DeepSpeed")
    yield compared(f"peak of {name}", f"the peak of {name}", each["ours_peak_bytes"], each["real_peak_bytes"], "bytes",
                   "DeepSpeed", MEMORY)
