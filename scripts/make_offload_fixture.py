#!/usr/bin/env python3
"""Writes tests/data/offload_fixture.json: what DeepSpeed's ZeRO does with tensors on the host, as DeepSpeed does it.

    pip install torch deepspeed && python3 scripts/make_offload_fixture.py

    --list         names the cases and leaves it at that
    --only NAME    prints one row, and what DeepSpeed says
    --add          keeps the rows that the file has and records the others
    --processes N  so many cases at a time (default 1)
    --sites        says, beside, which of DeepSpeed's statements no rule of offload_recording/purposes.py names
    FILE           is written instead

DeepSpeed runs as one rank of several with a GPU that torch only pretends to have (offload_recording/runs.py says how,
and pretended_device.py what takes the hardware's place), so there are no times here: only what is allocated where, what
is copied, what the host waits for, and what it computes. The cases are in offload_recording/cases.py, from stage 1 with
optimizer states on the host to stage 3 with parameters there too, or alone, and in drive_cases.py, where DeepSpeed
swaps to a drive that keeps the lengths of its files (pretended_drive.py). They are drawn so that within such a
placement each pair of values occurs. Each takes two optimizer steps, of which the second is in the row; with a drive
three, as states are made in the first and what is fetched when settles in the second, and the third is in the row.

The file has the models once: `parameters` are names and shapes in the order of registration, `modules` the leaves in
the order in which they run, with their kinds and which parameters they have. A row has, beside names and what was
asked:

    parameter_groups  weight decay and places of the parameters
    setup         bytes in each tier after deepspeed.initialize() and, inside it, when pinned and pageable host memory
                  ("host") were most in sum
    steady        bytes that are alive after the last step, by tier and purpose
    step          the same peak within the last step
    pins          requests for pinned memory in their order: purpose, bytes and, if the memory was freed again, how many
                  requests had been made by then
    pinned        their sum; the sum if each is rounded up to a power of two; and what torch's caching allocator takes
                  for them, which rounds like this, hands out freed blocks of the rounded size again, and keeps all
    phases        of the last step, "MICRO_STEP forward|backward|step":
        copies       stream, purpose, direction, the host's tier, whether the host waits for it, calls and bytes sent
        waits        of the host for events and streams
        reads        of device scalars by the host, each of which waits
        host_passes  over elements in the host's memory: what, calls and elements

Rows with a drive have a tier more, "locked": memory that mlock() keeps, of the exact size and unknown to CUDA, and in
the peaks it counts as the other two do. What they have besides:

    setup.drive, phases.*.drive  what is sent, of the lengths that are asked for: purpose ("master", "state" of the
                  optimizer, "gradient", "parameter"), "read" or "write", calls and bytes. Waits for the drive are among
                  `waits`, as "drive ...", one for all operations that a handle has under way
    locked        requests for locked memory, as `pins`
    files         after the last step: their number and bytes by purpose
    before_step   as steady, after the last backward of the last step. A view keeps all of its tensor: where the tail of
                  a gradient stays on the device, so does the gradient
    first_step    the peak within the first step
    first_phases  its phases (stage3_nvme)

Beside the rows are `deaths`, of offload_recording/deaths.py: what is `asked`, and, unless nothing happens in three
steps, how DeepSpeed `dies`: the phase ("setup", or "STEP MICRO_STEP forward|backward|step", counted from 0), the
exception's type, the last line of its message, the function and the statement.

A copy that converts sends what torch sends: a blocking one is converted by the host through a temporary there, which is
in the peaks and in the passes.

What is not there: device memory at its peaks, and waits that depend on how far the device is: events are always
over when asked, so DeepSpeed never waits because too many gathers are under way. Pinned memory that was freed is handed
out at once, where torch first waits for the copies from it. What is allocated and never touched (DeepSpeed's example of
its parameter buffers) has no bytes.
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import sys
import traceback

from offload_recording import cases, deaths, drive_cases

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXTURE = ROOT / "tests/data/offload_fixture.json"


def try_to_record(case):
    from offload_recording import runs  # not before it is needed: --list shall not ask for torch

    os.dup2(2, 1)  # what DeepSpeed prints
    try:
        if "asked" in case:
            return case["name"], deaths.line_of(case, *runs.outcome(case)), {}, None
        return (case["name"], *runs.record(case), None)
    except Exception:  # the others are recorded all the same
        return case["name"], None, {}, traceback.format_exc()


def text_of(rows, died):
    """The file, of lines by the names of what they record."""
    import deepspeed
    import torch

    models = {name: json.dumps(dict(parameters=cases.parameters_of(name), modules=cases.modules_of(name)))
              for name in cases.MODELS}
    return (f'{{\n "made_by": "scripts/make_offload_fixture.py", "torch": "{torch.__version__}", '
            f'"deepspeed": "{deepspeed.__version__.strip()}",\n "models": {{\n' +
            ",\n".join(f'  "{name}": {model}' for name, model in models.items()) + '\n },\n "rows": [\n' +
            ",\n".join("  " + row for row in rows) + '\n ],\n "deaths": [\n' +
            ",\n".join("  " + line for line in died) + "\n ]\n}\n")


def lines_in(file):
    """What a file of text_of() has already, by name."""
    found = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith('  {"name":'):
            row = line.strip().removesuffix(",")
            found[json.loads(row)["name"]] = row
    return found


def record_all(found, processes):
    """Lines by the names of the cases, each from a process of its own; and the unnamed sites."""
    import deepspeed.runtime.engine  # noqa: F401: so that the forks have it
    from offload_recording import runs  # noqa: F401: likewise

    lines, unnamed, failed = {}, {}, 0
    with multiprocessing.get_context("fork").Pool(processes, maxtasksperchild=1) as pool:
        for name, row, sites, fault in pool.imap(try_to_record, found, chunksize=1):
            if fault:
                failed += 1
                print(f"{name}:\n{fault}", file=sys.stderr)
                continue
            lines[name] = json.dumps(row, separators=(",", ":"))
            for site, times in sites.items():
                unnamed[site] = unnamed.get(site, 0) + times
            print(name, file=sys.stderr, flush=True)
    if failed:
        sys.exit(f"{failed} cases failed; nothing is written")
    return lines, unnamed


def options_of():
    parser = argparse.ArgumentParser(description="Records what DeepSpeed does with tensors on the host.")
    parser.add_argument("file", nargs="?", type=pathlib.Path, default=FIXTURE)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", metavar="NAME")
    parser.add_argument("--add", action="store_true")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--sites", action="store_true")
    return parser.parse_args()


def main():
    options = options_of()
    rows, may_die = cases.drawn() + drive_cases.drawn(), deaths.drawn()
    known = lines_in(options.file) if options.add else {}
    found = [case for case in rows + may_die if options.only in (None, case["name"]) and case["name"] not in known]
    if options.only and not found:
        sys.exit(f"no case is called {options.only}")
    if options.list:
        print("\n".join(case["name"] for case in found))
        return
    os.environ.update(DS_ACCELERATOR="cpu", CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")
    lines, unnamed = record_all(found, options.processes)
    if options.sites:
        for site, times in sorted(unnamed.items(), key=str):
            print(times, *site, file=sys.stderr)
    if options.only:
        print(json.dumps(json.loads(lines[options.only]), indent=1))
        return
    lines.update(known)
    texts = [[lines[case["name"]] for case in part] for part in (rows, may_die)]
    options.file.write_text(text_of(*texts), encoding="utf-8")


if __name__ == "__main__":
    main()
