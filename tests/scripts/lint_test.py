"""Which sources lint.sh takes as changed."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])
UNIT = "\n".join(f"int number_{i}() {{ return {i}; }}" for i in range(20)) + "\n"
IDENTITY = ["-c", "user.name=A", "-c", "user.email=a@b"]


class LintTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.file("scripts/lint.sh")
        shutil.copy(SOURCE / "scripts/lint.sh", self.root / "scripts/lint.sh")
        self.file("src/a/unit.hpp", "#pragma once\n" + UNIT)
        self.file("src/a/unit.cpp", '#include "a/unit.hpp"\n\n#include <string>\n' + UNIT)
        self.file("src/user.cpp", '#include "a/unit.hpp"\n' + UNIT)
        self.git("init", "-q")
        self.git("add", "src")
        self.git(*IDENTITY, "commit", "-qm", "Begin")

    def git(self, *words):
        subprocess.run(["git", *words], cwd=self.root, check=True)

    def file(self, name, text=""):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def replace(self, name, old, new):
        self.file(name, (self.root / name).read_text().replace(old, new))

    def listed(self):
        self.git("add", "src")
        lint = ["bash", "scripts/lint.sh", "--list", "HEAD"]
        return subprocess.run(lint, cwd=self.root, check=True, capture_output=True, text=True).stdout.split()

    def move(self):
        (self.root / "src/b").mkdir()
        for name in ("unit.hpp", "unit.cpp"):
            self.git("mv", f"src/a/{name}", f"src/b/{name}")
        for name in ("b/unit.cpp", "user.cpp"):
            self.replace(f"src/{name}", '"a/unit.hpp"', '"b/unit.hpp"')

    def test_a_source_that_changed_is_taken(self):
        self.replace("src/user.cpp", "return 7;", "return 8;")

        self.assertEqual(self.listed(), ["src/user.cpp"])

    def test_a_header_that_changed_stands_for_its_source(self):
        self.replace("src/a/unit.hpp", "return 7;", "return 8;")

        self.assertEqual(self.listed(), ["src/a/unit.cpp"])

    def test_what_only_moved_and_who_includes_it_is_left_out(self):
        self.move()

        self.assertEqual(self.listed(), [])

    def test_what_moved_and_changed_is_taken(self):
        self.move()
        self.replace("src/b/unit.cpp", "return 7;", "return 8;")

        self.assertEqual(self.listed(), ["src/b/unit.cpp"])

    def test_a_library_header_that_went_is_a_change(self):
        self.replace("src/a/unit.cpp", "#include <string>\n", "")

        self.assertEqual(self.listed(), ["src/a/unit.cpp"])

    def test_another_comment_is_no_change_but_for_the_linter(self):
        self.replace("src/user.cpp", "int number_7()", "  // why\nint number_7()")
        self.assertEqual(self.listed(), [])

        self.replace("src/user.cpp", "int number_9()", "// NOLINTNEXTLINE(a-check)\nint number_9()")
        self.assertEqual(self.listed(), ["src/user.cpp"])

    def test_a_new_source_is_taken(self):
        self.file("src/new.cpp", "int more();\n")

        self.assertEqual(self.listed(), ["src/new.cpp"])


if __name__ == "__main__":
    unittest.main()
