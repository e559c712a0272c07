"""Kills one rank of a tuning after its first experiment: it must go on by itself to an optimum, with every experiment
measured once.

usage: kill_tuning.py RANK FOLDER MPIRUN [ITS OPTION...] -- PROGRAM [ARGUMENT...] CONFIG.json

Prints one line of JSON. Exit codes: 0 it went on, 1 it did not.
"""
import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

SUPERVISE = pathlib.Path(__file__).resolve().parent.parent / "supervise.sh"
MARK = "DSTUNE_KILL_TUNING"
PAUSE_S = 0.01  # between two looks at the journal


def finished(results):
    """(name, repetition) of experiments whose records are whole, without those that lost a worker."""
    try:
        lines = (results / "journal.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    except OSError:
        return []
    records = [record for record in map(json.loads, lines) if record["type"] == "finished"]
    return [(record["experiment"]["name"], record["experiment"].get("repetition", 0)) for record in records
            if "worker_lost" not in json.dumps(record["outcome"]) and not record["experiment"].get("is_reference")]


def is_rank(entry, mark, rank):
    variables = (entry / "environ").read_bytes().split(b"\0")
    return (f"{MARK}={mark}".encode() in variables and f"OMPI_COMM_WORLD_RANK={rank}".encode() in variables
            and os.path.basename(os.readlink(entry / "exe")).startswith("dstune-mpi"))


def processes_of(mark, rank):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and is_rank(entry, mark, rank):
                found.append(int(entry.name))
        except OSError:
            continue  # it has ended, or is somebody else's
    return found


def kill_when_measured(tuning, mark, rank, results):
    """Returns whether it came to that."""
    while tuning.poll() is None:
        victims = processes_of(mark, rank) if finished(results) else []
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        if victims:
            return True
        time.sleep(PAUSE_S)
    return False


def wanted_count(config):
    """Of experiments, of a configuration as the checks write it."""
    stages = config["zero_optimization"]["stage"]
    return len(config["train_micro_batch_size_per_gpu"]) * (4 if stages == "all" else len(stages))


def faults_of(was_killed, code, results, wanted):
    counts = collections.Counter(finished(results))
    names = {name for name, _ in counts}
    faults = [] if was_killed else ["it was over before the kill"]
    faults += [f"exit code {code}"] if code else []
    faults += [f"{name} was measured {count} times" for (name, _), count in counts.items() if count > 1]
    faults += [f"{len(names)} experiments of {wanted}"] if len(names) < wanted else []
    faults += [] if (results / "ds_config_optimal.json").is_file() else ["no optimum"]
    return faults


def main():
    rank, folder, command = int(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    results, mark = folder / "results", str(os.getpid())
    with subprocess.Popen([SUPERVISE, *command, "--results-dir", results], cwd=folder, stdin=subprocess.DEVNULL,
                          env=dict(os.environ, **{MARK: mark})) as tuning:
        was_killed = kill_when_measured(tuning, mark, rank, results)
        begin = time.monotonic()
        code = tuning.wait()
    wanted = wanted_count(json.loads(pathlib.Path(command[-1]).read_text(encoding="utf-8")))
    faults = faults_of(was_killed, code, results, wanted)
    print(json.dumps({"victim": rank, "exit_code": code, "experiments": len({name for name, _ in finished(results)}),
                      "end_after_kill_s": round(time.monotonic() - begin, 2), "faults": faults}), flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
