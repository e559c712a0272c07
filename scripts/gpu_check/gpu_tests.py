#!/usr/bin/env python3
"""Prints "RANKS PROGRAM" for each test program of a build that has the label gpu.

usage: gpu_tests.py BUILD_DIRECTORY
"""

import json
import os
import pathlib
import subprocess
import sys


def programs(listing):
    """(ranks, program) of the commands "PROGRAM --gtest_filter=..." and "mpiexec -n RANKS ... PROGRAM"; once each"""
    found = {}
    for test in listing["tests"]:
        command = test.get("command", [])
        if len(command) > 2 and command[1] in ("-n", "-np"):
            found.setdefault(command[-1], command[2])
        elif command:
            found.setdefault(command[0], "1")
    return [(ranks, program) for program, ranks in found.items()]


def programs_of(build):
    """(ranks, program, None) of those that are built."""
    listing = subprocess.run(["ctest", "--test-dir", str(build), "-L", "^gpu$", "--show-only=json-v1"],
                             stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
    return [(int(ranks), pathlib.Path(program), None) for ranks, program in programs(json.loads(listing))
            if os.access(program, os.X_OK)]


def main():
    for ranks, program, _ in programs_of(sys.argv[1]):
        print(ranks, program)


if __name__ == "__main__":
    main()
