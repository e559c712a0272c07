#!/usr/bin/env python3
r"""Shows what a tuning looks like on a terminal: writes docs/terminal.md with pictures of its start, middle and end.

    scripts/terminal_pictures.py                            # of examples/llama.json, into docs/terminal.md
    scripts/terminal_pictures.py examples/tiny.json -       # to stdout

The terminal is one of tmux (apt-get install tmux), once of 80 and once of 120 columns. Each picture is taken when the
terminal shows what it is of, which is asked for again and again. Figures are those of the machine, so that pages
that were made at different times differ.

Exit codes: 0 done, 1 what was to be seen did not come, 2 wrong usage or no tmux.
"""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "terminal.md"
WIDTHS, HEIGHT = (80, 120), 36
PATIENCE = 600  # seconds without what is waited for
MEASURED_MIDWAY = 3  # experiments that the picture of the middle has at least
PROMPT = "$"

FIRST = re.compile(r"(?m)^first: ")
MEASURED = re.compile(r"(?m)^\[\d+(?:/~\d+)? \d+s\] \S+ -> ")
RUNS = re.compile(r"\[\d+(?:/~\d+)? \d+s\] \S+ since ")
TABLE = re.compile(r"(?m)^\| +# \|")


class Missing(Exception):
    """What was to be seen did not come."""


def last_line(screen):
    return screen.rstrip("\n").rpartition("\n")[2]


def is_start(screen):
    return FIRST.search(screen) is not None and RUNS.match(last_line(screen)) is not None


def is_midway(screen):
    return len(MEASURED.findall(screen)) >= MEASURED_MIDWAY and RUNS.match(last_line(screen)) is not None


def is_end(screen):
    return TABLE.search(screen) is not None and last_line(screen) == PROMPT


MOMENTS = [
    ("At the start", is_start, "What is tuned, on what, what the machine can do, and how long it may take, before anything "
                               "was\nmeasured. The last line is rewritten twice a second."),
    ("Midway", is_midway, "A line for each experiment, and below them the one that is rewritten: what runs now, the time "
                          "left, the\nbest so far."),
    ("At the end", is_end, "That line is gone. Under the log is the result, which alone goes to stdout, what it must be "
                           "read with, and\nwhere the optimum is."),
]


def shown_of_end(screen, lines=HEIGHT):
    """Of all that was written: the last lines, but no part of a result."""
    written = screen.split("\n")
    begins = next(at for at in reversed(range(len(written))) if TABLE.match(written[at]))
    return "\n".join(written[min(begins, max(0, len(written) - lines)):])


class Terminal:
    """A terminal of tmux, with a server of its own."""

    def __init__(self, width):
        self.server = f"dstune-pictures-{os.getpid()}-{width}"
        self.tmux("new-session", "-d", "-x", width, "-y", HEIGHT, "-c", ROOT,
                  f"PS1='{PROMPT} ' exec bash --norc --noprofile")

    def __enter__(self):
        return self

    def __exit__(self, *fault):
        self.tmux("kill-server")

    def tmux(self, *words):
        command = ["tmux", "-L", self.server, "-f", "/dev/null", *map(str, words)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8").stdout

    def type(self, line):
        self.tmux("send-keys", "-l", line)
        self.tmux("send-keys", "Enter")

    def screen(self):
        """What was written, also what has left the terminal at its top."""
        shown = self.tmux("capture-pane", "-p", "-S", "-")
        return "\n".join(line.rstrip() for line in shown.split("\n")).strip("\n")

    def await_screen(self, shows, what):
        """The first screen that `shows` takes."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            screen = self.screen()
            if shows(screen):
                return screen
            if what != MOMENTS[-1][0] and is_end(screen):
                break
            time.sleep(0.05)
        raise Missing(f"{what}: not seen; the terminal shows\n{screen}")


def pictures(width, command):
    """The screens of MOMENTS, in their order."""
    with Terminal(width) as terminal:
        terminal.await_screen(lambda screen: screen == PROMPT, "the prompt")
        terminal.type(command)
        screens = [terminal.await_screen(shows, what) for what, shows, _ in MOMENTS]
    return [screens[0], screens[1], shown_of_end(screens[2])]


def block(screen):
    return "\n".join(f"    {line}".rstrip() for line in screen.split("\n"))


def page(command, screens):
    """@param screens  by width those of MOMENTS"""
    parts = ["# On a terminal",
             f"`{command}`, as terminals of {' and '.join(map(str, screens))} columns show it.\n"
             "`scripts/terminal_pictures.py` took these pictures, with tmux. What the lines say is in\n"
             "[results.md](results.md#progress)."]
    for width, taken in screens.items():
        parts.append(f"## {width} columns")
        for (moment, _, says), screen in zip(MOMENTS, taken):
            parts += [f"### {moment}", says, "<!-- text -->", block(screen)]
    return "\n\n".join(parts) + "\n"


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", nargs="?", default="examples/llama.json", metavar="CONFIG.json")
    parser.add_argument("page", nargs="?", default=str(PAGE), help="- is stdout; default: docs/terminal.md")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    if shutil.which("tmux") is None:
        print("terminal_pictures.py: there is no tmux here: apt-get install tmux", file=sys.stderr)
        return 2
    command = f"scripts/tune.sh {shlex.quote(options.config)} -n 3"
    try:
        subprocess.run([ROOT / "scripts" / "tune.sh", "--version"], check=True, stdout=subprocess.DEVNULL)  # builds
        text = page(command, {width: pictures(width, command) for width in WIDTHS})
    except (Missing, OSError, subprocess.CalledProcessError) as fault:
        print(f"terminal_pictures.py: {fault}", file=sys.stderr)
        return 1
    if options.page == "-":
        print(text, end="")
    else:
        pathlib.Path(options.page).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
