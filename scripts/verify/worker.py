"""Runs configurations in the real DeepSpeed, on every rank: torchrun -m verify.worker PLAN.json EVENTS.jsonl

A line of EVENTS.jsonl per visit, by rank 0, before the next begins: a run that dies says in which it did.
"""
import json
import os
import pathlib
import sys
import time
import traceback

from calibration.terminal import shown
from verify.schedule import TIME, Schedule


def run(plan, bench, write, clock=time.monotonic):
    """All visits of the schedule. bench: `agree(value)`, rank 0's on all ranks, and `visit(kind, configuration)`."""
    schedule = Schedule(plan)
    begin = None
    while True:
        visit = bench.agree(schedule.next(0.0 if begin is None else clock() - begin))
        if visit is None:
            break
        kind, name, number = visit
        if name in plan["failed"]:
            schedule.fails(name)
            continue
        started = clock()
        write({"event": "started", "kind": kind, "name": name, "pass": number})
        result = bench.visit(kind, plan["configurations"][name])
        ended = clock()
        if begin is None:
            begin = ended  # what is compiled and loaded once is not of the budget
        if kind == TIME:
            schedule.took_s(name, ended - started)
        write(dict(result, event="visit", kind=kind, name=name, at_s=(started + ended) / 2 - begin,
                   visit_s=ended - started, **{"pass": number}))
    write({"event": "ended", "dropped": schedule.dropped})


def said(event):
    what = f"{event['step_s'] * 1e3:.1f} ms per step" if "step_s" in event else f"loss {event['losses'][-1]:.3f}"
    return f"verify: {event['kind']} {event['name']}: {what}"


def main(arguments):
    plan = json.loads(pathlib.Path(arguments[0]).read_text(encoding="utf-8"))
    from verify.real import Bench
    bench = Bench(plan)
    events = open(arguments[1], "a", encoding="utf-8") if bench.rank == 0 else None

    def write(event):
        if events is not None:
            events.write(json.dumps(event) + "\n")
            events.flush()
            if event["event"] == "visit":
                print(shown(said(event)), file=sys.stderr, flush=True)

    write(dict(bench.about(), event="about"))
    try:
        run(plan, bench, write)
    except Exception as fault:  # the ranks may be at different collectives: no visit can follow
        traceback.print_exc()
        write({"event": "failed", "reason": f"{type(fault).__name__}: {fault}"[:500]})
        sys.stderr.flush()
        os._exit(3)
    bench.close()


if __name__ == "__main__":
    main(sys.argv[1:])
