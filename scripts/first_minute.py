#!/usr/bin/env python3
r"""Measures how soon somebody new sees something on this machine, and prints it beside its limits.

    scripts/first_minute.py                                # all of it, with what lies in build
    scripts/first_minute.py wheel --wheel dstune_mpi-*.whl
    scripts/first_minute.py clone --repository https://host/dstune-mpi.git --example examples/tiny.json
    scripts/first_minute.py tuning

wheel   a new Python environment, pip without a network, the plan of a 7 B model for eight GPUs
clone   git clone, then scripts/tune.sh as in README's quick start, until the table of results is there. The compiler's
        cache is empty. What scripts/setup.sh installs is installed only where it is missing.
tuning  scripts/tune.sh of this checkout, once it is built, with two workers: until its first line, and until that of
        its first experiment

The machine is one that no tuning has seen: the folder of profiles and of what searches learnt is empty, too. Where the
Python in use has DeepSpeed the clone's tuning is preceded by the calibration, which has a row of its own.

Exit codes: 0 done, 1 a limit is missed, 2 wrong usage or a command that failed.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLAN = ["--plan", "--gpus", "8", "--model", "Qwen/Qwen2.5-7B-Instruct", "--sequence-length", "2048",
        "--train-batch-size", "512", "--memory-limit", "79GiB"]
WHEEL_LIMIT, CLONE_LIMIT, FIRST_LINE_LIMIT, FIRST_EXPERIMENT_LIMIT = 15, 300, 2, 10  # seconds
DEADLOCK = 3600  # seconds after which a command is taken for one that hangs

TUNES = re.compile(r"dstune-mpi: tuning ")
CALIBRATES = re.compile(r"tune: DeepSpeed is installed, ")
INSTALLS = re.compile(r"setup: installing (.*)")
BEGINS = re.compile(r"first: ")
EXPERIMENT = re.compile(r"\[\d+(/~\d+)? \d+s\] \S+ -> ")
TABLE = re.compile(r"\| +# \|")
PLANNED = re.compile(r"\| stage \|")


class Failed(Exception):
    """What was to be measured did not come."""


class Row:
    """A time, and its limit where it has one; parts of the row before have none."""

    def __init__(self, what, seconds, limit=None):
        self.what, self.seconds, self.limit = what, seconds, limit

    def verdict(self):
        if self.limit is None:
            return ""
        return "met" if self.seconds <= self.limit else "missed"

    def cells(self):
        return [self.what, f"{self.seconds:.1f} s", "" if self.limit is None else f"{self.limit} s", self.verdict()]

    def as_json(self):
        return {"what": self.what, "seconds": round(self.seconds, 3), "limit_s": self.limit,
                "verdict": self.verdict() or None}


def table(rows):
    lines = ["| what | time | limit | verdict |", "|:--|--:|--:|:--|"]
    return "\n".join(lines + [f"| {' | '.join(row.cells())} |" for row in rows])


def first(lines, pattern):
    """When the first line that begins with the pattern came, or None. @param lines  [(seconds, line)]"""
    return next((seconds for seconds, line in lines if pattern.match(line)), None)


def needed(seconds, what, lines):
    if seconds is None:
        said = [line for _, line in lines if line.strip()][-1:]
        raise Failed(f"{what} did not come; the last line was: {' '.join(said) or 'none'}")
    return seconds


def rows_of_clone(cloned, lines, example):
    """@param cloned  seconds that git took
    @param lines  what scripts/tune.sh then wrote, with seconds since it began"""
    tunes = needed(first(lines, TUNES), "the first line of the tuning", lines)
    ended = needed(first(lines, TABLE), "the table of results", lines)
    calibrates = first(lines, CALIBRATES)
    built = tunes if calibrates is None else calibrates
    rows = [Row(f"clone to the table of {example}", cloned + ended, CLONE_LIMIT), Row("- git clone", cloned),
            Row("- set-up and build, nothing in ccache", built)]
    if calibrates is not None:
        rows.append(Row("- calibration, which the first tuning beside a DeepSpeed has", tunes - calibrates))
    return rows + [Row("- tuning, from its first line to the table", ended - tunes)]


def installed_note(lines):
    names = [found.group(1) for _, line in lines if (found := INSTALLS.match(line))]
    return f"installed in that time: {names[0]}" if names else "what scripts/setup.sh installs was there before"


def rows_of_tuning(lines, example):
    tunes = needed(first(lines, TUNES), "the first line", lines)
    begins = needed(first(lines, BEGINS), "the line of what begins", lines)
    ended = needed(first(lines, EXPERIMENT), "the first experiment's line", lines)
    return [Row(f"start of {example} to its first line", tunes, FIRST_LINE_LIMIT),
            Row(f"start of {example} to its first experiment's line", ended, FIRST_EXPERIMENT_LIMIT),
            Row("- from the first line, plan and checks of the machine", begins - tunes),
            Row("- the first experiment", ended - begins)]


def environment_of_newcomer(folder):
    """This process's, without settings of the build and of the program, and with empty caches."""
    ours = {name: value for name, value in os.environ.items()
            if not name.startswith(("CCACHE_", "DSTUNE_", "CMAKE_"))}
    return ours | {"CCACHE_DIR": str(folder / "ccache"), "XDG_CACHE_HOME": str(folder / "cache")}


