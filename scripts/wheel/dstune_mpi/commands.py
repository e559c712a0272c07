"""The commands of the wheel. Each becomes the program or script in this process, so that signals reach that, and its
exit code is the command's."""

import os
import signal
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))


def environment():
    """This process's, with the Python that runs this as the one whose DeepSpeed and NVIDIA libraries are meant, whether
    its environment is active or not. PYTHON names another one, as without a wheel."""
    variables = dict(os.environ)
    if sys.executable:
        variables.setdefault("PYTHON", sys.executable)
    if sys.prefix != sys.base_prefix:
        variables["VIRTUAL_ENV"] = sys.prefix
    elif os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        variables["CONDA_PREFIX"] = sys.prefix
    return variables


def become(*path):
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and what it becomes would, too
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    file = os.path.join(ROOT, *path)
    try:
        os.execve(file, [file, *sys.argv[1:]], environment())
    except OSError as fault:
        sys.exit(f"error: {file} cannot be run: {fault.strerror}")


def tune():
    """dstune: scripts/tune.sh, which takes the bundle's own mpirun."""
    become("scripts", "tune.sh")


def program():
    """dstune-mpi."""
    become("bin", "dstune-mpi")
