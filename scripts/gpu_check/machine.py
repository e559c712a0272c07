"""The group machine: what a reader of the figures must know of it; and where its CUDA libraries are."""
import os
import re
import subprocess

from checks import Check
from place import SCRIPTS, ask
from rows import FAILED, PASSED, Row

VARIABLES = ("NCCL_", "CUDA_", "LD_LIBRARY_PATH", "OMP_", "OMPI_MCA_", "DSTUNE_")
ESSENTIALS = ("Product Name", "Driver Version", "CUDA Version", "Persistence Mode", "Compute Mode", "ECC Mode",
              "Current Power Limit", "Max Power Limit")
NVIDIA_SMI = (("nvidia-smi", ["nvidia-smi", "-q"]), ("topology", ["nvidia-smi", "topo", "-m"]),
              ("processes on GPUs", ["nvidia-smi", "--query-compute-apps=pid,name,used_memory", "--format=csv"]))


def has_gpu():
    if ask(["sh", "-c", "command -v nvidia-smi"], 10):
        return re.search("^GPU ", ask(["nvidia-smi", "-L"], 60), re.MULTILINE) is not None
    return any(re.fullmatch("nvidia[0-9]+", name) for name in os.listdir("/dev"))


def gpu_names():
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    return ask(query, 60).splitlines()


def checks(place, *_):
    has_tool = bool(ask(["sh", "-c", "command -v nvidia-smi"], 10))
    for name, command in NVIDIA_SMI:
        yield Check(name, command, said(name), 60, "" if has_tool else "nvidia-smi is not installed")
    yield Check("processors", ["sh", "-c", "lscpu; numactl --hardware 2>/dev/null; free -h; df -h /dev/shm /tmp"],
                said("processors", r"^(?:Model name|CPU\(s\)|NUMA node\(s\)):\s*(.*)$"), 60)
    yield Check("libraries", [place.program, "--list-backends"],
                said("libraries", r"^((?:CUDA driver|CUDA run time|cuBLASLt|cuDNN|NCCL|MPI): [^,\n]*)"), 60)
    yield Check("python", [place.python, "-B", SCRIPTS / "gpu_check" / "versions.py"], said("python", "(.*)"), 120)
    # No others: what is sent to somebody must not have this user's keys.
    yield Check("variables", ["sh", "-c", f"env | grep -E '^({'|'.join(VARIABLES)})' | grep -v _MARK= | sort"],
                lambda ended: [Row("variables", PASSED, "; ".join(ended.text.splitlines()))], 10)


def said(name, pattern=None):
    """A row with what matches; the log has all of it."""
    def judge(ended):
        if ended.code != 0:
            return [Row(name, FAILED, ended.why_failed())]
        lines = ended.text.splitlines() if pattern is None else re.findall(pattern, ended.text, re.MULTILINE)
        lines = essentials(lines) if name == "nvidia-smi" else [line.strip() for line in lines if line.strip()]
        return [Row(name, PASSED, "; ".join(lines[:8]) if pattern or name == "nvidia-smi" else "see its log")]
    return judge


def essentials(lines):
    """"Key: value" of what tells GPUs apart, each once."""
    found = {}
    for line in lines:
        key, _, value = (part.strip() for part in line.partition(" : "))
        if key in ESSENTIALS and value:
            found[f"{key}: {value}"] = True
    return list(found)


def find_libraries(programs):
    """Extends LD_LIBRARY_PATH until the programs find all that they are linked to. Returns what cannot be found. What
    is opened when it is used (NCCL, cuBLASLt, cuDNN) the program looks for by itself."""
    for library in missing(programs):
        folder = shell("folder_of", library).strip()
        if folder:
            os.environ["LD_LIBRARY_PATH"] = ":".join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH")]))
    return missing(programs)


def missing(programs):
    return shell("missing_libraries", *programs).split()


def shell(function, *arguments):
    """Of machine.sh, which scripts/bundle.sh uses too."""
    command = ["bash", "-c", '. "$0"; "$@"', SCRIPTS / "gpu_check" / "machine.sh", function, *arguments]
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          universal_newlines=True, check=False).stdout
