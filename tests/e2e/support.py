"""Runs dstune-mpi as a user does, in a directory of its own, and reads what it leaves behind."""

import atexit
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["DSTUNE_PROGRAM"]
MPIEXEC = os.environ.get("DSTUNE_MPIEXEC", "mpirun")
SOURCE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])
SURVIVE = ("--mca", "orte_abort_on_non_zero_status", "0")
DEADLOCK = 120  # seconds
CACHE = tempfile.mkdtemp(prefix="dstune-cache-")  # what runs keep for later ones, and profiles
atexit.register(shutil.rmtree, CACHE, ignore_errors=True)


def launch_environment():
    environment = dict(os.environ)
    if os.geteuid() == 0:
        environment["OMPI_ALLOW_RUN_AS_ROOT"] = "1"
        environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    environment.setdefault("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
    environment["XDG_CACHE_HOME"] = CACHE  # the user's are none of a test's
    environment["DSTUNE_SUPERVISED"] = "1"  # a test ends its mpirun itself, with or without the switch
    return environment


def mpi_command(ranks, *arguments, mpi=(), results="autotuning_results"):
    """A tuning into `results`, unless the arguments name another folder; None: a folder of its own, as users get."""
    words = [str(argument) for argument in arguments]
    is_named = results is None or not words or any(word.startswith("--results-dir") for word in words)
    return [MPIEXEC, "--oversubscribe", "--bind-to", "none", *mpi, "-n", str(ranks), PROGRAM,
            *([] if is_named else ["--results-dir", results]), *words]


def ranks_of(launcher):
    """world rank -> process id of the program's processes under `launcher`"""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent != launcher or os.readlink(entry / "exe") != os.path.realpath(PROGRAM):
                continue
            for item in (entry / "environ").read_bytes().split(b"\0"):
                if item.startswith(b"OMPI_COMM_WORLD_RANK="):
                    found[int(item.split(b"=")[1])] = int(entry.name)
        except (OSError, ValueError):
            continue
    return found


def example(name):
    return SOURCE / "examples" / f"{name}.json"


def read_json(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def read_commented_json(path):
    """The subset of JSON with comments that the examples use: // and trailing commas."""
    text = re.sub(r"//[^\n]*", "", pathlib.Path(path).read_text(encoding="utf-8"))
    return json.loads(re.sub(r",(\s*[}\]])", r"\1", text))


def tiny(**sections):
    """examples/tiny.json with some sections updated, and without host overhead, preflight and what
    earlier runs learnt: who tests something else need not wait for them, nor run alike by chance."""
    config = read_commented_json(example("tiny"))
    config["dstune"] |= {"host_overhead": "none", "preflight": False, "learnt": False}
    for section, values in sections.items():
        if isinstance(values, dict):
            config.setdefault(section, {}).update(values)
        else:
            config[section] = values
    return config


def journal(results_dir):
    """Whole lines of the journal; a torn last one is not one."""
    text = (pathlib.Path(results_dir) / "journal.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n")[:-1]]


def events(results_dir, kind):
    return [line for line in journal(results_dir) if line["type"] == kind]


def names(lines):
    return [line["experiment"]["name"] for line in lines]


def searched(results_dir):
    """What the search and its confirmation finished, without checks of the machine before and references between."""
    return [line for line in events(results_dir, "finished")
            if not line["experiment"].get("is_reference") and not line["experiment"]["name"].startswith("preflight")]


def unwrapped(text):
    """Text whose lines were broken to fit a terminal, as one line."""
    return " ".join(text.split())


def unbroken(log):
    """A log whose warnings were broken to fit a terminal, with each of them as one line."""
    return re.sub(r"^warning: .*(?:\n  .*)+", lambda found: found[0].replace("\n  ", " "), log, flags=re.MULTILINE)


def read_log(path):
    """What a program wrote to its log so far, unbroken()."""
    return unbroken(path.read_text(encoding="utf-8", errors="replace"))


def outcomes(results_dir):
    """name -> outcome of what was searched()"""
    return {line["experiment"]["name"]: line["outcome"] for line in searched(results_dir)}


class ProgramTest(unittest.TestCase):
    """Each test has an empty working directory, self.directory."""

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="dstune-e2e-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.results = self.directory / "autotuning_results"
        shutil.rmtree(CACHE, ignore_errors=True)  # no test begins with what another left

    def run_command(self, command, stdin=None):
        source = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        finished = subprocess.run(command, cwd=self.directory, env=launch_environment(),
                                  **source, capture_output=True, text=True,
                                  timeout=DEADLOCK, check=False)
        finished.stderr = unbroken(finished.stderr)
        return finished

    def tune(self, ranks, *arguments, mpi=()):
        return self.run_command(mpi_command(ranks, *arguments, mpi=mpi))

    def tune_well(self, ranks, *arguments, mpi=()):
        finished = self.tune(ranks, *arguments, mpi=mpi)
        self.assertEqual(finished.returncode, 0, finished.stderr)
        return finished

    def write_config(self, content, name="config.json"):
        path = self.directory / name
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text, encoding="utf-8")
        return path

    def tiny(self, **sections):
        """examples/tiny.json with some sections updated."""
        return tiny(**sections)

    def quick_tiny(self):
        """The path of examples/tiny.json without host overhead."""
        return self.write_config(self.tiny(), "quick_tiny.json")

    def listing(self):
        return sorted(str(path.relative_to(self.directory))
                      for path in self.directory.rglob("*") if path.is_file())
