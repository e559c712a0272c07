"""Runs a program with a limit, and ends all that it started: mpirun gives its ranks process groups of their own, so
they are found by a mark in their environment."""
import os
import pathlib
import signal
import subprocess
import time
import uuid

MARK = "DSTUNE_GPU_CHECK_MARK"
GRACE_S = 5  # between a request to end and the end


class Interrupted(Exception):
    """A signal asked this program to end."""


class Ended:
    """How a program ended: its exit code (minus the signal that ended it), what it printed, and how long it ran."""

    def __init__(self, code, text, seconds, limit_s=None):
        self.code, self.text, self.seconds = code, text, seconds
        self.limit_s = limit_s  # that it passed; None: it ended by itself

    def why_failed(self):
        if self.limit_s is not None:
            return f"not done after {self.limit_s:g} s"
        if self.code < 0:
            return f"ended by {signal.Signals(-self.code).name}"
        last = [line.strip() for line in self.text.splitlines() if line.strip()][-1:]
        return f"exit code {self.code}: {''.join(last)[:120]}"


def marked(mark):
    """The processes that have this mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue  # it has ended, or is somebody else's
    return found


def send(number, function, target):
    try:
        function(target, number)
    except ProcessLookupError:
        pass


def end(process, mark):
    """Asks the program's group to end, then ends it and all that is left with the mark."""
    if process.poll() is None:
        send(signal.SIGTERM, os.killpg, process.pid)
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            pass
    send(signal.SIGKILL, os.killpg, process.pid)
    while True:  # one that is being ended may still have started another
        left = marked(mark)
        if not left:
            break
        for pid in left:
            send(signal.SIGKILL, os.kill, pid)
    process.wait()


def run(command, log, limit_s, environment):
    """Its output, of both streams, goes to the file `log`."""
    mark = uuid.uuid4().hex
    begin = time.monotonic()
    passed = None
    with open(log, "wb") as output:
        try:
            process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True,
                                       env=dict(environment, **{MARK: mark}))
        except OSError as fault:
            output.write(f"{fault}\n".encode())
            output.flush()
            return Ended(127, str(fault), 0.0)
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            passed = limit_s
        finally:
            end(process, mark)
    text = pathlib.Path(log).read_text(encoding="utf-8", errors="replace")
    return Ended(process.returncode, text, time.monotonic() - begin, passed)
