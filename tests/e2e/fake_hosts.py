"""Hosts on one machine: each is a process with a network, a host name and a /dev/shm of its own. Root only."""

import os
import pathlib
import shutil
import subprocess
import time


def missing():
    """Why there can be none here, or an empty text."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    absent = [tool for tool in ("ip", "unshare", "nsenter") if not shutil.which(tool)]
    if absent:
        return f"not installed: {', '.join(absent)}"
    tried = subprocess.run(["unshare", "--net", "--uts", "--mount", "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "this machine allows no namespaces"


def run(*command):
    subprocess.run(list(map(str, command)), check=True, capture_output=True)


class FakeHosts:
    """`agent` stands for ssh: mpirun --mca plm_rsh_agent."""

    def __init__(self, directory, count):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True)
        self.number = os.getpid() % 250
        self.bridge = f"dst{os.getpid()}"
        self.names = [f"h{i + 1}" for i in range(count)]
        self.holders = {}
        self.links = []
        run("ip", "link", "add", self.bridge, "type", "bridge")
        run("ip", "link", "set", self.bridge, "up")
        lines = ["127.0.0.1 localhost"] + [f"{self.address(i)} {name}" for i, name in enumerate(self.names)]
        (self.directory / "hosts").write_text("\n".join(lines) + "\n", encoding="utf-8")
        for i, name in enumerate(self.names):
            self.add(i, name)
        self.agent = self.directory / "agent"
        cases = "\n".join(f"  {name}) pid={holder.pid} ;;" for name, holder in self.holders.items())
        # A host that is down answers no ssh.
        self.agent.write_text(f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done # options of ssh
case $1 in
{cases}
esac
host=$1
shift
[ ! -e {self.directory}/$host.down ] || exit 255
exec nsenter -t "$pid" -n -u -m -- env TMPDIR={self.directory}/$host /bin/sh -c "$*"
""", encoding="utf-8")
        self.agent.chmod(0o755)

    def address(self, i):
        return f"10.199.{self.number}.{i + 1}"

    def add(self, i, name):
        ready = self.directory / f"{name}.ready"
        pathlib.Path(self.temporary(name)).mkdir()
        self.holders[name] = subprocess.Popen(
            ["unshare", "--net", "--uts", "--mount", "--propagation", "private", "sh", "-c",
             f"hostname {name} && mount --bind {self.directory}/hosts /etc/hosts && "
             f"mount -t tmpfs -o size=1g tmpfs /dev/shm && : >{ready} && exec sleep infinity"],
            stdin=subprocess.DEVNULL)
        while not ready.exists():
            time.sleep(0.02)
        pid = self.holders[name].pid
        outside = f"d{os.getpid()}h{i}"
        run("ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", pid)
        run("ip", "link", "set", outside, "master", self.bridge, "up")
        self.links.append(outside)
        run("nsenter", "-t", pid, "-n", "ip", "link", "set", "lo", "up")
        run("nsenter", "-t", pid, "-n", "ip", "addr", "add", f"{self.address(i)}/24", "dev", "eth0")
        run("nsenter", "-t", pid, "-n", "ip", "link", "set", "eth0", "up")

    def temporary(self, name):
        return str(self.directory / name)

    def enter(self, name, directory="/"):
        return ["nsenter", "-t", str(self.holders[name].pid), "-n", "-u", "-m", "--", "sh", "-c",
                'cd "$0" && exec "$@"', str(directory)]

    def set_link(self, name, state):
        run(*self.enter(name), "ip", "link", "set", "eth0", state)

    def processes(self, name, pids):
        """those of `pids` that run there"""
        space = os.readlink(f"/proc/{self.holders[name].pid}/ns/net")
        found = []
        for pid in pids:
            try:
                if os.readlink(f"/proc/{pid}/ns/net") == space:
                    found.append(pid)
            except OSError:
                continue
        return found

    def take_down(self, name):
        (self.directory / f"{name}.down").touch()
        self.set_link(name, "down")

    def bring_up(self):
        for mark in self.directory.glob("*.down"):
            self.set_link(mark.stem, "up")
            mark.unlink()

    def close(self):
        for holder in self.holders.values():
            holder.kill()
            holder.wait()
        subprocess.run(["ip", "link", "del", self.bridge], check=False, capture_output=True)


def start(root, count):
    return FakeHosts(pathlib.Path(root) / "fake-hosts", count)
