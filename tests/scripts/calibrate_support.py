"""A Python that pretends, for tests of tuning and calibrating from the shell."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])
TUNE = SOURCE / "scripts" / "tune.sh"


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def python(self, name="python", modules=(), answer="exit 0"):
        """One that has `modules` and none of those installed here; a run of it is told to `said`."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        packages = self.root / "packages"
        packages.mkdir(exist_ok=True)
        for module in modules:
            (packages / f"{module}.py").write_text("")
        path.write_text(f"""#!/bin/sh
case "$1" in
  -c | -B) PYTHONPATH={packages} exec {sys.executable} -B -S "$@" ;;
esac
echo "$0 $*" >>{self.root}/said
{answer}
""")
        path.chmod(0o755)
        return path

    def calibrate(self, *arguments, **variables):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.root), "DS_ACCELERATOR": "cpu", **variables}
        return subprocess.run([TUNE, *arguments], env=environment, cwd=self.root, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def said(self):
        path = self.root / "said"
        return path.read_text() if path.exists() else ""
