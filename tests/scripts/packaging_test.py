"""packaging/: as far as it can be read and run without Spack, Lmod and Apptainer."""

import ast
import os
import pathlib
import re
import shutil
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])
PACKAGING = SOURCE / "packaging"
# The names of Spack for what CMakeLists.txt, src and cmake look for.
SPACK_NAMES = {"MPI": "mpi", "Boost": "boost", "BLAS": "blas", "RE2": "re2", "CUDAToolkit": "cuda", "NCCL": "nccl",
               "GTest": "googletest"}
OFTEN_THERE = {"Threads", "Python3", "Git", "Doxygen", "CUDNN", "CUBLASLT"}  # with the system, or with CUDA
MODULE = """proc module-whatis {{text}} {{}}
proc prepend-path {{name value}} {{ puts "$name=$value" }}
proc setenv {{name value}} {{ puts "$name=$value" }}
source {file}
ModulesHelp"""


def cmake_sources():
    for folder in ("", "src", "cmake"):
        for pattern in (("CMakeLists.txt",) if not folder else ("**/CMakeLists.txt", "**/*.cmake")):
            yield from (SOURCE / folder).glob(pattern)


class Spack(unittest.TestCase):
    def setUp(self):
        self.text = (PACKAGING / "spack/packages/dstune-mpi/package.py").read_text(encoding="utf-8")
        recipe, = [node for node in ast.parse(self.text).body if isinstance(node, ast.ClassDef)]
        self.calls = [node.value for node in recipe.body
                      if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]

    def first_words(self, function):
        return [call.args[0].value for call in self.calls if call.func.id == function]

    def test_the_class_is_the_packages_name(self):
        self.assertIn("class DstuneMpi(CMakePackage, CudaPackage):", self.text)

    def test_it_depends_on_what_cmake_requires(self):
        depends = {re.split(r"[@+ ]", spec)[0] for spec in self.first_words("depends_on")}
        required = set()
        for path in cmake_sources():
            text = path.read_text(encoding="utf-8")
            required |= set(re.findall(r"find_package\((\w+)[^)]*REQUIRED", text)) - OFTEN_THERE
            required |= {"RE2"} & set(re.findall(r"find_library\((RE2)_LIBRARY", text))

        self.assertLessEqual({"MPI", "Boost", "BLAS", "RE2"}, required)
        self.assertEqual([name for name in required if SPACK_NAMES[name] not in depends], [])

    def test_it_sets_options_that_cmake_has(self):
        options = set(re.findall(r'"(DSTUNE_\w+)"', self.text))
        known = set()
        for path in cmake_sources():
            known |= set(re.findall(r"(?:option|set)\((DSTUNE_\w+) ", path.read_text(encoding="utf-8")))

        self.assertGreaterEqual(len(options), 4)
        self.assertEqual(options - known, set())

    def test_its_variants_are_those_that_it_uses(self):
        for name in re.findall(r'define_from_variant\("\w+", "(\w+)"\)', self.text):
            self.assertIn(name, self.first_words("variant") + ["cuda"])  # CudaPackage's own


class Modules(unittest.TestCase):
    VARIABLES = {"PATH": "bin", "MANPATH": "share/man", "XDG_DATA_DIRS": "share", "DSTUNE_ROOT": "share/dstune-mpi"}

    @unittest.skipUnless(shutil.which("tclsh"), "no tclsh")
    def test_environment_modules_file_sets_paths_of_the_prefix(self):
        done = subprocess.run(["tclsh"], input=MODULE.format(file=PACKAGING / "modulefiles/dstune-mpi.tcl"), check=True,
                              capture_output=True, text=True)

        self.assertEqual(dict(line.split("=") for line in done.stdout.splitlines()),
                         {name: f"/opt/dstune-mpi/{path}" for name, path in self.VARIABLES.items()})
        self.assertIn("dstune CONFIG.json", done.stderr)

    def test_lmods_file_sets_the_same(self):
        text = (PACKAGING / "modulefiles/dstune-mpi.lua").read_text(encoding="utf-8")

        found = re.findall(r'^(?:prepend_path|setenv)\("(\w+)", pathJoin\(prefix, "([\w/-]+)"\)\)', text, re.MULTILINE)
        self.assertEqual(dict(found), self.VARIABLES)


class Apptainer(unittest.TestCase):
    def test_it_calls_scripts_and_options_that_are_there(self):
        text = (PACKAGING / "apptainer/dstune-mpi.def").read_text(encoding="utf-8")

        scripts = re.findall(r"^    (?:\S+=\"[^\"]*\" )?(scripts/[\w.]+)", text, re.MULTILINE)
        self.assertEqual(scripts, ["scripts/setup.sh", "scripts/build.sh"])
        for script in scripts:
            self.assertTrue(os.access(SOURCE / script, os.X_OK))
        for name in re.findall(r"-D(DSTUNE_\w+)=", text):
            self.assertTrue(any(name in path.read_text(encoding="utf-8") for path in cmake_sources()), name)


class ReFrame(unittest.TestCase):
    @unittest.skipUnless(shutil.which("reframe"), "no reframe")
    def test_it_is_a_check(self):
        done = subprocess.run(["reframe", "-c", PACKAGING / "reframe/dstune_check.py", "-l"], capture_output=True,
                              text=True, check=False)

        self.assertIn("TunesInVirtualTime", done.stdout)


if __name__ == "__main__":
    unittest.main()
