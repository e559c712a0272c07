#!/usr/bin/env python3
"""Writes tests/data/offload_fixture.json: what DeepSpeed's ZeRO does with tensors on the host, as DeepSpeed does it.

    pip install torch deepspeed && python3 scripts/make_offload_fixture.py

    --list         names the cases and leaves it at that
    --only NAME    prints one row, and what DeepSpeed says
    --processes N  so many cases at a time (default 1)
    --sites        says, beside, which of DeepSpeed's statements no rule of offload_recording/purposes.py names
    FILE           is written instead

DeepSpeed runs as one rank of several with a GPU that torch only pretends to have (offload_recording/pretended_device.py
says how, and what takes the hardware's place), so there are no times here: only what is allocated where, what is
copied, what the host waits for, and what it computes. The cases are in offload_recording/cases.py: from stage 1 with
optimizer states on the host to stage 3 with parameters there too, or alone, drawn so that within such a placement each pair of
values occurs. Each takes two optimizer steps, of which the second is in the row.

The file has the models once: `parameters` are names and shapes in the order of registration, `modules` the leaves in
the order in which they run, with their kinds and which parameters they have. A row has, beside names and what was
asked:

    parameter_groups  weight decay and places of the parameters
    setup         bytes in each tier after deepspeed.initialize() and, inside it, when pinned and pageable host memory
                  ("host") were most in sum
    steady        bytes that are alive after the second step, by tier and purpose
    step          the same peak within the second step
    pins          requests for pinned memory in their order: purpose, bytes and, if the memory was freed again, how many
                  requests had been made by then
    pinned        their sum; the sum if each is rounded up to a power of two; and what torch's caching allocator takes
                  for them, which rounds like this, hands out freed blocks of the rounded size again, and keeps all
    phases        of the second step, "MICRO_STEP forward|backward|step":
        copies       stream, purpose, direction, the host's tier, whether the host waits for it, calls and bytes sent
        waits        of the host for events and streams
        reads        of device scalars by the host, each of which waits
        host_passes  over elements in the host's memory: what, calls and elements

A copy that converts sends what torch sends: a blocking one is converted by the host through a temporary there, which is
in the peaks and in the passes.

What is not there: device memory at its peaks, NVMe, and waits that depend on how far the device is: events are always
over when asked, so DeepSpeed never waits because too many gathers are under way. Pinned memory that was freed is handed
out at once, where torch first waits for the copies from it.
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import sys
import traceback

from offload_recording import cases

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXTURE = ROOT / "tests/data/offload_fixture.json"


def try_to_record(case):
    from offload_recording import pretended_device  # not before it is needed: --list shall not ask for torch

    os.dup2(2, 1)  # what DeepSpeed prints
    try:
        return (case["name"], *pretended_device.record(case), None)
    except Exception:  # the others are recorded all the same
        return case["name"], None, {}, traceback.format_exc()


def text_of(rows):
    import deepspeed
    import torch

    models = {name: dict(parameters=cases.parameters_of(name), modules=cases.modules_of(name))
              for name in cases.MODELS}
    return (f'{{\n "made_by": "scripts/make_offload_fixture.py", "torch": "{torch.__version__}", '
            f'"deepspeed": "{deepspeed.__version__.strip()}",\n "models": {{\n' +
            ",\n".join(f'  "{name}": {json.dumps(model)}' for name, model in models.items()) + '\n },\n "rows": [\n' +
            ",\n".join("  " + json.dumps(row, separators=(",", ":")) for row in rows) + "\n ]\n}\n")


def record_all(found, processes):
    """Rows in the order of the cases, each from a process of its own; and the unnamed sites."""
    import deepspeed.runtime.engine  # noqa: F401: so that the forks have it
    from offload_recording import pretended_device  # noqa: F401: likewise

    rows, unnamed, failed = {}, {}, 0
    with multiprocessing.get_context("fork").Pool(processes, maxtasksperchild=1) as pool:
        for name, row, sites, fault in pool.imap(try_to_record, found, chunksize=1):
            if fault:
                failed += 1
                print(f"{name}:\n{fault}", file=sys.stderr)
                continue
            rows[name] = row
            for site, times in sites.items():
                unnamed[site] = unnamed.get(site, 0) + times
            print(name, file=sys.stderr, flush=True)
    if failed:
        sys.exit(f"{failed} cases failed; nothing is written")
    return list(rows.values()), unnamed


def main():
    parser = argparse.ArgumentParser(description="Records what DeepSpeed does with tensors on the host.")
    parser.add_argument("file", nargs="?", type=pathlib.Path, default=FIXTURE)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", metavar="NAME")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--sites", action="store_true")
    options = parser.parse_args()
    found = [case for case in cases.drawn() if options.only in (None, case["name"])]
    if not found:
        sys.exit(f"no case is called {options.only}")
    if options.list:
        print("\n".join(case["name"] for case in found))
        return
    os.environ.update(DS_ACCELERATOR="cpu", CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")
    rows, unnamed = record_all(found, options.processes)
    if options.sites:
        for site, times in sorted(unnamed.items(), key=str):
            print(times, *site, file=sys.stderr)
    if options.only:
        print(json.dumps(rows[0], indent=1))
    else:
        options.file.write_text(text_of(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
