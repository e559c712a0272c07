#!/usr/bin/env python3
"""Prints "RANKS PROGRAM" for each test program of a build that has the label gpu.

usage: gpu_tests.py BUILD_DIRECTORY
"""

import json
import os
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


def main():
    listing = subprocess.run(["ctest", "--test-dir", sys.argv[1], "-L", "^gpu$", "--show-only=json-v1"],
                             capture_output=True, text=True, check=True).stdout
    for ranks, program in programs(json.loads(listing)):
        if os.access(program, os.X_OK):
            print(ranks, program)


if __name__ == "__main__":
    main()
