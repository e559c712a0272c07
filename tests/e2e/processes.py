"""The processes of one run, found by a mark in their environment: also those of other sessions and of fake hosts."""

import os
import pathlib
import signal
import uuid

from support import PROGRAM

MARK = "OMPI_DSTUNE_TEST_MARK"  # mpirun hands on what begins with OMPI_


def new_mark():
    return uuid.uuid4().hex


class Processes:
    """A snapshot: process id -> (name of its executable, environment)."""

    def __init__(self, mark):
        self.found = {}
        wanted = f"{MARK}={mark}".encode()
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                environment = (entry / "environ").read_bytes().split(b"\0")
                if wanted in environment and not is_zombie(entry):
                    self.found[int(entry.name)] = (os.readlink(entry / "exe"), environment)
            except OSError:
                continue

    def __bool__(self):
        return bool(self.found)

    def named(self, *executables):
        return [pid for pid, (exe, _) in self.found.items() if os.path.basename(exe) in executables]

    def ranks(self):
        """world rank -> process ids of the program"""
        result = {}
        for pid, (exe, environment) in self.found.items():
            if exe != os.path.realpath(PROGRAM):
                continue
            for item in environment:
                for name in (b"OMPI_COMM_WORLD_RANK=", b"PMIX_RANK=", b"PMI_RANK="):
                    if item.startswith(name):
                        result.setdefault(int(item.split(b"=")[1]), set()).add(pid)
        return result

    def __str__(self):
        return ", ".join(f"{pid} {os.path.basename(exe)}" for pid, (exe, _) in self.found.items())


def is_zombie(entry):
    return (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


def kill(pids, number=signal.SIGKILL):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
