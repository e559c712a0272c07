"""cmake/SourceCommit.cmake in a checkout with and without changes, and where there is none."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "cmake" / "SourceCommit.cmake"


class SourceCommit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.sources = self.root / "sources"
        self.sources.mkdir()
        self.source = self.root / "source.cpp"

    def git(self, *arguments):
        command = ["git", "-C", self.sources, "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self):
        self.git("init", "-q")
        (self.sources / "file").write_text("1", encoding="utf-8")
        self.git("add", "file")
        self.git("commit", "-q", "-m", "Begin")
        return self.git("rev-parse", "--short=12", "HEAD")

    def found(self):
        subprocess.run(["cmake", f"-DFOLDER={self.sources}", f"-DSOURCE={self.source}", "-P", SCRIPT], check=True,
                       capture_output=True)
        text, = re.findall(r'source_commit\(\) \{ return "(.*)"; \}', self.source.read_text(encoding="utf-8"))
        return text

    def test_a_checkout_without_changes_is_its_commit(self):
        commit = self.commit()
        (self.sources / "untracked").touch()

        self.assertEqual(self.found(), commit)

    def test_a_change_makes_it_dirty(self):
        commit = self.commit()
        (self.sources / "file").write_text("2", encoding="utf-8")

        self.assertEqual(self.found(), f"{commit}-dirty")

    def test_without_a_checkout_it_is_unknown_also_inside_another_ones(self):
        self.assertEqual(self.found(), "unknown")

        self.commit()
        self.sources = self.sources / "unpacked"
        self.sources.mkdir()
        self.assertEqual(self.found(), "unknown")

    def test_the_source_is_left_alone_while_the_commit_stays(self):
        self.commit()
        self.found()
        before = self.source.stat().st_mtime_ns

        self.found()

        self.assertEqual(self.source.stat().st_mtime_ns, before)


if __name__ == "__main__":
    unittest.main()
