"""What the tests of scripts/supervise.sh share: a launcher that does what the test says; no MPI, no program."""

import fcntl
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import termios
import unittest

SUPERVISE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "scripts" / "supervise.sh"

# Start k of the launcher runs the lines of the file "k" in bash: $FOLDER is where rank 0 leaves its words, "$@" the
# program's arguments.
LAUNCHER = """#!/usr/bin/env bash
while [ "${1##*/}" != run_rank.sh ]; do printf '%s\\n' "$1" >>options; shift; done
FOLDER=$2
shift 3
number=$(($(cat starts 2>/dev/null || echo 0) + 1))
echo "$number" >starts
echo "$*" >>arguments
echo "$FOLDER" >folder
echo "elsewhere 1" >"$FOLDER/rank-0"
leave() { echo "$1" >"$FOLDER/exit-code"; }
begin() { mkdir -p "$1" && printf %s "$1" >"$FOLDER/results"; }
record() { begin "$PWD/autotuning_results" && echo '{"type": "finished"}' >>autotuning_results/journal.jsonl; }
. "./$number"
"""


class SuperviseTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="dstune-supervise-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        launcher = self.directory / "launcher"
        launcher.write_text(LAUNCHER, encoding="utf-8")
        launcher.chmod(0o755)

    def environment(self, **variables):
        return dict(os.environ, TMPDIR=str(self.directory), DSTUNE_PATIENCE="1", **variables)

    def supervise(self, *starts, options=(), launcher=("./launcher", "-n", "3"), arguments=("config.json",),
                  **variables):
        for number, lines in enumerate(starts, 1):
            (self.directory / str(number)).write_text(lines + "\n", encoding="utf-8")
        done = subprocess.run([SUPERVISE, *options, *launcher, "--", "program", *arguments],
                              cwd=self.directory, env=self.environment(**variables), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120, check=False)
        path = self.directory / "arguments"
        self.arguments = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return done

    def supervise_on_a_terminal(self, start, arguments=("config.json",), kind="xterm", columns=None):
        """The arguments of the program where standard error is a terminal of this kind, and stdout, too, where it has
        columns."""
        (self.directory / "1").write_text(start + "\n", encoding="utf-8")
        ours, theirs = os.openpty()
        if columns is not None:
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
        try:
            done = subprocess.run([SUPERVISE, "./launcher", "--", "program", *arguments], cwd=self.directory,
                                  env=self.environment(TERM=kind), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE if columns is None else theirs, stderr=theirs, timeout=120,
                                  check=False)
        finally:
            os.close(theirs)
            os.close(ours)
        self.assertEqual(done.returncode, 0)
        (self.directory / "starts").unlink()
        return (self.directory / "arguments").read_text(encoding="utf-8").splitlines()[-1]

    def resumed(self, rest):
        """The arguments of a start that goes on with the records of record()."""
        return f"--resume --results-dir {self.directory}/autotuning_results {rest}"

    def assert_ended(self, done, code, starts):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(self.arguments), starts, done.stderr)
        self.assertEqual([path.name for path in self.directory.glob("*dstune-run*")], [])

    def train(self, *starts, options=(), **variables):
        done = self.supervise(*starts, options=options,
                              arguments=("--run", "config.json", "--", "train", "--run"), **variables)
        path = self.directory / "trained"
        return done, path.read_text(encoding="utf-8") if path.exists() else None

    LEAVE = r"""printf '%s\0' "NAME=a b" sh -c 'echo $NAME $0 >trained; exit 9' "c d" >"$FOLDER/command"; """

    def tool(self, name, lines):
        tools = self.directory / "tools"
        tools.mkdir(exist_ok=True)
        (tools / name).write_text("#!/bin/sh\n" + lines, encoding="utf-8")
        (tools / name).chmod(0o755)
