"""The groups collectives and kills: what goes between GPUs, by the program and by torch, and a tuning that loses a
process."""
import json
import sys

from checks import Check, with_parts, write_config
from place import SCRIPTS
from rows import FAILED, PASSED, Row, tables

SIZES = (2, 4, 8)  # GPUs
WRONG = " wrong on "  # bytes or sums, as the check of the machine names them


def collectives(place, work, _):
    """The program's own check of the machine: known values between every pair and around the ring, timed."""
    gpus = len(place.gpus())
    sizes = [size for size in SIZES if size <= gpus]
    if not sizes:
        yield Check("messages", reason="one GPU" if gpus else "no GPU")
        return
    config = write_config(work / "messages.json", preflight="only", host_overhead="none",
                          memory_limit="256MiB" if place.is_pretended else "1GiB")
    cases = [(size, 1) for size in sizes] + ([(sizes[-1], 2)] if sizes[-1] >= 4 else [])
    for size, groups in cases:
        yield messages(place, work, config, size, groups)
        yield messages_by_torch(place, size, groups)


def name_of(size, groups):
    return f"messages of {size} GPUs" if groups == 1 else f"messages of two groups of {size // 2} GPUs at once"


def messages_by_torch(place, size, groups):
    """From 1 KiB to 1 GiB, by the library that both sides call."""
    name = f"{name_of(size, groups)}, by torch"

    def judge(ended):
        if ended.code != 0:
            return [Row(name, FAILED, ended.why_failed())]
        found = [json.loads(line) for line in ended.text.splitlines() if line.startswith('{"kind"')]
        return with_parts(name, [Row(f"{name}: {each['kind']} of {each['bytes']} bytes", PASSED,
                                     values={"call_us": each["us"], "bus_gb_per_s": each["bus_gb_per_s"]})
                                 for each in found])
    largest = 1 << (20 if place.is_pretended else 30)
    return Check(name, [place.python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", size,
                        SCRIPTS / "gpu_check" / "messages_by_torch.py", largest, groups],
                 judge, reason=place.why_no_torch())


def messages(place, work, config, size, groups):
    name = name_of(size, groups)
    results = work / name.replace(" ", "_")
    split = [] if groups == 1 else ["--ranks-per-experiment", str(size // groups)]

    def judge(ended):
        wrong = [line.strip() for line in ended.text.splitlines() if WRONG in line]
        if ended.code != 0:
            verdict = "mend: NCCL or the network, values arrived wrong" if wrong else None
            return [Row(name, FAILED, wrong[0] if wrong else ended.why_failed(), verdict)]
        rows = [figures(name, *line) for _, header, lines in tables(ended.text) if header[0] == "messages"
                for line in lines]
        slow = [] if place.is_pretended else [line for line in ended.text.splitlines() if line.startswith("slow: ")]
        if slow:
            return [Row(name, FAILED, "; ".join(slow), f"mend: {slow[0]}"), *rows]
        return rows and [Row(name, PASSED, "all values arrived right"), *rows]
    return Check(name, place.on_ranks(1 + size, place.program, "--backend", place.backend, config, "--results-dir",
                                      results, "--overwrite", *split), judge)


def figures(name, which, latency_us, gb_per_s):
    return Row(f"{name}: {which}", PASSED, values={"latency_us": float(latency_us), "bus_gb_per_s": float(gb_per_s)})


def kills(place, work, _):
    """A worker, then rank 0, is killed in a tuning under scripts/supervise.sh, as scripts/tune.sh starts it."""
    workers = min(2, max(1, len(place.gpus())))
    steps = 1 if place.has_double else 200  # so that the run is not over before the kill
    config = write_config(work / "kills.json", (1, 2), host_overhead="none", measure_steps=steps,
                          memory_limit="256MiB" if place.is_pretended else "1GiB")
    for victim in (1, 0):
        name = "worker killed" if victim else "rank 0 killed"
        folder = work / name.replace(" ", "_")
        yield Check(name, [sys.executable, "-B", SCRIPTS / "gpu_check" / "kill_tuning.py", victim, folder,
                           place.mpirun, "-n", 1 + workers, "--", place.program, "--backend", place.backend, config],
                    judge_of_kill(name))


def judge_of_kill(name):
    def judge(ended):
        said = [json.loads(line) for line in ended.text.splitlines() if line.startswith('{"victim"')]
        if not said:
            return [Row(name, FAILED, ended.why_failed())]
        values = {"end_after_kill_s": said[0]["end_after_kill_s"], "experiments_count": said[0]["experiments"]}
        faults = "; ".join(said[0]["faults"])
        return [Row(name, FAILED if faults else PASSED, faults or "it went on, nothing lost, nothing repeated",
                    values=values)]
    return judge
