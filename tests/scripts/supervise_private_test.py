"""What scripts/supervise.sh leaves in folders and on terminals is nobody else's to read, to plant or to be fooled by."""

import os
import pathlib
import subprocess
import time
import unittest

from supervise_support import SUPERVISE, SuperviseTest


class Private(SuperviseTest):
    def leave_folder(self, name, *owner):
        folder = self.directory / name
        folder.mkdir()
        (folder / "owner").write_text(" ".join(map(str, owner)) + "\n", encoding="utf-8")
        return folder

    def test_only_what_dead_supervisors_left_is_removed(self):
        dead = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout.strip()
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        space = f"{boot}/{os.readlink('/proc/self/ns/pid')}"
        started = pathlib.Path("/proc/self/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[19]
        for parent in ("dstune-run.", ".dstune-run."):
            with self.subTest(parent):
                gone = [self.leave_folder(f"{parent}dead", space, dead, 1),
                        self.leave_folder(f"{parent}reused", space, os.getpid(), int(started) + 1)]
                stay = [self.leave_folder(f"{parent}alive", space, os.getpid(), started),
                        self.leave_folder(f"{parent}container", f"{boot}/pid:[1]", dead, 1),
                        self.leave_folder(f"{parent}host", "another/pid:[1]", dead, 1)]
                (self.directory / "starts").unlink(missing_ok=True)

                self.supervise('leave 0', options=("--shared", str(self.directory)))

                self.assertEqual([path.name for path in gone if path.exists()], [])
                self.assertEqual([path.name for path in stay if not path.exists()], [])

    def test_links_and_others_folders_are_no_leftovers(self):
        target = self.leave_folder("mine", "x", 1, 1)
        (self.directory / "dstune-run.link").symlink_to(target)

        self.supervise('leave 0')

        self.assertTrue((target / "owner").exists())
        self.assertTrue((self.directory / "dstune-run.link").is_symlink())

    def test_what_is_planted_in_the_working_directory_is_neither_run_nor_read_nor_written(self):
        """Whoever knows the host's name and the process's number could foresee these names."""
        planted = r"""bad="touch $PWD/pwned"; mine=$PWD/mine; echo mine >"$mine"
for name in ".dstune-exit-code.$(uname -n).$PPID" dstune-7.starts; do
  ln -s "$mine" "$PWD/$name"; ln -s "$mine" "$PWD/$name.rank0"; echo "$bad" >"$PWD/$name.command"
done
record; leave 0"""

        done = self.supervise(planted, options=("--shared", str(self.directory)),
                              arguments=("--run", "config.json", "--", "train"))

        self.assert_ended(done, 1, 1)
        self.assertIn("rank 0 left no optimum", done.stderr)
        self.assertFalse((self.directory / "pwned").exists())
        self.assertEqual((self.directory / "mine").read_text(encoding="utf-8"), "mine\n")

    def test_rank_0s_folder_is_this_users_alone_and_has_another_name_each_time(self):
        look = 'stat -c "%a %u" "$FOLDER" >>modes; echo "$FOLDER" >>folders; record; leave 137'

        self.supervise(look, look + "; leave 0", options=("--shared", str(self.directory)))

        folders = (self.directory / "folders").read_text(encoding="utf-8").split()
        self.assertEqual(len(set(folders)), 2)
        self.assertEqual([str(self.directory)] * 2, [os.path.dirname(folder) for folder in folders])
        self.assertEqual((self.directory / "modes").read_text(encoding="utf-8"), f"700 {os.getuid()}\n" * 2)

    def test_another_place_serves_where_the_shared_one_is_not_safe_or_not_there(self):
        home = self.directory / "home"
        home.mkdir()
        unsafe = self.directory / "unsafe"
        unsafe.mkdir()
        unsafe.chmod(0o777)
        for shared in (unsafe, self.directory / "absent"):
            with self.subTest(shared.name):
                (self.directory / "starts").unlink(missing_ok=True)

                done = self.supervise('record; leave 0', options=("--shared", str(shared)), HOME=str(home))

                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue((self.directory / "folder").read_text(encoding="utf-8").startswith(f"{home}/"))
        self.assertEqual(list(home.iterdir()), [])

    def test_nothing_that_a_terminal_obeys_is_said(self):
        leave = r"""printf '%s\0' sh -c 'exit 9' $'\e[31m\u202e\u009b' >"$FOLDER/command"; leave 0"""

        done, _ = self.train(leave)

        self.assert_ended(done, 9, 1)
        self.assertIn("starting: sh -c", done.stderr)
        self.assertTrue(all(letter == "\n" or " " <= letter <= "~" for letter in done.stderr), repr(done.stderr))

    def test_a_standard_output_that_is_full_is_an_error(self):
        for number, lines in enumerate(('record; echo table; leave 0', 'record; leave 0'), 1):
            with self.subTest(lines):
                (self.directory / "starts").unlink(missing_ok=True)
                (self.directory / "1").write_text(lines + "\n", encoding="utf-8")
                with open("/dev/full", "wb") as full:
                    done = subprocess.run([SUPERVISE, "./launcher", "--", "program", "config.json"], stdout=full,
                                          cwd=self.directory, env=self.environment(), stdin=subprocess.DEVNULL,
                                          stderr=subprocess.PIPE, text=True, timeout=120, check=False)

                self.assertEqual(done.returncode, 2 - number, done.stderr)

    def test_a_process_that_holds_standard_output_is_not_waited_for(self):
        done = self.supervise('record; (exec setsid sleep 1000) & leave 0')

        self.assert_ended(done, 0, 1)

    def test_a_reader_may_take_its_time(self):
        # More than one pipe holds, and less than both and what is on its way between them.
        (self.directory / "1").write_text("record; seq 20000; leave 0\n", encoding="utf-8")
        command = '"$0" ./launcher -- program config.json | (until [ -e reading ]; do sleep 0.1; done; wc -l); exit ${PIPESTATUS[0]}'
        reader = subprocess.Popen(["bash", "-c", command, SUPERVISE], cwd=self.directory, env=self.environment(),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        while not list(self.directory.glob("dstune-run.*/exit-code")):
            self.assertIsNone(reader.poll())
            time.sleep(0.02)
        (self.directory / "reading").touch()

        self.assertEqual(reader.communicate(timeout=60)[0].strip(), "20000")
        self.assertEqual(reader.returncode, 0)

    def test_what_is_printed_is_handed_on_whole(self):
        done = self.supervise('record; seq 100000; leave 0')

        self.assertEqual(done.stdout, "".join(f"{i}\n" for i in range(1, 100001)))


if __name__ == "__main__":
    unittest.main()
