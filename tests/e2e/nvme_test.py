"""dstune-mpi --nvme-sweep: what it prints, what it refuses, and that nothing is left behind, even by kill -9."""

import errno
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from support import DEADLOCK, PROGRAM, ProgramTest, launch_environment

BUDGET = "256MiB"
NAMESPACES = os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], check=False,
                                                  capture_output=True).returncode == 0


def has_direct_io(directory):
    try:
        os.close(os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_DIRECT))
    except OSError as fault:
        if fault.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
        return False
    return True


class NvmeSweep(ProgramTest):
    def setUp(self):
        super().setUp()
        # The drive of the build tree, which /tmp may not be on.
        folder = tempfile.TemporaryDirectory(dir=pathlib.Path(PROGRAM).parent, prefix="dstune-nvme-")
        self.addCleanup(folder.cleanup)
        self.drive = pathlib.Path(folder.name)
        if not has_direct_io(self.drive):
            self.skipTest("the build tree's file system has no O_DIRECT")
        tried = self.sweep(self.drive, "--nvme-budget", "1EiB")  # too much for any drive, so that nothing is written
        if " is on " in tried.stderr or "read-only" in tried.stderr:
            self.skipTest(tried.stderr)

    def sweep(self, *arguments):
        return self.run_command([PROGRAM, "--nvme-sweep", *map(str, arguments)])

    def assert_refused(self, finished, *words):
        self.assertEqual(finished.returncode, 2, finished.stderr)
        for word in words:
            self.assertIn(word, finished.stderr)
        self.assertEqual(finished.stdout, "")

    def test_the_best_section_is_json_and_a_part_of_a_configuration(self):
        finished = self.sweep(self.drive, "--nvme-budget", BUDGET, "--format", "json")

        self.assertEqual(finished.returncode, 0, finished.stderr)
        found = json.loads(finished.stdout)
        self.assertEqual(set(found["aio"]), {"block_size", "queue_depth", "intra_op_parallelism", "single_submit",
                                             "overlap_events"})
        self.assertIn(found["aio"], [point["aio"] for point in found["points"]])
        self.assertLessEqual(found["bytes_written"], 256 << 20)
        self.assertLessEqual(len(found["points"]), 16)
        self.assertEqual(list(self.drive.iterdir()), [])
        self.assertEqual(self.listing(), [])
        config = self.write_config(self.tiny(aio=found["aio"]))
        checked = self.run_command([PROGRAM, "--check", "--world-size", "2", config])
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_the_table_says_what_was_written(self):
        finished = self.sweep(self.drive, "--nvme-budget", BUDGET)

        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertIn('"aio": {', finished.stdout)
        self.assertIn(f"of at most 256.00 MiB were written to {self.drive}", finished.stdout)

    def test_what_is_no_drive_is_refused(self):
        self.assert_refused(self.sweep("/dev/shm"), "is on tmpfs, which is in memory")
        self.assert_refused(self.sweep(self.drive / "nowhere"), "No such file or directory")
        self.assert_refused(self.sweep(PROGRAM), "Not a directory")

    def test_a_budget_needs_four_times_the_room(self):
        self.assert_refused(self.sweep(self.drive, "--nvme-budget", "1e18"), "times as much")

    @unittest.skipUnless(NAMESPACES, "mounts need root and namespaces")
    def test_read_only_mounts_and_overlays_are_refused(self):
        for kind, mount in (("mounted read-only", 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0"'),
                            ("is on overlay", 'mkdir "$0/u" "$0/w" "$0/l" && '
                             'mount -t overlay -o lowerdir="$0/l",upperdir="$0/u",workdir="$0/w" none "$0/l" && '
                             'cd "$0/l" && set -- "$1" --nvme-sweep "$0/l"')):
            finished = self.run_command(["unshare", "--mount", "sh", "-c", mount + ' && exec "$@"', self.drive,
                                         PROGRAM, "--nvme-sweep", self.drive])

            self.assert_refused(finished, kind)

    @unittest.skipUnless(NAMESPACES, "mounts need root and namespaces")
    def test_a_drive_that_fills_up_has_failed(self):
        """A file system whose image may grow by 20 MiB, though it says that it has a GiB: the drive below it is full."""
        image = self.drive / "image"
        mount = ('truncate -s 1200M "$0/image" && mkfs.ext4 -q -F -E lazy_itable_init=1 "$0/image" && mkdir "$0/disk" '
                 '&& cp --sparse=always "$0/image" "$0/sparse" && used=$(du -k "$0/sparse" | cut -f1) '
                 '&& mount -t tmpfs -o size=$((used + 20480))k none "$0/disk" '
                 '&& cp --sparse=always "$0/image" "$0/disk/image" '
                 '&& mkdir "$0/mounted" && mount -o loop "$0/disk/image" "$0/mounted" || exit 77; exec "$@"')
        finished = self.run_command(["unshare", "--mount", "sh", "-c", mount, self.drive, PROGRAM, "--nvme-sweep",
                                     self.drive / "mounted", "--nvme-budget", BUDGET])
        if finished.returncode == 77:
            self.skipTest(f"no file system of its own: {finished.stderr}")

        self.assertTrue(image.exists())
        self.assertEqual(finished.returncode, 5, finished.stderr)
        self.assertIn("error: write of ", finished.stderr)
        self.assertEqual(finished.stdout, "")

    def test_kill_leaves_nothing(self):
        with subprocess.Popen([PROGRAM, "--nvme-sweep", self.drive, "--nvme-budget", "1GiB"],
                              env=launch_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            files = pathlib.Path(f"/proc/{run.pid}/fd")

            def has_file():
                try:
                    return any(os.readlink(each).startswith(str(self.drive)) for each in files.iterdir())
                except OSError:
                    return False

            while not has_file() and run.poll() is None:
                pass
            is_under_way = run.poll() is None
            run.kill()
            run.wait(DEADLOCK)

        self.assertTrue(is_under_way, "it ended before it was killed")
        self.assertEqual(run.returncode, -9)
        self.assertEqual(list(self.drive.iterdir()), [])

    def test_nothing_is_written_unless_the_option_is_given(self):
        config = self.write_config(self.tiny(
            aio={"block_size": 1048576, "thread_count": 1},
            zero_optimization={"stage": [2], "offload_optimizer": {"device": "nvme", "nvme_path": str(self.drive)}}))
        for option in ("--check", "--plan"):
            finished = self.run_command([PROGRAM, option, "--world-size", "2", config])
            self.assertEqual(finished.returncode, 0, finished.stderr)

        self.assertEqual(self.listing(), ["config.json"])
        self.assertEqual(list(self.drive.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
