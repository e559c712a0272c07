#!/usr/bin/env python3
"""Part of scripts/wheel.sh: writes a wheel whose one package is an unpacked bundle with two commands beside it.

usage: write_wheel.py BUNDLE OUT_DIR
BUNDLE is a folder, OUT_DIR another; the path of the wheel goes to stdout.
"""

import base64
import csv
import hashlib
import io
import os
import pathlib
import re
import stat
import subprocess
import sys
import zipfile

PACKAGE = "dstune_mpi"
SUMMARY = "MPI-native tuner of DeepSpeed/ZeRO configurations"
COMMANDS = {"dstune": f"{PACKAGE}.commands:tune", "dstune-mpi": f"{PACKAGE}.commands:program"}
# What every Linux with this glibc has. NVIDIA's libraries are looked for when the program runs (docs/bundle.md).
OF_THE_SYSTEM = re.compile(r"(ld-linux-x86-64|libc|libm|libpthread|libdl|librt|libresolv|libutil)\.so\.\d+$"
                           r"|lib(cuda|nvidia-\w+|cudart|cublas\w*|cudnn\w*|nccl|nvrtc\w*|nvJitLink)\.so")
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same bundle gives the same wheel


class Refused(Exception):
    """The bundle cannot be a wheel; the text says why."""


def read_manifest(bundle):
    """(version, what pip calls the platforms it runs on), by the bundle's MANIFEST."""
    path = bundle / "MANIFEST"
    if not path.is_file():
        raise Refused("this is no bundle of scripts/bundle.sh: it has no MANIFEST")
    text = path.read_text(encoding="utf-8")
    version = re.match(r"dstune-mpi ([0-9.]+), ", text)
    needs = re.search(r"^needs: x86-64\S* .*\bLinux, glibc >= 2\.(\d+)$", text, re.MULTILINE)
    if not version or not needs:
        raise Refused("its MANIFEST does not say which glibc for x86-64 it needs, so pip could not tell where it runs")
    return version.group(1), f"manylinux_2_{needs.group(1)}_x86_64"


def is_elf(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def check_libraries(files):
    """Refuses a bundle with programs for other processors, or that need libraries which are not in it."""
    programs = [path for path in files if is_elf(path)]
    if not programs:
        raise Refused("it has no program")
    told = subprocess.run(["readelf", "--wide", "-h", "-d", *programs], stdout=subprocess.PIPE, check=True,
                          universal_newlines=True, env={**os.environ, "LC_ALL": "C"}).stdout
    others = set(re.findall(r"^ *Machine: +(.+)$", told, re.MULTILINE)) - {"Advanced Micro Devices X86-64"}
    if others:
        raise Refused(f"it has programs for {', '.join(sorted(others))}; only those for x86-64 are known here")
    within = {path.name for path in files}
    missing = {name for name in re.findall(r"\(NEEDED\).*\[(.+)\]$", told, re.MULTILINE)
               if name not in within and not OF_THE_SYSTEM.match(name)}
    if missing:
        raise Refused(f"it needs libraries of the system: {', '.join(sorted(missing))}")


def metadata(bundle, version):
    return "\n".join([
        "Metadata-Version: 2.1", "Name: dstune-mpi", f"Version: {version}", f"Summary: {SUMMARY}", "License: Apache-2.0",
        "License-File: LICENSE", "Keywords: DeepSpeed,ZeRO,autotuning,MPI", "Platform: Linux",
        "Classifier: Environment :: Console", "Classifier: Environment :: GPU :: NVIDIA CUDA",
        "Classifier: License :: OSI Approved :: Apache Software License",
        "Classifier: Operating System :: POSIX :: Linux", "Classifier: Programming Language :: C++",
        "Classifier: Programming Language :: Python :: 3",
        "Requires-Python: >=3.8", "Description-Content-Type: text/markdown", "",
        (bundle / "README.md").read_text(encoding="utf-8")])


class Wheel:
    """The archive, and the lines of its RECORD."""

    def __init__(self, path, information):
        self._archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self._information = information
        self._record = []

    def add(self, name, content, is_executable=False):
        entry = zipfile.ZipInfo(name, EPOCH)
        entry.create_system = 3  # Unix, or pip would not look at the mode
        entry.external_attr = (stat.S_IFREG | (0o755 if is_executable else 0o644)) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self._archive.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self._record.append((name, f"sha256={digest}", str(len(content))))

    def add_information(self, name, text):
        self.add(f"{self._information}/{name}", text.encode())

    def close(self):
        name = f"{self._information}/RECORD"
        lines = io.StringIO()
        csv.writer(lines, lineterminator="\n").writerows([*self._record, (name, "", "")])
        self.add(name, lines.getvalue().encode())
        self._archive.close()


def write_wheel(bundle, folder):
    """The path of the wheel. A link becomes a copy of its file: wheels have none."""
    version, platform = read_manifest(bundle)
    files = sorted(path for path in bundle.rglob("*") if path.is_file())
    check_libraries(files)
    tag = f"py3-none-{platform}"
    path = folder / f"{PACKAGE}-{version}-{tag}.whl"
    wheel = Wheel(path, f"{PACKAGE}-{version}.dist-info")
    for source in sorted(pathlib.Path(__file__).resolve().with_name(PACKAGE).glob("*.py")):
        wheel.add(f"{PACKAGE}/{source.name}", source.read_bytes())
    for file in files:
        wheel.add(f"{PACKAGE}/{file.relative_to(bundle)}", file.read_bytes(), os.access(file, os.X_OK))
    wheel.add_information("LICENSE", (bundle / "LICENSE").read_text(encoding="utf-8"))
    wheel.add_information("METADATA", metadata(bundle, version))
    wheel.add_information("WHEEL", f"Wheel-Version: 1.0\nGenerator: {PACKAGE}\nRoot-Is-Purelib: false\nTag: {tag}\n")
    wheel.add_information("entry_points.txt", "[console_scripts]\n" + "".join(
        f"{name} = {function}\n" for name, function in COMMANDS.items()))
    wheel.close()
    return path


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        print(write_wheel(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
    except Refused as refusal:
        sys.exit(f"wheel: {refusal}")


if __name__ == "__main__":
    main()
