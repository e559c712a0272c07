"""A Slurm of one node on this machine, for root, without systemd and cgroups."""

import os
import pathlib
import shutil
import socket
import subprocess
import time

TOOLS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "scancel", "sinfo")
SEARCH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def missing():
    """Why there can be none here, or an empty text."""
    if os.geteuid() != 0:
        return "Slurm's daemons need root"
    absent = [tool for tool in TOOLS if not shutil.which(tool, path=SEARCH)]
    return f"not installed: {', '.join(absent)}" if absent else ""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def config_of(directory, munge_socket):
    host = socket.gethostname().split(".")[0]
    settings = {
        "ClusterName": "small", "SlurmctldHost": f"{host}(127.0.0.1)",
        "SlurmctldPort": free_port(), "SlurmdPort": free_port(), "SlurmUser": "root", "SlurmdUser": "root",
        "AuthType": "auth/munge", "CredType": "cred/munge",
        # A requeued job waits until its credential has expired.
        "AuthInfo": f"socket={munge_socket},cred_expire=5",
        "StateSaveLocation": directory / "state", "SlurmdSpoolDir": directory / "spool",
        "SlurmctldPidFile": directory / "slurmctld.pid", "SlurmdPidFile": directory / "slurmd.pid",
        "SlurmctldLogFile": directory / "slurmctld.log", "SlurmdLogFile": directory / "slurmd.log",
        "ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none", "MpiDefault": "none",
        "JobAcctGatherType": "jobacct_gather/none", "AccountingStorageType": "accounting_storage/none",
        "SelectType": "select/cons_tres", "SelectTypeParameters": "CR_CPU",
        "SlurmdParameters": "config_overrides", "ReturnToService": 2, "KillWait": 5, "GresTypes": "gpu",
        "SchedulerParameters": "sched_interval=2,bf_interval=2,batch_sched_delay=0",
    }
    lines = [f"{key}={value}" for key, value in settings.items()]
    lines.append(f"NodeName={host} NodeAddr=127.0.0.1 CPUs=64 RealMemory=4000 State=UNKNOWN")
    lines.append("PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP")
    return "\n".join(lines) + "\n"


class SmallSlurm:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        for name in ("state", "spool", "munge"):
            (self.directory / name).mkdir(parents=True)
        self.environment = dict(os.environ, PATH=SEARCH, SLURM_CONF=str(self.directory / "slurm.conf"))
        self.start_munge()
        (self.directory / "slurm.conf").write_text(config_of(self.directory, self.directory / "munge" / "socket"),
                                                   encoding="utf-8")
        self.daemons = [self.daemon("slurmctld"), self.daemon("slurmd")]
        deadline = time.monotonic() + 60
        while "idle" not in self.call(["sinfo", "-h", "-o", "%T"], check=False):
            if time.monotonic() > deadline:
                self.close()
                raise RuntimeError(f"Slurm did not start; see {self.directory}")
            time.sleep(0.1)

    def start_munge(self):
        folder = self.directory / "munge"
        key = folder / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.munge = subprocess.Popen(
            ["munged", "--foreground", "--force", f"--socket={folder / 'socket'}", f"--key-file={key}",
             f"--log-file={folder / 'log'}", f"--pid-file={folder / 'pid'}", f"--seed-file={folder / 'seed'}"],
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def daemon(self, name):
        return subprocess.Popen([name, "-D", "-f", self.environment["SLURM_CONF"]], env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def call(self, command, cwd=None, environment=None, check=True):
        variables = dict(environment or self.environment, PATH=SEARCH, SLURM_CONF=self.environment["SLURM_CONF"])
        done = subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"{command}: {done.stderr}")
        return done.stdout

    def close(self):
        for process in [*self.daemons[::-1], self.munge]:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def start(root):
    return SmallSlurm(pathlib.Path(root) / "slurm")
