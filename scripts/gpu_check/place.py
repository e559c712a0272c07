"""Where the programs are, in a bundle, in a tree with a build, or, pretended, in one without CUDA."""
import json
import os
import pathlib
import re
import subprocess
import sys

import gpu_tests

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent
# Of CUDA on the host: a test that stands for the one of a real GPU, the ranks, what of it is run.
DOUBLES = (("cuda_on_host.core.train.zero.equivalence_test", 1, "*OneParameterGroup/*Ranks1Accumulation1*"),
           ("cuda_on_host.core.train.zero.master_weights_test", 1, None),
           ("kernels.cuda_on_host.device_test", 1, "*Gemm*"),
           ("kernels.cuda_on_host.shared_gpu_test", 4, "*CollectivesTest.All*"))
PRETENDED_GPUS = 4


class Missing(Exception):
    """There is nothing here to check."""


class Place:
    """program: with GPUs, or their double; plain: that which users get; tests: (ranks, program, filter or None)."""

    def __init__(self, root, preset, is_pretended):
        self.root, self.is_pretended = pathlib.Path(root), is_pretended
        build = self.root / "build" / (preset or ("default" if is_pretended else "cuda"))
        self.is_bundle = is_executable(self.root / "bin" / "dstune-mpi")
        if self.is_bundle:
            self.plain, self.mpirun, self.benches = self.bin("dstune-mpi"), str(self.bin("mpirun")), self.bin("bench")
            self.tests = listed_tests(self.root)
        elif is_executable(build / "dstune-mpi"):
            self.plain, self.mpirun, self.benches = build / "dstune-mpi", "mpirun", build / "bench"
            self.tests = doubles(build) if is_pretended else tests_of(build)
        else:
            raise Missing(f"neither {self.root / 'bin'} nor {build} has a dstune-mpi: scripts/build.sh {build.name}")
        double = build / "tests" / "e2e" / "dstune-mpi-on-pretended-gpus"
        self.has_double = is_pretended and is_executable(double)
        self.program = double if self.has_double else self.plain
        self.backend = "cpu" if is_pretended and not self.has_double else "cuda"
        self.python = find_python()
        self.listing = None  # what the program says of the backends, once it was asked
        self.torch = None  # versions of what trains, once it was asked

    def bin(self, name):
        return self.root / "bin" / name

    def bench(self, name):
        """None where it was not built."""
        path = self.benches / name
        return path if is_executable(path) else None

    def script(self, name):
        """From the tree, None where this bundle or tree has none."""
        path = self.root / name
        return path if path.is_file() else None

    def gpus(self):
        """Their names, from what the program lists."""
        if self.listing is None:
            self.listing = ask([self.program, "--list-backends"], 60, self.environment(pathlib.Path("/nowhere")))
        return re.findall(r"^GPU \d+: (.*)$", self.listing, re.MULTILINE)

    def on_ranks(self, ranks, *command):
        return [self.mpirun, "-np", str(ranks), *command]

    def programs(self):
        """All that must find their libraries."""
        return [self.program, *(program for _, program, _ in self.tests), *sorted(self.benches.glob("bench_gpu_*"))]

    def environment(self, work):
        """That of a check. As scripts/tune.sh and a bundle's mpirun have it."""
        variables = dict(os.environ, OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none",
                         OMPI_MCA_btl_vader_single_copy_mechanism="none", GTEST_COLOR="no", PYTHON=self.python)
        if os.geteuid() == 0:
            variables.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        if self.is_pretended:
            variables.update(PRETENDED_GPUS=str(PRETENDED_GPUS), CUDA_ON_HOST_NCCL=str(work / "nccl"),
                             OMP_NUM_THREADS="1")
        return variables

    def find_torch(self):
        """Looks which versions the Python of the training has, and whether its torch has a GPU."""
        done = ask([self.python, "-B", SCRIPTS / "gpu_check" / "versions.py"], 120)
        try:
            self.torch = json.loads(done.splitlines()[-1])
        except (ValueError, IndexError):
            self.torch = {}

    def why_no_torch(self, *packages):
        """Why what needs torch and these packages cannot run; "" if it can."""
        if self.torch is None:
            self.find_torch()
        missing = [name for name in ("torch", *packages) if not self.torch.get(name)]
        if missing:
            return f"{self.python} has no {', no '.join(missing)}"
        if not self.is_pretended and not self.torch.get("cuda"):
            return f"torch {self.torch['torch']} of {self.python} finds no GPU"
        return ""


def ask(command, limit_s, environment=None):
    """What a program prints; "" where it cannot be run."""
    try:
        return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=limit_s, check=False, env=environment).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def is_executable(path):
    return path.is_file() and os.access(path, os.X_OK)


def tests_of(build):
    try:
        return gpu_tests.programs_of(build)
    except (OSError, ValueError, subprocess.CalledProcessError) as fault:
        raise Missing(f"ctest does not list the tests of {build}: {fault}") from fault


def listed_tests(root):
    """A bundle's."""
    listed = root / "bin" / "tests" / "list"
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else []
    return [(int(ranks), root / program, None) for ranks, program in (line.split(" ", 1) for line in lines)]


def doubles(build):
    folder = build / "tests" / "kernels" / "cuda_on_host"
    return [(ranks, folder / name, chosen) for name, ranks, chosen in DOUBLES if is_executable(folder / name)]


def find_python():
    """As scripts/tune.sh: that of PYTHON, else of the active environment, else the one that runs this."""
    if os.environ.get("PYTHON"):
        return os.environ["PYTHON"]
    for folder in filter(None, map(os.environ.get, ("VIRTUAL_ENV", "CONDA_PREFIX"))):
        if is_executable(pathlib.Path(folder) / "bin" / "python3"):
            return str(pathlib.Path(folder) / "bin" / "python3")
    return sys.executable
