"""The ways in which users start the program: scripts/tune.sh, mpirun, sbatch, mpirun on several hosts."""

import contextlib
import os
import pathlib
import re
import subprocess
import threading

from processes import MARK, Processes, kill, new_mark
from support import MPIEXEC, PROGRAM, SOURCE, launch_environment

class LocalRun:
    """One start of `command` in `directory`."""

    def __init__(self, command, directory, environment=None):
        self.mark = new_mark()
        variables = launch_environment() | (environment or {}) | {MARK: self.mark, "TMPDIR": str((environment or {}).get("TMPDIR", directory))}
        del variables["DSTUNE_SUPERVISED"]  # as users start it
        with open(directory / "stderr.log", "ab") as log:
            self.process = subprocess.Popen(
                list(map(str, command)), cwd=directory, env=variables,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)

    def is_over(self):
        return self.process.poll() is not None

    def exit_code(self):
        return self.process.returncode

    def processes(self):
        return Processes(self.mark)

    def clean_up(self):
        kill(self.processes().found)
        self.process.wait()


class Way:
    hosts = ()  # that may go
    lock = contextlib.nullcontext()  # around a run

    def bring_up(self):
        pass

    def close(self):
        pass


class Tune(Way):
    """scripts/tune.sh, without the part that builds"""

    name = "tune.sh"

    def start(self, directory, ranks, *arguments):
        launcher = [MPIEXEC, "--oversubscribe", "--bind-to", "none", "-n", ranks]
        return LocalRun([SOURCE / "scripts" / "supervise.sh", *launcher, "--", PROGRAM, *arguments],
                        directory)


class Mpirun(Way):
    """mpirun and nothing else"""

    name = "mpirun"

    def start(self, directory, ranks, *arguments):
        return LocalRun([MPIEXEC, "--oversubscribe", "--bind-to", "none", "-n", ranks, PROGRAM, *arguments],
                        directory)


class Hosts(Way):
    """mpirun on three hosts, through scripts/supervise.sh on the first, which stays"""

    name = "hosts"

    def __init__(self, machines):
        self.machines = machines
        self.hosts = machines.names[1:]
        self.lock = threading.Lock()  # a host that goes is gone for every run

    def take_down(self, host, processes):
        self.machines.take_down(host)
        return self.machines.processes(host, processes.found)

    def bring_up(self):
        self.machines.bring_up()

    def start(self, directory, ranks, *arguments):
        slots = [f"{host} slots={ranks // 3 + (i < ranks % 3)}" for i, host in enumerate(self.machines.names)]
        (directory / "hosts").write_text("\n".join(slots) + "\n", encoding="utf-8")
        launcher = [MPIEXEC, "--mca", "plm_rsh_agent", self.machines.agent, "--bind-to", "none", "-hostfile",
                    directory / "hosts"]
        command = [SOURCE / "scripts" / "supervise.sh", "--shared", directory, *launcher, "--", PROGRAM]
        # A rank that dies alone on its host before all have met is noticed by nothing but the limit.
        return LocalRun([*self.machines.enter(self.machines.names[0], directory), *command, *arguments], directory,
                        {"TMPDIR": self.machines.temporary(self.machines.names[0]), "DSTUNE_START_TIMEOUT": "10"})

    def close(self):
        self.machines.close()


class SlurmRun:
    """One submitted job. Its processes are found by the mark, which sbatch hands on."""

    def __init__(self, slurm, command, directory):
        self.slurm = slurm
        self.mark = new_mark()
        environment = {MARK: self.mark, "DSTUNE_ROOT": str(SOURCE), "DSTUNE_PROGRAM": PROGRAM,
                       "SLURM_TMPDIR": str(directory)}
        submitted = slurm.call(["sbatch", "--parsable", *command], cwd=directory,
                               environment=launch_environment() | environment)
        self.job = submitted.strip()

    def field(self, name):
        found = re.search(rf"\b{name}=(\S+)", self.slurm.call(["scontrol", "show", "job", self.job]))
        return found.group(1) if found else ""

    def is_over(self):
        return self.field("JobState") not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "REQUEUED")

    def exit_code(self):
        return int(self.field("ExitCode").split(":")[0])

    def processes(self):
        return Processes(self.mark)

    def clean_up(self):
        if not self.is_over():
            self.slurm.call(["scancel", self.job])
        kill(self.processes().found)


class Slurm(Way):
    """sbatch scripts/slurm/tune.sbatch"""

    name = "sbatch"

    def __init__(self, slurm):
        self.slurm = slurm

    def start(self, directory, ranks, *arguments):
        script = pathlib.Path(SOURCE) / "scripts" / "slurm" / "tune.sbatch"
        return SlurmRun(self.slurm, ["--nodes=1", f"--ntasks-per-node={ranks}", "--cpus-per-task=1", "--gres=none",
                                     "--output=stderr.log", str(script), *map(str, arguments)], directory)

    def close(self):
        self.slurm.close()
