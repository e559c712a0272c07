"""Headers out of packages that stay where they are."""
import contextlib
import importlib.util
import io
import os
import pathlib
import random
import re
import tempfile
import unittest
import urllib.error
import zipfile
from unittest import mock

SOURCE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])
spec = importlib.util.spec_from_file_location("cuda_headers", SOURCE / "scripts" / "cuda_headers.py")
cuda_headers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cuda_headers)

PLACE = "https://files/packages/aa/nvidia_some_cu12-12.2.5-py3-none-manylinux1_x86_64.whl"
LIBRARY = random.Random(1).randbytes(5 * cuda_headers.BLOCK)


def package():
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("nvidia/some/include/some.h", "#define SOME 1\n")
        archive.writestr("nvidia/some/lib/libsome.so.12", LIBRARY)
        archive.writestr("nvidia/some/include/crt/host.h", "#define HOST 1\n" * 100_000)
        archive.writestr("nvidia/some/include/__init__.py", "")
    return made.getvalue()


class Answer(io.BytesIO):
    def __init__(self, content, status=200, **headers):
        super().__init__(content)
        self.status, self.headers = status, {name.replace("_", "-"): value for name, value in headers.items()}


class PyPi:
    """Has one package, in two versions of which one begins as the other does."""

    def __init__(self, gives_parts=True):
        self.file, self.gives_parts, self.given = package(), gives_parts, 0

    def open(self, request, timeout):
        assert timeout > 0
        if isinstance(request, str):
            if not request.endswith("/nvidia-some-cu12/"):
                raise urllib.error.HTTPError(request, 404, "Not Found", {}, None)
            other = PLACE.replace("12.2.5-", "12.2.50-")
            return Answer(f'<a href="{other}#sha256=0">x</a>\n<a href="{PLACE}#sha256=1">y</a>'.encode())
        assert request.full_url == PLACE
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", request.get_header("Range")).groups())
        if not self.gives_parts:
            return Answer(self.file)
        part = self.file[first:last + 1]
        self.given += len(part)
        return Answer(part, 206, Content_Range=f"bytes {first}-{last}/{len(self.file)}")


class Headers(unittest.TestCase):
    def take(self, pypi, name="nvidia-some-cu12"):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        packages = {"12.2": {name: "12.2.5"}}
        with mock.patch.object(cuda_headers.urllib.request, "urlopen", pypi.open), \
                mock.patch.object(cuda_headers, "PACKAGES", packages), contextlib.redirect_stderr(io.StringIO()):
            code = cuda_headers.main(["12.2", folder.name])
        root = pathlib.Path(folder.name)
        return code, {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}

    def test_headers_alone_are_taken_and_little_else_is_read(self):
        pypi = PyPi()

        code, files = self.take(pypi)

        self.assertEqual(code, 0)
        self.assertEqual(files, {"some.h": "#define SOME 1\n", "crt/host.h": "#define HOST 1\n" * 100_000})
        self.assertLess(pypi.given, len(pypi.file) // 2)

    def test_a_place_that_gives_no_parts_counts_as_out_of_reach(self):
        self.assertEqual(self.take(PyPi(gives_parts=False)), (3, {}))

    def test_a_package_that_is_not_there_is_a_fault(self):
        with self.assertRaises(urllib.error.HTTPError):
            self.take(PyPi(), "nvidia-other-cu12")

    def test_another_release_is_refused(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(cuda_headers.main(["11.8", "folder"]), 2)
        self.assertIn("usage: scripts/cuda_headers.py", said.getvalue())


if __name__ == "__main__":
    unittest.main()
