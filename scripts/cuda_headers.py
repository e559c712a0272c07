#!/usr/bin/env python3
"""Takes the headers of a release of CUDA, cuDNN and NCCL out of NVIDIA's packages on PyPI into a folder.

usage: scripts/cuda_headers.py CUDA_VERSION FOLDER     (12.2, 12.4 or 12.8)

Of packages of hundreds of megabytes only the headers are read. Exit code 3: PyPI cannot be reached.
"""
import http.client
import io
import pathlib
import re
import sys
import urllib.error
import urllib.request
import zipfile

# The oldest cuDNN that is used beside them all, and NCCL's oldest beside the oldest CUDA.
PACKAGES = {
    "12.2": {"nvidia-cuda-runtime-cu12": "12.2.140", "nvidia-cuda-nvcc-cu12": "12.2.140",
             "nvidia-cublas-cu12": "12.2.5.6", "nvidia-cudnn-cu12": "9.0.0.312", "nvidia-nccl-cu12": "2.18.1"},
    "12.4": {"nvidia-cuda-runtime-cu12": "12.4.127", "nvidia-cuda-nvcc-cu12": "12.4.131",
             "nvidia-cublas-cu12": "12.4.5.8", "nvidia-cudnn-cu12": "9.1.0.70", "nvidia-nccl-cu12": "2.21.5"},
    "12.8": {"nvidia-cuda-runtime-cu12": "12.8.90", "nvidia-cuda-nvcc-cu12": "12.8.93",
             "nvidia-cublas-cu12": "12.8.4.1", "nvidia-cudnn-cu12": "9.8.0.87", "nvidia-nccl-cu12": "2.26.2"},
}
BLOCK = 1 << 20
TIMEOUT_S = 60


class RemoteFile(io.RawIOBase):
    """A file behind an address, read in blocks as they are needed."""

    def __init__(self, address, size):
        super().__init__()
        self.address, self.size, self.position, self.blocks = address, size, 0, {}

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        return self.position

    def seek(self, offset, whence=io.SEEK_SET):
        self.position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.size}[whence]
        return self.position

    def block(self, number):
        if number not in self.blocks:
            last = min(self.size, (number + 1) * BLOCK) - 1
            request = urllib.request.Request(self.address, headers={"Range": f"bytes={number * BLOCK}-{last}"})
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                self.blocks[number] = answer.read()
        return self.blocks[number]

    def readinto(self, buffer):
        count = min(len(buffer), self.size - self.position)
        if count <= 0:
            return 0
        number, start = divmod(self.position, BLOCK)
        part = self.block(number)[start:start + count]
        buffer[:len(part)] = part
        self.position += len(part)
        return len(part)


def size_of(address):
    request = urllib.request.Request(address, headers={"Range": "bytes=0-0"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        if answer.status != http.HTTPStatus.PARTIAL_CONTENT:
            raise urllib.error.URLError(f"{address} is not given in parts")
        return int(answer.headers["Content-Range"].rpartition("/")[2])


def wheel(name, version):
    """As pip finds it: in PyPI's list of the package's files."""
    with urllib.request.urlopen(f"https://pypi.org/simple/{name}/", timeout=TIMEOUT_S) as answer:
        listed = answer.read().decode()
    file = re.escape(f"{name.replace('-', '_')}-{version}-") + r"[^#\"]*x86_64\.whl"
    address = re.search(rf'href="(https://[^"#]*/{file})', listed).group(1)
    return zipfile.ZipFile(io.BufferedReader(RemoteFile(address, size_of(address))))


def take_headers(name, version, folder):
    with wheel(name, version) as archive:
        for entry in archive.namelist():
            place = entry.partition("/include/")[2]
            if place and not place.endswith("/") and ".." not in place and not place.endswith(".py"):
                path = folder / place
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(entry))


def main(arguments):
    if len(arguments) != 2 or arguments[0] not in PACKAGES:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    try:
        for name, version in PACKAGES[arguments[0]].items():
            take_headers(name, version, pathlib.Path(arguments[1]))
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as fault:
        if getattr(fault, "code", None) == 404:  # PyPI can be reached, and what is asked for is wrong
            raise
        print(f"cuda_headers: {fault}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
