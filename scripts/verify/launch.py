"""Starts the workers, and again without the configuration that ended them."""
import json
import os
import pathlib
import subprocess
import sys
import time

from verify.tuned import InputFault

LAUNCHES = 5
SCRIPTS = pathlib.Path(__file__).resolve().parent.parent


# Of a fault that is none of the configuration's.
MISSING = ("ImportError:", "ModuleNotFoundError:")


class PickFails(RuntimeError):
    """DeepSpeed refuses the pick, or it does not fit: no run is needed to call that wrong."""


def environment_of(plan):
    first = next(iter(plan["configurations"].values()))["settings"]
    environment = dict(os.environ, OMP_NUM_THREADS=str(first["threads_per_rank"]))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(SCRIPTS), os.environ.get("PYTHONPATH")]))
    # DeepSpeed compiles its optimizers with the ninja beside this Python.
    environment["PATH"] = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")])
    if first["backend"] == "cpu":
        environment["DS_ACCELERATOR"] = "cpu"
    return environment


def torchrun(plan, plan_path, events_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(plan["ranks"]),
               "-m", "verify.worker", str(plan_path), str(events_path)]
    return subprocess.run(command, env=environment_of(plan), stdout=sys.stderr, check=False).returncode


def read_events(path):
    events = []
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        try:
            events.append(json.loads(line))
        except ValueError:
            continue  # torn by the end of the process that wrote it
    return events


def read_runs(folder):
    """(plan, events) of runs that came to their end, as run() left them."""
    try:
        plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
        events = read_events(folder / "events.jsonl")
    except (OSError, ValueError) as fault:
        raise InputFault(f"no runs in {folder}: {fault}") from fault
    if not events or events[-1]["event"] != "ended":
        raise InputFault(f"the runs in {folder} were not ended")
    if any(" " not in key for event in events for key in event.get("collectives") or ()):
        raise InputFault(f"the runs in {folder} are of an earlier version, which recorded no types: run again")
    return plan, events


def fault_of(events):
    """(name, reason, whether that is the configuration's) of what the last launch was at when it ended too soon."""
    started = [event for event in events if event["event"] == "started"]
    failed = [event for event in events if event["event"] == "failed"]
    reason = failed[-1]["reason"] if failed else "the processes ended, see the log"
    return (started[-1]["name"] if started else None), reason, bool(failed) and not reason.startswith(MISSING)


def run(plan, folder, start=torchrun):
    """(events of the launch that came to its end, {name: reason} of what failed); RuntimeError if none did,
    PickFails if it is the pick that fails."""
    plan_path, events_path, failed = folder / "plan.json", folder / "events.jsonl", {}
    for _ in range(LAUNCHES):
        plan_path.write_text(json.dumps(dict(plan, failed=list(failed)), indent=1), encoding="utf-8")
        events_path.write_text("", encoding="utf-8")
        begin = time.monotonic()
        code = start(plan, plan_path, events_path)
        events = read_events(events_path)
        if code == 0 and events and events[-1]["event"] == "ended":
            return events, failed
        name, reason, is_of_configuration = fault_of(events)
        if name == plan["reference"] and is_of_configuration:
            raise PickFails(f"{name} failed in DeepSpeed: {reason}")
        if name is None or name == plan["reference"]:
            raise RuntimeError(f"the run in DeepSpeed ended with exit code {code}: {reason}")
        failed[name] = reason
        if plan["budget_s"] is not None:
            plan = dict(plan, budget_s=max(0.0, plan["budget_s"] - (time.monotonic() - begin)))
    raise RuntimeError(f"{LAUNCHES} configurations failed, the last: {', '.join(failed)}")
