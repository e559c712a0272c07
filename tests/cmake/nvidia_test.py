"""Where CMake finds NVIDIA's libraries, and what it says of those that are missing."""
import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])
HEADERS = {
    "nccl": ("nccl.h", "#define NCCL_MAJOR 2\n#define NCCL_MINOR 21\n#define NCCL_PATCH 5\n"
                       "#define NCCL_SUFFIX \"\"\n"),
    "cudnn": ("cudnn_version.h", "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 4\n"
                                 "#define CUDNN_PATCHLEVEL 1\n#define CUDNN_MAX_SM 12\n"),
    "cublas": ("cublas_api.h", "#define CUBLAS_VER_MAJOR 12\n#define CUBLAS_VER_MINOR 6\n"
                               "#define CUBLAS_VER_PATCH 3\n"),
}
FILES = {"nccl": ("nccl.h", "libnccl.so.2"), "cudnn": ("cudnn.h", "libcudnn.so.9"),
         "cublas": ("cublasLt.h", "libcublasLt.so.12")}


def put(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


class NvidiaTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name).resolve()
        self.packages = self.root / "venv/lib/python3.12/site-packages"

    def wheel(self, name, folder=None, lib="lib"):
        folder = folder or self.packages / "nvidia" / name
        header, library = FILES[name]
        put(folder / "include" / header)
        put(folder / "include" / HEADERS[name][0], HEADERS[name][1])
        put(folder / lib / library)
        return folder

    def configure(self, *options, **variables):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.root), **variables}
        command = ["cmake", "-S", SOURCE / "tests/cmake/project", "-B", self.root / "build",
                   f"-DDSTUNE_SOURCE_DIR={SOURCE}", *options]
        return subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)

    def test_libraries_are_found_in_the_packages_of_a_virtual_environment(self):
        for name, find, version in [("nccl", "NCCL", "2.21.5"), ("cudnn", "CUDNN", "9.4.1"),
                                    ("cublas", "CUBLASLT", "12.6.3")]:
            folder = self.wheel(name)

            text = self.configure(f"-DFIND={find}", VIRTUAL_ENV=str(self.root / "venv")).stdout

            self.assertIn(f"found=TRUE version={version}", text)
            self.assertIn(f"header={folder}/include library={folder}/lib/{FILES[name][1]}", text)

    def test_the_packages_of_the_python_on_the_path_are_looked_at(self):
        folder = self.wheel("nccl")
        python = self.root / "python3"
        put(python, f"#!/bin/sh\necho '/nowhere;{self.packages}'\n")
        python.chmod(0o755)

        text = self.configure("-DFIND=NCCL", f"-DDSTUNE_PYTHON3={python}").stdout

        self.assertIn(f"header={folder}/include", text)

    def test_a_root_comes_first(self):
        self.wheel("nccl")
        own = self.wheel("nccl", self.root / "own", "lib64")

        by_option = self.configure("-DFIND=NCCL", f"-DNCCL_ROOT={own}",
                                   VIRTUAL_ENV=str(self.root / "venv")).stdout
        (self.root / "build/CMakeCache.txt").unlink()
        by_environment = self.configure("-DFIND=NCCL", NCCL_ROOT=str(own),
                                        VIRTUAL_ENV=str(self.root / "venv")).stdout

        for text in (by_option, by_environment):
            self.assertIn(f"header={own}/include library={own}/lib64/libnccl.so.2", text)

    def test_a_place_that_comes_first_is_taken_without_its_plain_name(self):
        put(self.wheel("nccl") / "lib/libnccl.so")
        own = self.wheel("nccl", self.root / "own")

        text = self.configure("-DFIND=NCCL", NCCL_ROOT=str(own), VIRTUAL_ENV=str(self.root / "venv")).stdout

        self.assertIn(f"library={own}/lib/libnccl.so.2", text)

    def test_a_header_without_the_library_is_not_enough(self):
        (self.wheel("nccl") / "lib/libnccl.so.2").unlink()

        text = self.configure("-DFIND=NCCL", VIRTUAL_ENV=str(self.root / "venv")).stdout

        self.assertIn("found=FALSE", text)

    def test_the_frontend_of_cudnn_is_found_among_the_packages(self):
        self.wheel("cudnn")
        put(self.packages / "include/cudnn_frontend.h")

        text = self.configure("-DFIND=CUDNN", VIRTUAL_ENV=str(self.root / "venv")).stdout

        self.assertIn(f"frontend={self.packages}/include", text)

    def test_auto_builds_without_cuda_and_says_what_is_missing(self):
        done = self.configure("-DDSTUNE_CUDA=AUTO", CUDACXX="/bin/false")

        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("built=OFF", done.stdout)
        self.assertIn("CUDA backend: off, since this is missing: a CUDA compiler that works", done.stdout)

    def test_on_names_every_missing_part_at_once(self):
        done = self.configure("-DDSTUNE_CUDA=ON", CUDACXX="/bin/false")

        self.assertNotEqual(done.returncode, 0)
        text = " ".join(done.stdout.split())
        self.assertIn("DSTUNE_CUDA=ON, but this is missing: a CUDA compiler that works", text)
        self.assertIn("cuBLASLt (CUBLASLT_ROOT), NCCL >= 2.18 (NCCL_ROOT)", text)
        self.assertEqual(text.count("CMake Error"), 1, done.stdout)

    def test_an_old_nccl_is_missing(self):
        folder = self.wheel("nccl")
        put(folder / "include/nccl.h", HEADERS["nccl"][1].replace("MINOR 21", "MINOR 17"))

        done = self.configure("-DDSTUNE_CUDA=AUTO", CUDACXX="/bin/false",
                              VIRTUAL_ENV=str(self.root / "venv"))

        self.assertIn("NCCL >= 2.18", done.stdout)

    def test_off_looks_for_nothing_and_another_word_is_refused(self):
        self.assertIn("off (DSTUNE_CUDA=OFF)", self.configure("-DDSTUNE_CUDA=OFF").stdout)
        done = self.configure("-DDSTUNE_CUDA=maybe")

        self.assertNotEqual(done.returncode, 0)
        self.assertIn('DSTUNE_CUDA is "maybe"; accepted: AUTO, ON, OFF', done.stdout)


if __name__ == "__main__":
    unittest.main()