def watch(command, folder, environment, until=None):
    """Runs a command, and ends it by SIGTERM once a line begins with `until`.

    @returns [(seconds since it began, line)] of both streams
    """
    lines, lock = [], threading.Lock()
    began = time.monotonic()
    process = subprocess.Popen([str(word) for word in command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")

    def read(stream):
        for line in stream:
            with lock:
                lines.append((time.monotonic() - began, line.rstrip("\n")))
            if until is not None and until.match(line):
                process.terminate()

    readers = [threading.Thread(target=read, args=(stream,)) for stream in (process.stdout, process.stderr)]
    for reader in readers:
        reader.start()
    try:
        code = process.wait(DEADLOCK)
    except BaseException:
        process.terminate()
        raise
    finally:
        for reader in readers:
            reader.join()
        process.stdout.close()
        process.stderr.close()
    was_ended = until is not None and first(lines, until) is not None
    if code != 0 and not was_ended:
        said = "\n".join(line for _, line in lines[-20:])
        raise Failed(f"{' '.join(str(word) for word in command)}: exit code {code}\n{said}")
    return sorted(lines, key=lambda line: line[0])


def duration(command, folder, environment, must_say=None):
    began = time.monotonic()
    lines = watch(command, folder, environment)
    taken = time.monotonic() - began
    if must_say is not None:
        needed(first(lines, must_say), f"what {command[0]} was to print", lines)
    return taken


def measure_wheel(options, folder):
    wheel = options.wheel or max(ROOT.glob("build/*.whl"), key=lambda path: path.stat().st_mtime, default=None)
    if wheel is None or not wheel.exists():
        raise Failed("there is no wheel in build: scripts/wheel.sh makes one, or --wheel names one")
    environment, venv = environment_of_newcomer(folder), folder / "venv"
    commands = [[sys.executable, "-m", "venv", venv],
                [venv / "bin" / "pip", "install", "--no-index", "--no-deps", wheel.resolve()]]
    times = [duration(command, folder, environment) for command in commands]
    times.append(duration([venv / "bin" / "dstune", *PLAN], folder, environment, must_say=PLANNED))
    parts = ["- a new Python environment", "- pip install, no network", "- dstune --plan, a 7 B model on eight GPUs"]
    return [Row("wheel to the first answer", sum(times), WHEEL_LIMIT), *map(Row, parts, times)], []


def measure_clone(options, folder):
    environment, clone = environment_of_newcomer(folder), folder / "dstune-mpi"
    cloned = duration(["git", "clone", options.repository, clone], folder, environment)
    example = options.example or "examples/gpt2-30m.json"
    lines = watch(["scripts/tune.sh", *([options.example] if options.example else [])], clone, environment)
    return rows_of_clone(cloned, lines, example), [f"clone: {installed_note(lines)}"]


def measure_tuning(options, folder):
    environment = environment_of_newcomer(folder)
    tune = ROOT / "scripts" / "tune.sh"
    watch([tune, "--version"], folder, environment)  # builds what is not up to date
    example = options.example or "examples/gpt2-30m.json"
    lines = watch([tune, ROOT / example, "-n", "3", "--backend", "cpu", "--no-calibrate"], folder, environment,
                  until=EXPERIMENT)
    return rows_of_tuning(lines, example), []


MEASURES = {"wheel": measure_wheel, "clone": measure_clone, "tuning": measure_tuning}


def processor():
    try:
        names = re.findall(r"(?m)^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def machine_line():
    return f"{len(os.sched_getaffinity(0))} cores of {processor()}, load {os.getloadavg()[0]:.1f} at the start"


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(MEASURES)}; without any: all")
    parser.add_argument("--wheel", type=pathlib.Path, help="default: the newest in build")
    parser.add_argument("--repository", default=str(ROOT), help="what is cloned; default: this checkout")
    parser.add_argument("--example", help="default: tune.sh's own, examples/gpt2-30m.json")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="gets the same figures as JSON")
    options = parser.parse_args(arguments)
    unknown = [part for part in options.parts if part not in MEASURES]
    if unknown:
        parser.error(f"no part is called {', '.join(unknown)}: there are {', '.join(MEASURES)}")
    options.parts = options.parts or list(MEASURES)
    return options


def report(options):
    machine, rows, notes = machine_line(), [], []
    for part in options.parts:
        with tempfile.TemporaryDirectory(prefix="dstune-first-minute-") as folder:
            measured, said = MEASURES[part](options, pathlib.Path(folder))
        rows += measured
        notes += said
    print("\n".join([table(rows), "", machine, *notes]))
    if options.json:
        written = {"machine": machine, "notes": notes, "rows": [row.as_json() for row in rows]}
        options.json.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return 1 if any(row.verdict() == "missed" for row in rows) else 0


def main():
    try:
        return report(parse(sys.argv[1:]))
    except (OSError, Failed, subprocess.TimeoutExpired) as fault:
        print(f"first_minute.py: {fault}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
