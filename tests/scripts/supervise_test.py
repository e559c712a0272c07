"""scripts/supervise.sh with a launcher that does what the test says: no MPI, no program."""

import os
import shutil
import unittest

from supervise_support import SuperviseTest


class Supervise(SuperviseTest):
    def test_an_answer_is_handed_on_and_not_repeated(self):
        for code in (0, 1, 2, 3):
            with self.subTest(code):
                (self.directory / "arguments").unlink(missing_ok=True)
                (self.directory / "starts").unlink(missing_ok=True)

                done = self.supervise(f'record; leave {code}; exit 137')

                self.assert_ended(done, code, 1)

    def test_the_program_hears_of_a_terminal_that_it_cannot_see(self):
        start = "record; leave 0"
        self.assertEqual(self.supervise_on_a_terminal(start), "--progress terminal config.json")
        self.assertEqual(self.supervise_on_a_terminal(start, kind="dumb"), "config.json")
        for own in (("--progress", "lines", "config.json"), ("--progress=none", "config.json")):
            self.assertEqual(self.supervise_on_a_terminal(start, own), " ".join(own))
        self.supervise(start, TERM="xterm")
        self.assertEqual(self.arguments[-1], "config.json", "standard error is a pipe")

    def test_the_program_hears_how_wide_the_terminal_is(self):
        start = "record; leave 0"
        for columns, said in ((40, 40), (80, 80), (240, 100)):
            self.assertEqual(self.supervise_on_a_terminal(start, columns=columns),
                             f"--progress terminal --columns {said} config.json")
        for columns in (0, 20):
            self.assertEqual(self.supervise_on_a_terminal(start, columns=columns), "--progress terminal config.json")
        own = ("--columns=70", "config.json")
        self.assertEqual(self.supervise_on_a_terminal(start, own, columns=80), f"--progress terminal {' '.join(own)}")

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
        self.assertEqual(self.arguments[1], self.resumed("config.json -- train.py --overwrite"))
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

    def test_a_signal_is_heeded_that_comes_with_another(self):
        done = self.supervise("""record
trap 'leave 4; kill %1; exit' USR1
sleep 20 &
kill -STOP $PPID
kill -TERM $PPID
kill -WINCH $PPID
kill -CONT $PPID
wait
leave 0""")

        self.assert_ended(done, 4, 1)

    def test_a_restart_does_not_try_again_what_its_run_has_seen_fail(self):
        lost = ('record; echo \'{"restart": "worker_lost"}\' >autotuning_results/status.json; leave 4')

        done = self.supervise(lost, "record; leave 0", arguments=("config.json", "--resume", "--retry-failed"))

        self.assert_ended(done, 0, 2)
        self.assertEqual(self.arguments, ["config.json --resume --retry-failed", self.resumed("config.json")])

    def test_a_worker_that_ended_for_want_of_memory_does_not_count_as_a_restart(self):
        lost = ("record; sed -i '$s/}$/, \"outcome\": {\"refusal\":\"killed\"}}/' autotuning_results/journal.jsonl; "
                'echo \'{"restart": "worker_lost"}\' >autotuning_results/status.json; leave 4')

        done = self.supervise(*[lost] * 6, "record; leave 0")

        self.assert_ended(done, 0, 7)

    def test_the_results_folder_is_what_rank_0_says(self):
        lost = ('begin "$PWD/a \n\'\"b\""; echo \'{"type":"finished"}\' >>"$PWD/a \n\'\"b\"/journal.jsonl"; '
                'echo \'{"restart": "worker_lost"}\' >"$PWD/a \n\'\"b\"/status.json"; leave 4')

        done = self.supervise(lost, "leave 0")

        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual("\n".join(self.arguments[1:]),
                         f"--resume --results-dir {self.directory}/a \n'b config.json")

    def test_a_folder_that_was_named_is_not_named_again(self):
        lost = ('record; echo \'{"restart": "worker_lost"}\' >autotuning_results/status.json; leave 4')

        self.supervise(lost, "record; leave 0", arguments=("--results-dir=mine", "config.json"))

        self.assertEqual(self.arguments[1], "--resume --results-dir=mine config.json")

    def test_two_starts_without_a_record_end_it(self):
        done = self.supervise('record; leave 137', 'leave 137', 'leave 137',
                              'leave 0')

        self.assert_ended(done, 4, 3)
        self.assertIn("no new record", done.stderr)

    def test_an_end_that_nobody_asked_for_is_resumed(self):
        done = self.supervise('record; leave 4', 'record; leave 0')

        self.assert_ended(done, 0, 2)
        self.assertEqual(self.arguments[1], self.resumed("config.json"))
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

    def test_a_signal_at_the_hand_over_is_never_lost(self):
        """rm, which removes the folders before the training starts, sends it; it comes to this process or the training."""
        self.tool("rm", f'{shutil.which("rm")} "$@"\n[ ! -e supervisor ] || kill -TERM "$(cat supervisor)"\n')

        done, trained = self.train(self.LEAVE + 'echo $PPID >supervisor; record; leave 0',
                                   PATH=f"{self.directory}/tools:{os.environ['PATH']}")

        self.assert_ended(done, 4, 1)
        self.assertIsNone(trained)

    def test_variables_can_be_set_for_the_launcher_alone(self):
        leave = r"""printf '%s\0' sh -c 'echo "$SETTING." >trained' >"$FOLDER/command"; echo "$SETTING" >tuned; leave 0"""

        _, trained = self.train(leave, options=("--set", "SETTING=a b"))

        self.assertEqual((self.directory / "tuned").read_text(encoding="utf-8"), "a b\n")
        self.assertEqual(trained, ".\n")


if __name__ == "__main__":
    unittest.main()
