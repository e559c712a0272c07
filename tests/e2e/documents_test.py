"""Every block of README and docs/ is run, or says why not. The comment above it says which:

<!-- run -->               shell commands, as somebody in the source tree types them
<!-- config OPTIONS -->    a CONFIG.json; --plan takes it with these options
<!-- section OPTIONS -->   a line each: a part of one, without the outer braces; of each, likewise
<!-- dstune OPTIONS -->    the same of keys of "dstune"
<!-- prints COMMAND -->    what this command prints, to the letter; also above a table
<!-- not run: WHY -->      commands that a test cannot run, or their output
<!-- text -->              neither
"""

import json
import os
import re
import shlex
import subprocess
import unittest

from support import PROGRAM, SOURCE, ProgramTest, launch_environment

DOCUMENTS = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", *sorted((SOURCE / "docs").glob("*.md"))]
MARK = re.compile(r"<!-- (run|config|section|dstune|prints|not run:|text)(?: (.*))? -->$")
MODEL = {"model_type": "llama", "vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 128, "max_position_embeddings": 2048}


class Block:
    def __init__(self, path, line, mark, text):
        self.kind, self.argument = (mark.group(1), mark.group(2) or "") if mark else ("", "")
        self.text = text
        self.place = f"{path.relative_to(SOURCE)}:{line}"


def block_at(lines, begin):
    """How many lines from `begin` on are one block, 0 if none begins there, and its text."""
    if lines[begin].startswith("```"):
        end = next(at for at in range(begin + 1, len(lines)) if lines[at].startswith("```"))
        return end + 1 - begin, lines[begin + 1:end]
    if lines[begin].startswith("|"):
        end = next((at for at in range(begin, len(lines)) if not lines[at].startswith("|")), len(lines))
        return end - begin, lines[begin:end]
    if not lines[begin].startswith("    ") or not lines[begin].strip() or (begin > 0 and lines[begin - 1].strip()):
        return 0, []
    end = next((at for at in range(begin, len(lines)) if lines[at].strip() and not lines[at].startswith("    ")), len(lines))
    return end - begin, [line[4:] for line in lines[begin:end]]


def blocks_of(path):
    """The blocks of code of a page, and the tables that have a mark."""
    lines = path.read_text(encoding="utf-8").split("\n")
    found, at = [], 0
    while at < len(lines):
        count, block = block_at(lines, at)
        above = next((line for line in reversed(lines[:at]) if line.strip()), "")
        mark = MARK.match(above)
        if count > 0 and (mark or not lines[at].startswith("|")):
            found.append(Block(path, at + 1, mark, "\n".join(block).rstrip() + "\n"))
        at += max(count, 1)
    return found


BLOCKS = [block for path in DOCUMENTS for block in blocks_of(path)]


def of_kind(kind):
    return [block for block in BLOCKS if block.kind == kind]


class Documents(ProgramTest):
    maxDiff = None

    def setUp(self):
        super().setUp()
        for folder in ("scripts", "examples", "hostfiles"):
            os.symlink(SOURCE / folder, self.directory / folder)
        for build in ("default", "cuda"):
            (self.directory / "build" / build).mkdir(parents=True)
            os.symlink(PROGRAM, self.directory / "build" / build / "dstune-mpi")
        (self.directory / "bin").mkdir()
        os.symlink(PROGRAM, self.directory / "bin/dstune-mpi")
        (self.directory / "path/to").mkdir(parents=True)
        (self.directory / "path/to/config.json").write_text(json.dumps(MODEL), encoding="utf-8")

    def shell(self, command):
        environment = launch_environment() | {"PATH": f"{self.directory / 'bin'}:{os.environ['PATH']}"}
        return subprocess.run(["bash", "-c", command], cwd=self.directory, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=300, check=False)

    def plan(self, block, text):
        (self.directory / "my_config.json").write_text(text, encoding="utf-8")
        options = shlex.split(block.argument) or ["--world-size", "8"]
        done = self.run_command([PROGRAM, "--plan", *options, "my_config.json"])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_every_block_says_what_it_is(self):
        unmarked = [f"{block.place}: {block.text.splitlines()[0]}" for block in BLOCKS if not block.kind]

        self.assertEqual(unmarked, [])

    def test_what_is_not_run_says_why(self):
        for block in of_kind("not run:"):
            self.assertGreater(len(block.argument.split()), 1, block.place)

    def test_commands_run(self):
        for block in of_kind("run"):
            for command in block.text.replace("\\\n", " ").splitlines():
                with self.subTest(block.place, command=command):
                    done = self.shell(command)
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_configurations_are_planned(self):
        for block in of_kind("config"):
            with self.subTest(block.place):
                self.plan(block, block.text)

    def test_sections_are_planned(self):
        (self.directory / "lengths.csv").write_text("length,count\n300,2\n900,1\n", encoding="utf-8")
        for block in of_kind("section") + of_kind("dstune"):
            for line in block.text.splitlines():
                with self.subTest(block.place, line=line):
                    keys = line.replace(", ...", "")
                    self.plan(block, "{" + (keys if block.kind == "section" else '"dstune": {' + keys + "}") + "\n}")

    def test_outputs_are_what_is_printed(self):
        for block in of_kind("prints"):
            with self.subTest(block.place):
                done = self.shell(block.argument)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(block.text, done.stdout)


if __name__ == "__main__":
    unittest.main()
