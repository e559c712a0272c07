"""scripts/supervise.sh with a launcher that does what the test says: no MPI, no program."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SUPERVISE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "scripts" / "supervise.sh"

# Start k of the launcher runs the lines of the file "k" in bash: $FOLDER is where rank 0 leaves its words, "$@" the
# program's arguments.
LAUNCHER = """#!/usr/bin/env bash
while [ "${1##*/}" != run_rank.sh ]; do echo "$1" >>options; shift; done
FOLDER=$2
shift 3
number=$(($(cat starts 2>/dev/null || echo 0) + 1))
echo "$number" >starts
echo "$*" >>arguments
echo "$FOLDER" >folder
echo "elsewhere 1" >"$FOLDER/rank-0"
leave() { echo "$1" >"$FOLDER/exit-code"; }
begin() { mkdir -p "$1" && printf %s "$1" >"$FOLDER/results"; }
record() { begin "$PWD/autotuning_results" && echo '{"type": "finished"}' >>autotuning_results/journal.jsonl; }
. "./$number"
"""


class Supervise(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="dstune-supervise-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        launcher = self.directory / "launcher"
        launcher.write_text(LAUNCHER, encoding="utf-8")
        launcher.chmod(0o755)

    def environment(self, **variables):
        return dict(os.environ, TMPDIR=str(self.directory), DSTUNE_PATIENCE="1", **variables)

    def supervise(self, *starts, options=(), arguments=("config.json",), **variables):
        for number, lines in enumerate(starts, 1):
            (self.directory / str(number)).write_text(lines + "\n", encoding="utf-8")
        done = subprocess.run([SUPERVISE, *options, "./launcher", "-n", "3", "--", "program", *arguments],
                              cwd=self.directory, env=self.environment(**variables), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120, check=False)
        path = self.directory / "arguments"
        self.arguments = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return done

    def assert_ended(self, done, code, starts):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(self.arguments), starts, done.stderr)
        self.assertEqual([path.name for path in self.directory.glob("*dstune-run*")], [])

    def test_an_answer_is_handed_on_and_not_repeated(self):
        for code in (0, 1, 2, 3):
            with self.subTest(code):
                (self.directory / "arguments").unlink(missing_ok=True)
                (self.directory / "starts").unlink(missing_ok=True)

                done = self.supervise(f'record; leave {code}; exit 137')

                self.assert_ended(done, code, 1)

    def train(self, *starts, options=(), **variables):
        done = self.supervise(*starts, options=options,
                              arguments=("--run", "config.json", "--", "train", "--run"), **variables)
        path = self.directory / "trained"
        return done, path.read_text(encoding="utf-8") if path.exists() else None

    LEAVE = r"""printf '%s\0' "NAME=a b" sh -c 'echo $NAME $0 >trained; exit 9' "c d" >"$FOLDER/command"; """

    def test_the_training_follows_with_run(self):
        done, trained = self.train(self.LEAVE + 'record; leave 0')

        self.assert_ended(done, 9, 1)
        self.assertEqual(trained, "a b c d\n")
        self.assertIn("starting: NAME=", done.stderr)

    def test_the_training_follows_no_tuning_that_failed(self):
        for code, why in ((1, "exit code 1"), (2, "exit code 2"), (3, "exit code 3")):
            with self.subTest(code):
                (self.directory / "starts").unlink(missing_ok=True)
                (self.directory / "arguments").unlink(missing_ok=True)

                done, trained = self.train(f'{self.LEAVE} record; leave {code}')

                self.assert_ended(done, code, 1)
                self.assertIsNone(trained)
                self.assertIn("the training command is not started: ", done.stderr)
                self.assertIn(why, done.stderr)

    def test_the_training_follows_no_tuning_that_was_asked_to_end(self):
        done, trained = self.train(self.LEAVE + """record
