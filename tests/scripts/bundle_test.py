#!/usr/bin/env python3
"""A bundle (scripts/bundle.sh) where there is nothing else: a root directory with the C library and a shell.

usage: bundle_test.py BUNDLE.tar.gz
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

LIMIT = 300  # seconds: more is a deadlock
MOST_BYTES = 60 * 2**20
LIBC = ("ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1",
        "libresolv.so.2", "libutil.so.1")
ONE_EXPERIMENT = """{
  "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "zero_optimization": {"stage": 1},
  "dstune": {
    "tuner": "fast",
    "model": {"model_type": "gpt2", "vocab_size": 64, "n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 1},
    "sequence_length": 16, "backend": "cpu"
  }
}"""
archive = None

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import fake_hosts  # noqa: E402 (its folder is known only now)


def libraries():
    """name -> path of the C library's files on this machine"""
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True,
                            env={"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"}).stdout
    found = {}
    for name, path in re.findall(r"^\s*(\S+) \(.*x86-64.*\) => (\S+)$", listed, re.MULTILINE):
        found.setdefault(name, path)
    return {name: found[name] for name in LIBC if name in found}


def make_root(root):
    for folder in ("bin", "lib64", "proc", "sys", "dev/shm", "tmp"):
        (root / folder).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    for name, path in libraries().items():
        place = root / ("lib64/" + name if name.startswith("ld-") else path.lstrip("/"))
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    shutil.copy(os.path.realpath("/bin/sh"), root / "bin" / "sh")


def read_result(folder):
    return json.loads((folder / "ds_config_optimal.json").read_text(encoding="utf-8"))


