"""scripts/bundle, for older systems: what needs too new a C library is named, and what stands for newer functions works."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])
BUNDLE = SOURCE / "scripts" / "bundle"
ROUTINES = ("arc4random", "pthread_cond_clockwait")
WAITS = """
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>

int main() {
  using namespace std::chrono_literals;
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  const auto end = std::chrono::steady_clock::now() + 20ms;
  while (condition.wait_until(lock, end) == std::cv_status::no_timeout) {}
  std::printf("waited: %d\\n", std::chrono::steady_clock::now() >= end);
  bool told = false;
  std::thread other([&] {
    const std::lock_guard other_lock(mutex);
    told = true;
    condition.notify_one();
  });
  std::printf("heard: %d\\n", condition.wait_for(lock, 1h, [&] { return told; }));
  lock.unlock();
  other.join();
  std::random_device device("default");
  std::set<unsigned> numbers;
  while (numbers.size() < 8) numbers.insert(device());
  std::printf("numbers: %zu\\n", numbers.size());
}
"""


class Manylinux(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="dstune-manylinux-"))
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)

    def check(self, limit):
        """check_glibc over a folder that stands for a bundle."""
        script = f'bundle={self.top}; . {BUNDLE}/libraries.sh; check_glibc {limit}; needed_glibc | tail -1'
        return subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, timeout=60,
                              check=False)

    def test_a_file_that_needs_a_newer_c_library_is_named_with_what_it_calls(self):
        (self.top / "bin").mkdir()
        shutil.copy(os.path.realpath(shutil.which("ls")), self.top / "bin" / "program")
        allowed = self.check("2.9999")
        newest, file, symbol = allowed.stdout.split()

        self.assertEqual(allowed.returncode, 0, allowed.stderr)
        self.assertEqual(file, "bin/program:")
        refused = self.check(f"2.{int(newest.split('.')[1]) - 1}")
        self.assertEqual(refused.returncode, 1)
        self.assertIn(f"\n  {newest} bin/program: {symbol}\n", refused.stderr)
        self.assertEqual(self.check(newest).returncode, 0)

    def test_what_stands_for_newer_functions_does_what_they_do(self):
        (self.top / "waits.cpp").write_text(WAITS, encoding="utf-8")
        program = self.top / "waits"
        subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-O1", "-pthread", self.top / "waits.cpp",
                        BUNDLE / "manylinux" / "older_glibc.cpp", "-static-libstdc++", "-o", program], check=True)
        told = subprocess.run([program], capture_output=True, text=True, timeout=60, check=True).stdout
        listed = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout

        self.assertEqual(told, "waited: 1\nheard: 1\nnumbers: 8\n")
        for routine in ROUTINES:
            self.assertRegex(listed, rf"(?m)^[0-9a-f]+ [tT] {routine}$")

    def test_what_is_fetched_is_fetched_by_its_digest(self):
        for line in (BUNDLE / "manylinux" / "packages.txt").read_text(encoding="utf-8").splitlines():
            self.assertRegex(line, r"^[0-9a-f]{64} pool/\S+_amd64\.deb$")
        for line in (BUNDLE / "manylinux" / "requirements.txt").read_text(encoding="utf-8").splitlines():
            if not line.startswith("#"):
                self.assertTrue(re.fullmatch(r"[\w-]+==[\d.]+ --hash=sha256:[0-9a-f]{64}", line), line)


if __name__ == "__main__":
    unittest.main()