trap 'leave 0; kill %1; exit' USR1
sleep 60 &
kill -TERM $PPID
wait""")

        self.assert_ended(done, 4, 1)
        self.assertIsNone(trained)
        self.assertIn("SIGTERM asked for the end", done.stderr)

    def test_what_an_earlier_start_left_is_not_trained_with(self):
        for options in ((), ("--shared", str(self.directory))):
            with self.subTest(options):
                (self.directory / "starts").unlink(missing_ok=True)
                (self.directory / "arguments").unlink(missing_ok=True)

                done, trained = self.train(self.LEAVE + 'record; leave 137', 'record; leave 0',
                                           options=options)

                self.assert_ended(done, 1, 2)
                self.assertIsNone(trained)
                self.assertIn("rank 0 left no optimum", done.stderr)

    def test_only_the_programs_own_run_starts_a_training(self):
        done = self.supervise(self.LEAVE + 'leave 0', arguments=("config.json", "--", "train", "--run"))

        self.assert_ended(done, 0, 1)
        self.assertFalse((self.directory / "trained").exists())

    def test_the_launchers_settings_are_not_the_trainings(self):
        leave = r"""printf '%s\0' sh -c 'env >trained' >"$FOLDER/command"; env >tuned; leave 0"""
        done, trained = self.train(leave)

        self.assert_ended(done, 0, 1)
        self.assertIn("OMPI_MCA_orte_local_tmpdir_base", (self.directory / "tuned").read_text(encoding="utf-8"))
        self.assertNotIn("OMPI_MCA_orte", trained)

    def test_rank_0s_death_is_resumed_without_overwrite(self):
        done = self.supervise('record; leave 137', 'leave 0',
                              arguments=("--overwrite", "config.json", "--", "train.py", "--overwrite"))

        self.assert_ended(done, 0, 2)
        self.assertEqual(self.arguments[1], "--resume config.json -- train.py --overwrite")
        self.assertIn("rank 0 died", done.stderr)

    def test_a_death_before_the_journal_starts_anew(self):
        done = self.supervise("exit 137", 'leave 0')

        self.assert_ended(done, 0, 2)
        self.assertEqual(self.arguments[1], "config.json")

    def test_a_rank_that_died_at_the_start_is_started_again(self):
        done = self.supervise('leave 4', 'leave 1; record; exit 137')

        self.assert_ended(done, 1, 2)

    def test_an_error_before_the_journal_is_one_unless_a_rank_died(self):
        done = self.supervise('leave 1; exit 137', 'leave 1; exit 1')

        self.assert_ended(done, 1, 2)

    def test_another_runs_journal_is_not_resumed(self):
        (self.directory / "autotuning_results").mkdir()
        (self.directory / "autotuning_results" / "journal.jsonl").write_text('{"type": "finished"}\n')

        done = self.supervise("exit 137", 'leave 0', arguments=("--overwrite", "config.json"))

        self.assert_ended(done, 0, 2)
        self.assertEqual(self.arguments[1], "--overwrite config.json")

    def test_a_lost_worker_is_resumed_with_all_ranks_three_times(self):
        lost = ('record; echo \'{"restart": "worker_lost"}\' >autotuning_results/status.json; leave 4')

        done = self.supervise(lost, lost, lost, lost)

        self.assert_ended(done, 4, 4)
        self.assertIn("--resume", done.stderr)

    def test_the_results_folder_is_what_rank_0_says(self):
        lost = ('begin "$PWD/a \n\'\"b\""; echo \'{"type":"finished"}\' >>"$PWD/a \n\'\"b\"/journal.jsonl"; '
                'echo \'{"restart": "worker_lost"}\' >"$PWD/a \n\'\"b\"/status.json"; leave 4')

        done = self.supervise(lost, "leave 0")

        self.assert_ended(done, 0, 2)
        self.assertEqual(self.arguments[1], "--resume config.json")

    def test_two_starts_without_a_record_end_it(self):
        done = self.supervise('record; leave 137', 'leave 137', 'leave 137',
                              'leave 0')

        self.assert_ended(done, 4, 3)
        self.assertIn("no new record", done.stderr)

    def test_an_end_that_nobody_asked_for_is_resumed(self):
        done = self.supervise('record; leave 4', 'record; leave 0')

        self.assert_ended(done, 0, 2)
        self.assertEqual(self.arguments[1], "--resume config.json")
        self.assertIn("something else than a signal to this script", done.stderr)

    def test_a_launcher_that_cannot_start_is_not_repeated(self):
        done = self.supervise('rm "$FOLDER/rank-0"; exit 213')

        self.assert_ended(done, 1, 1)

    def test_a_launcher_that_outlives_its_ranks_is_ended(self):
        done = self.supervise('record; leave 3; trap "" TERM; exec sleep 1000')

        self.assert_ended(done, 3, 1)

    def test_a_launcher_whose_rank_0_is_gone_is_ended(self):
        done = self.supervise('record; (:) & echo "$(cat /proc/sys/kernel/random/boot_id)/$(readlink /proc/self/ns/pid) $!" '
                              '>"$FOLDER/rank-0"; wait; exec sleep 1000',
                              'leave 0')

        self.assert_ended(done, 0, 2)

    def test_a_signal_is_handed_on_as_usr1_and_ends_it(self):
        done = self.supervise('record; trap \'leave 4; exit\' USR1; kill -INT $PPID; while :; do read -rt 0.1 <> <(:); done')

        self.assert_ended(done, 4, 1)

    def test_a_signal_between_two_starts_ends_it(self):
        """grep, which the supervisor calls before it starts again, sends the signal."""
        self.tool("grep", '[ -e asked ] || [ ! -e supervisor ] || { : >asked; kill -INT "$(cat supervisor)"; }\n'
                          f'exec {shutil.which("grep")} "$@"\n')

        done = self.supervise('echo $PPID >supervisor; record; leave 137', 'leave 0',
                              PATH=f"{self.directory}/tools:{os.environ['PATH']}")

        self.assert_ended(done, 4, 1)
        self.assertIn("interrupted by SIGINT; continue it with --resume", done.stderr)

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

    def test_a_command_may_have_an_equals_sign_in_its_path(self):
        script = self.directory / "lr=0.1" / "train.sh"
        script.parent.mkdir()
        script.write_text('#!/bin/sh\necho "$NAME $*" >trained\nexit 9\n', encoding="utf-8")
        script.chmod(0o755)
        for first, said in (("", " x=1 y\n"), ('"NAME=a b" ', "a b x=1 y\n")):
            with self.subTest(said):
                (self.directory / "starts").unlink(missing_ok=True)
                (self.directory / "arguments").unlink(missing_ok=True)

                done, trained = self.train(
                    rf"""printf '%s\0' {first}"$PWD/lr=0.1/train.sh" x=1 y >"$FOLDER/command"; leave 0""")

                self.assert_ended(done, 9, 1)
                self.assertEqual(trained, said)

    def test_nothing_that_a_terminal_obeys_is_said(self):
        leave = r"""printf '%s\0' sh -c 'exit 9' $'\e[31m\u202e\u009b' >"$FOLDER/command"; leave 0"""

        done, _ = self.train(leave)

        self.assert_ended(done, 9, 1)
        self.assertIn("starting: sh -c", done.stderr)
        self.assertTrue(all(letter == "\n" or " " <= letter <= "~" for letter in done.stderr), repr(done.stderr))

    def test_a_signal_at_the_hand_over_is_never_lost(self):
        """rm, which removes the folders before the training starts, sends it; it comes to this process or the training."""
        self.tool("rm", f'{shutil.which("rm")} "$@"\n[ ! -e supervisor ] || kill -TERM "$(cat supervisor)"\n')

        done, trained = self.train(self.LEAVE + 'echo $PPID >supervisor; record; leave 0',
                                   PATH=f"{self.directory}/tools:{os.environ['PATH']}")

        self.assert_ended(done, 4, 1)
        self.assertIsNone(trained)

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

    def test_what_is_printed_is_handed_on_whole(self):
        done = self.supervise('record; seq 100000; leave 0')

        self.assertEqual(done.stdout, "".join(f"{i}\n" for i in range(1, 100001)))

    def test_variables_can_be_set_for_the_launcher_alone(self):
        leave = r"""printf '%s\0' sh -c 'echo "$SETTING." >trained' >"$FOLDER/command"; echo "$SETTING" >tuned; leave 0"""

        _, trained = self.train(leave, options=("--set", "SETTING=a b"))

        self.assertEqual((self.directory / "tuned").read_text(encoding="utf-8"), "a b\n")
        self.assertEqual(trained, ".\n")

    def tool(self, name, lines):
        tools = self.directory / "tools"
        tools.mkdir(exist_ok=True)
        (tools / name).write_text("#!/bin/sh\n" + lines, encoding="utf-8")
        (tools / name).chmod(0o755)

    def slurm(self):
        """A scontrol that notes that it was called."""
        self.tool("scontrol", 'echo "$*" >scontrol.log\n')
        return {"PATH": f"{self.directory}/tools:{os.environ['PATH']}", "SLURM_JOB_ID": "7"}

    def test_a_job_whose_rank_0_died_is_requeued_while_records_come(self):
        variables = self.slurm()

        first = self.supervise('record; leave 137', options=("--requeue",), **variables)
        requeued = (self.directory / "scontrol.log").read_text(encoding="utf-8")
        for count in ("1", "2"):
            (self.directory / "starts").unlink()
            last = self.supervise('leave 137', options=("--requeue",), SLURM_RESTART_COUNT=count, **variables)

        self.assertEqual((first.returncode, requeued), (0, "requeue 7\n"), first.stderr)
        self.assertEqual(self.arguments[1:], ["--resume config.json"] * 2)
        self.assertEqual(last.returncode, 0, last.stderr)
        (self.directory / "starts").unlink()
        stopped = self.supervise('leave 137', options=("--requeue",), SLURM_RESTART_COUNT="3", **variables)
        self.assert_ended(stopped, 4, 3)
        self.assertFalse((self.directory / "dstune-7.starts").exists())

    def test_a_job_that_died_before_its_journal_was_noted_resumes_all_the_same(self):
        variables = self.slurm()
        for arguments, expected in ((("config.json",), "--resume config.json"),
                                    (("--overwrite", "config.json"), "--overwrite config.json")):
            with self.subTest(arguments):
                (self.directory / "starts").unlink(missing_ok=True)

                self.supervise('leave 0', options=("--requeue",), arguments=arguments, SLURM_RESTART_COUNT="1",
                               **variables)

                self.assertEqual(self.arguments[-1], expected)

    def test_a_journal_is_noted_for_the_requeued_job_while_it_runs(self):
        look = 'record; for i in $(seq 100); do grep -qz results dstune-7.starts && break; sleep 0.1; done; ' \
               'cp dstune-7.starts noted; leave 0'

        self.supervise(look, options=("--requeue",), **self.slurm())

        self.assertEqual((self.directory / "noted").read_bytes().split(b"\0")[2],
                         f"{self.directory}/autotuning_results".encode())

    def test_a_planted_count_of_starts_is_neither_followed_nor_believed(self):
        mine = self.directory / "mine"
        mine.write_text("a[$(touch pwned)]", encoding="utf-8")
        (self.directory / "dstune-7.starts").symlink_to(mine)
        home = self.directory / "home"
        home.mkdir()
        variables = self.slurm() | {"HOME": str(home), "SLURM_RESTART_COUNT": "1"}
        self.supervise('leave 0', options=("--requeue",), **variables)
        (self.directory / "dstune-7.starts").unlink()
        (self.directory / "dstune-7.starts").write_bytes(b"a[$(touch pwned)]\0a[$(touch pwned)]\0x\0")
        (self.directory / "starts").unlink()

        done = self.supervise('leave 0', options=("--requeue",), **variables)

        self.assert_ended(done, 0, 2)
        self.assertEqual(mine.read_text(encoding="utf-8"), "a[$(touch pwned)]")
        self.assertFalse((self.directory / "pwned").exists())

    def test_the_host_file_of_gpus_follows_no_planted_link(self):
        mine = self.directory / "mine"
        mine.write_text("mine", encoding="utf-8")
        (self.directory / "dstune-7.hosts").symlink_to(mine)
        self.tool("scontrol", "printf 'n1\\nn2\\n'\n")

        done = self.supervise('cat "$(tail -n 1 options)" >hosts; leave 0', options=("--gpu-hosts",), SLURM_JOB_ID="7",
                              SLURM_GPUS_ON_NODE="4", SLURM_JOB_NODELIST="n[1-2]",
                              PATH=f"{self.directory}/tools:{os.environ['PATH']}")

        self.assert_ended(done, 0, 1)
        self.assertEqual((self.directory / "hosts").read_text(encoding="utf-8"), "n1 slots=5\nn2 slots=4\n")
        self.assertEqual(mine.read_text(encoding="utf-8"), "mine")

    def test_an_end_that_nobody_asked_for_requeues_the_job(self):
        done = self.supervise('record; leave 4', options=("--requeue",), **self.slurm())

        self.assert_ended(done, 0, 1)
        self.assertTrue((self.directory / "scontrol.log").exists())

    def test_the_time_limit_requeues_the_job(self):
        done = self.supervise('record; trap \'leave 4; exit\' USR1; kill -USR1 $PPID; while :; do read -rt 0.1 <> <(:); done',
                              options=("--requeue",), **self.slurm())

        self.assert_ended(done, 0, 1)
        self.assertTrue((self.directory / "scontrol.log").exists())

    def test_a_job_that_is_requeued_while_it_trains_trains_again(self):
        variables = self.slurm()
        first, _ = self.train(self.LEAVE + 'record; leave 0', options=("--requeue",), **variables)
        for count in ("1", "2", "3"):
            (self.directory / "starts").unlink()
            (self.directory / "trained").unlink()

            again, trained = self.train(self.LEAVE + 'leave 0', options=("--requeue",),
                                        SLURM_RESTART_COUNT=count, **variables)

            self.assertEqual((first.returncode, again.returncode), (9, 9), again.stderr)
            self.assertEqual(trained, "a b c d\n")
            self.assertEqual(self.arguments[-1], "--resume --run config.json -- train --run")

    def test_a_time_limit_that_comes_with_the_answer_requeues_the_job_for_its_training(self):
        done, trained = self.train(self.LEAVE + """record
trap 'leave 0; kill %1; exit' USR1
sleep 60 &
kill -USR1 $PPID
wait""", options=("--requeue",), **self.slurm())

        self.assert_ended(done, 0, 1)
        self.assertIsNone(trained)
        self.assertTrue((self.directory / "scontrol.log").exists())
        self.assertTrue((self.directory / "dstune-7.starts").exists())


if __name__ == "__main__":
    unittest.main()