class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="dstune-bundle-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        cls.root = cls.directory / "root"
        make_root(cls.root)
        with tarfile.open(archive) as tar:
            tar.extractall(cls.root / "elsewhere")
        cls.outside, = (cls.root / "elsewhere").iterdir()
        cls.inside = "/" + str(cls.outside.relative_to(cls.root))

    def check(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def in_root(self, *command):
        """Runs `command` with no variables; what the kernel gives (/dev, /proc, /sys) is there while it runs."""
        if os.geteuid() != 0:
            self.skipTest("only root can change the root directory")
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("this machine allows no mounts")
        mounts = (f"mount -t proc proc {self.root}/proc && mount --rbind /sys {self.root}/sys && "
                  f"mount --rbind /dev {self.root}/dev && "
                  f"mount -t tmpfs tmpfs {self.root}/dev/shm && exec env -i {shutil.which('chroot')} {self.root} \"$@\"")
        return subprocess.run(["unshare", "--mount", "sh", "-c", mounts, "sh", *command], capture_output=True,
                              text=True, timeout=LIMIT, check=False)

    def test_is_small(self):
        self.assertLess(os.path.getsize(archive), MOST_BYTES)

    def test_its_manifest_says_what_it_needs(self):
        manifest = (self.outside / "MANIFEST").read_text(encoding="utf-8").splitlines()
        listed = self.check(subprocess.run([self.outside / "bin" / "dstune-mpi", "--list-backends"],
                                           capture_output=True, text=True, check=False)).splitlines()

        self.assertRegex(manifest[1], r"^needs: x86-64-v3 \(AVX2\), Linux, glibc >= 2\.\d+$")
        self.assertEqual([line for line in manifest if line.startswith("CUDA ")],
                         [line for line in listed if line.startswith(("CUDA run time: ", "CUDA code: "))])

    def test_runs_on_any_x86_64_v3(self):
        code = self.check(subprocess.run(["objdump", "-d", self.outside / "bin" / "dstune-mpi"],
                                         capture_output=True, text=True, check=False))
        self.assertIn("%ymm", code)
        _, *parts = re.split(r"^[0-9a-f]+ <(.+)>:$", code, flags=re.MULTILINE)
        wide = [name for name, body in zip(parts[::2], parts[1::2]) if "%zmm" in body]
        # These are called where the processor has AVX-512 (src/kernels/host/loops.hpp, src/kernels/cpu/call_apart.hpp), as
        # are the C functions of an OpenBLAS that is linked into the program (scripts/bundle/manylinux.sh).
        chosen = ("host11loop_avx512", "cpu9call_wide")
        self.assertEqual([name for name in wide if name.startswith("_Z") and not any(each in name for each in chosen)], [])
        self.assertEqual([each for each in chosen if not any(each in name for name in wide)], [])

    def programs(self):
        return [path for path in sorted(self.outside.rglob("*"))
                if not path.is_symlink() and path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]

    def test_needs_no_newer_c_library_than_its_manifest_says(self):
        manifest = (self.outside / "MANIFEST").read_text(encoding="utf-8")
        allowed = int(re.search(r"glibc >= 2\.(\d+)$", manifest, re.MULTILINE).group(1))
        newest = 0
        for path in self.programs():
            symbols = self.check(subprocess.run(["readelf", "--wide", "--dyn-syms", path], capture_output=True, text=True,
                                                check=False))
            for symbol, minor in re.findall(r" UND (\S+)@+GLIBC_2\.(\d+)", symbols):
                self.assertLessEqual(int(minor), allowed, f"{path.relative_to(self.outside)}: {symbol}")
                newest = max(newest, int(minor))
        self.assertEqual(newest, allowed)

    def test_needs_nothing_of_the_system_but_the_c_library(self):
        for path in self.programs():
            needed = self.check(subprocess.run(["ldd", path], capture_output=True, text=True, check=False))
            for name, place in re.findall(r"(\S+) => (.+?)(?: \(|$)", needed, re.MULTILINE):
                if name not in LIBC:
                    self.assertTrue(os.path.realpath(place).startswith(str(self.outside)), f"{path}: {name} => {place}")

    def test_a_program_alone_starts(self):
        program = f"{self.inside}/bin/dstune-mpi"
        self.assertIn("Open MPI", self.check(self.in_root(program, "--version")))
        plan = self.in_root(program, "--plan", "--world-size", "2", f"{self.inside}/examples/tiny.json")
        self.assertIn("z3", self.check(plan))

    def test_mpirun_tunes(self):
        done = self.in_root(f"{self.inside}/bin/mpirun", "-np", "3", f"{self.inside}/bin/dstune-mpi",
                            "--results-dir", "/tmp/results", f"{self.inside}/examples/tiny.json")
        self.assertIn("z0_gas1_tmbspg4", self.check(done))
        self.assertIn("train_batch_size", read_result(self.root / "tmp" / "results"))

    def test_a_worker_without_mpirun_is_told_so(self):
        done = self.in_root(f"{self.inside}/bin/dstune-mpi", f"{self.inside}/examples/tiny.json")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("worker", done.stderr)

    def test_without_a_remote_shell_other_hosts_are_out_of_reach(self):
        done = self.in_root(f"{self.inside}/bin/mpirun", "-host", "node01:1,node02:1", f"{self.inside}/bin/dstune-mpi",
                            "--version")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("neither ssh nor rsh", done.stderr)

    def test_spans_hosts_that_have_it_in_the_same_place(self):
        if fake_hosts.missing():
            self.skipTest(fake_hosts.missing())
        config = self.directory / "one.json"
        config.write_text(ONE_EXPERIMENT, encoding="utf-8")
        hosts = fake_hosts.start(self.directory, 2)
        self.addCleanup(hosts.close)
        done = subprocess.run(
            [*hosts.enter("h1", self.directory), "env", "-i", f"TMPDIR={hosts.temporary('h1')}",
             self.outside / "bin" / "mpirun", "--mca", "plm_rsh_agent", hosts.agent, "-host", "h1:2,h2:1",
             self.outside / "bin" / "dstune-mpi", "--results-dir", "hosts", config],
            capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertIn("z1_gas1_tmbspg1", self.check(done))
        self.assertIn("2 workers on 2 hosts", done.stderr)

    def test_the_checks_of_a_gpu_machine_find_all_that_they_call(self):
        done = subprocess.run([self.outside / "scripts" / "gpu_check.sh", "--pretend", "--only", "smoke,kills",
                               self.directory / "checks"], cwd=self.directory, env={"PATH": "/usr/bin:/bin"},
                              capture_output=True, text=True, timeout=LIMIT, check=False)
        text = (self.directory / "checks" / "checks.jsonl").read_text(encoding="utf-8")
        found = {line["check"]: line["verdict"] for line in map(json.loads, text.splitlines())}
        self.assertEqual(found, {"list-backends": "passed", "tune": "passed", "worker killed": "passed",
                                 "rank 0 killed": "passed"}, done.stdout)
        for name in ("compare_step_with_torch.py", "gpu_tuning.py", "verify_against_deepspeed.py", "verify/worker.py",
                     "calibration/processors.py"):
            self.assertTrue((self.outside / "scripts" / name).is_file(), name)

    def test_tune_sh_builds_nothing(self):
        done = subprocess.run([self.outside / "scripts" / "tune.sh", self.outside / "examples" / "tiny.json", "-n", "3"],
                              cwd=self.directory, env={"PATH": "/usr/bin:/bin", "DSTUNE_NO_CALIBRATE": "1"},
                              capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertIn("z0_gas1_tmbspg4", self.check(done))
        self.assertFalse((self.outside / "build").exists())


if __name__ == "__main__":
    archive = os.path.abspath(sys.argv.pop(1))
    unittest.main()
