"""The groups collectives and kills: what goes between GPUs, and a tuning that loses a process."""
import json
import sys

from checks import Check, write_config
from place import SCRIPTS
from rows import FAILED, PASSED, Row, tables

SIZES = (2, 4, 8)  # GPUs
RIGHT, EVEN = "all values arrived right", "nobody is slow"


def collectives(place, work, _):
    """The program's own check of the machine: known values between every pair and around the ring, timed."""
    gpus = len(place.gpus())
    sizes = [size for size in SIZES if size <= gpus]
    if not sizes:
        yield Check("messages", reason="one GPU" if gpus else "no GPU")
        return
    config = write_config(work / "messages.json", preflight="only", host_overhead="none",
                          memory_limit="64MiB" if place.is_pretended else "1GiB")
    for size in sizes:
        yield messages(place, work, config, size, [])
    if sizes[-1] >= 4:
        yield messages(place, work, config, sizes[-1], ["--ranks-per-experiment", str(sizes[-1] // 2)])


def messages(place, work, config, size, groups):
    name = f"messages of {size} GPUs" if not groups else f"messages of two groups of {size // 2} GPUs at once"
    results = work / name.replace(" ", "_")

    def judge(ended):
        if ended.code != 0:
            return [Row(name, FAILED, ended.why_failed())]
        rows = [figures(name, *line) for _, header, lines in tables(ended.text) if header[0] == "messages"
                for line in lines]
        is_even = place.is_pretended or EVEN in ended.text
        if RIGHT not in ended.text or not is_even:
            said = [line for line in ended.text.splitlines() if line.strip() and not line.startswith(("|", "dstune"))]
            verdict = None if RIGHT in ended.text else "mend: NCCL or its network, values arrived wrong"
            return [Row(name, FAILED, said[-1] if said else "it said nothing", verdict), *rows]
        return rows and [Row(name, PASSED, RIGHT), *rows]
    return Check(name, place.on_ranks(1 + size, place.program, "--backend", place.backend, config, "--results-dir",
                                      results, "--overwrite", *groups), judge)


def figures(name, which, latency_us, gb_per_s):
    return Row(f"{name}: {which}", PASSED, values={"latency_us": float(latency_us), "bus_gb_per_s": float(gb_per_s)})


def kills(place, work, _):
    """A worker, then rank 0, is killed in a tuning under scripts/supervise.sh, as scripts/tune.sh starts it."""
    workers = min(2, max(1, len(place.gpus())))
    steps = 1 if place.is_pretended else 200  # so that the run is not over before the kill
    config = write_config(work / "kills.json", (1, 2), host_overhead="none", measure_steps=steps,
                          memory_limit="64MiB" if place.is_pretended else "1GiB")
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
