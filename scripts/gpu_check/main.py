"""What scripts/gpu_check.sh runs: group after group, check after check, until all is done or time is over."""
import argparse
import os
import pathlib
import re
import signal
import sys
import time

import beside_torch
import ending
import frontier
import machine
import programs
import several_gpus
from checks import Check, not_run
from place import Missing, Place, ask
from report import Report

GROUPS = {"machine": machine.checks, "smoke": programs.smoke, "tests": programs.tests, "kernels": beside_torch.kernels,
          "host": beside_torch.host, "collectives": several_gpus.collectives, "steps": beside_torch.steps,
          "frontier": frontier.checks, "kills": several_gpus.kills, "sanitizers": programs.sanitizers}
NO_TIME = "no time left"


def groups_in(text):
    names = text.split(",")
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no group {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    return names


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="scripts/gpu_check.sh", description="Checks a machine with a GPU: docs/gpu.md.",
        epilog="Exit codes: 0 nothing failed, 1 something did, 2 no GPU or wrong usage.")
    parser.add_argument("output", nargs="?", type=pathlib.Path, default=pathlib.Path("gpu_check"), metavar="OUTPUT_DIR",
                        help="gets checks.jsonl, report.md and logs; all of it goes to OUTPUT_DIR.tar.gz")
    parser.add_argument("--preset", help="the build of a tree (default: cuda; pretended: default)")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="of each check, instead of its own")
    parser.add_argument("--minutes", type=float, default=30, help="for all of it (default: 30)")
    parser.add_argument("--only", type=groups_in, default=list(GROUPS), metavar="GROUP[,GROUP...]",
                        help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--skip", type=groups_in, default=[], metavar="GROUP[,GROUP...]")
    parser.add_argument("--long", action="store_true", help="all cases of all tests")
    parser.add_argument("--pretend", action="store_true",
                        help="run every line without a GPU, on CUDA on the host and the CPU: the figures mean nothing")
    return parser.parse_args(arguments)


class Session:
    """One run of the checks."""

    def __init__(self, place, options, report):
        self.place, self.options, self.report = place, options, report
        self.work = report.output / "work"
        self.work.mkdir(exist_ok=True)
        self.end = time.monotonic() + 60 * options.minutes

    def left_s(self):
        return self.end - time.monotonic()

    def run_group(self, group):
        if self.left_s() <= 0:
            self.report.add(group, not_run(group, NO_TIME))
            return
        for check in GROUPS[group](self.place, self.work, self.options):
            self.run_check(group, check)

    def run_check(self, group, check):
        limit_s, left_s = self.options.limit or check.limit_s, self.left_s()
        if check.reason or left_s <= 0:
            self.report.add(group, not_run(check.name, check.reason or NO_TIME))
            return
        log = self.report.output / f"{re.sub('[^A-Za-z0-9_.-]', '_', check.name)}.log"
        environment = dict(self.place.environment(self.work), **check.environment)
        try:
            ended = ending.run(check.command, log, min(limit_s, left_s), environment)
        except ending.Interrupted:
            self.report.add(group, not_run(check.name, "a signal ended the session"), log=log)
            raise
        if ended.limit_s is not None and ended.limit_s < limit_s:
            self.report.add(group, not_run(check.name, f"{NO_TIME}: ended after {ended.limit_s:.0f} s"), log=log)
            return
        first, *parts = check.rows(ended)
        self.report.add(group, first, ended.seconds, log)
        for part in parts:
            self.report.add(group, part, log=log)

    def run(self):
        try:
            for group in GROUPS:
                if group in self.options.only and group not in self.options.skip:
                    self.run_group(group)
            at_signals(signal.SIG_IGN)  # while all is packed
        except ending.Interrupted:
            self.report.say("\nended by a signal: what follows did not run")
            self.report.end()
            return False
        return self.report.end()


def at_signals(handler):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


def interrupt(*_):
    at_signals(signal.SIG_IGN)
    raise ending.Interrupted


def begin_report(place, options):
    """None where the output folder cannot be made."""
    output = pathlib.Path(os.path.abspath(options.output))
    output.mkdir(parents=True, exist_ok=True)
    report = Report(output, options.pretend)
    manifest = place.root / "MANIFEST"
    about = manifest.read_text(encoding="utf-8") if manifest.is_file() else ""
    commit = re.search(", commit [0-9a-f]+$", about, re.MULTILINE)
    version = ask([place.program, "--version"], 60).splitlines()
    name = version[0] if version else str(place.program)
    report.begin(name, [] if options.pretend else machine.gpu_names(),
                 commit.group(0) if commit and ", commit" not in name else "")
    return report


def main():
    options = parse(sys.argv[1:])
    if not options.pretend and not machine.has_gpu():
        print("gpu_check: no NVIDIA GPU is usable here", file=sys.stderr)
        return 2
    try:
        place = Place(os.environ["DSTUNE_GPU_CHECK_ROOT"], options.preset, options.pretend)
        lacking = machine.find_libraries(place.programs())
        report = begin_report(place, options)
    except (Missing, OSError) as fault:
        print(f"gpu_check: {fault}", file=sys.stderr)
        return 2
    at_signals(interrupt)
    if lacking:
        detail = f"not found: {' '.join(lacking)}: set LD_LIBRARY_PATH, or bundle --with-cuda-libraries"
        report.add("machine", Check("libraries").failed(detail))
        report.end()
        return 1
    return 0 if Session(place, options, report).run() else 1


if __name__ == "__main__":
    sys.exit(main())
