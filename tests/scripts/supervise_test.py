"""scripts/supervise.sh with a launcher that does what the test says: no MPI, no program."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SUPERVISE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "scripts" / "supervise.sh"

# Start k of the launcher runs the lines of the file "k" in bash: $FILE is the exit code file, "$@" the program's
# arguments.
LAUNCHER = """#!/usr/bin/env bash
while [ "${1##*/}" != run_rank.sh ]; do shift; done
FILE=$2
shift 3
number=$(($(cat starts 2>/dev/null || echo 0) + 1))
echo "$number" >starts
echo "$*" >>arguments
: >"$FILE.rank0"
record() { mkdir -p autotuning_results && echo '{"type": "finished"}' >>autotuning_results/journal.jsonl; }
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

                done = self.supervise(f'record; echo {code} >"$FILE"; exit 137')

                self.assert_ended(done, code, 1)

    def train(self, *starts, options=(), **variables):
        done = self.supervise(*starts, options=options,
                              arguments=("--run", "config.json", "--", "train", "--run"), **variables)
        path = self.directory / "trained"
        return done, path.read_text(encoding="utf-8") if path.exists() else None

    LEAVE = """echo "NAME='a b' sh -c 'echo \\$NAME \\$0 >trained; exit 9' 'c d'" >"$FILE.command"; """

    def test_the_training_follows_with_run(self):
        done, trained = self.train(self.LEAVE + 'record; echo 0 >"$FILE"')

        self.assert_ended(done, 9, 1)
        self.assertEqual(trained, "a b c d\n")
        self.assertIn("starting: NAME=", done.stderr)

    def test_the_training_follows_no_tuning_that_failed(self):
        for code, why in ((1, "exit code 1"), (2, "exit code 2"), (3, "exit code 3"), (4, "provisional")):
            with self.subTest(code):
                (self.directory / "starts").unlink(missing_ok=True)
                (self.directory / "arguments").unlink(missing_ok=True)

                done, trained = self.train(f'{self.LEAVE} record; echo {code} >"$FILE"')

                self.assert_ended(done, code, 1)
                self.assertIsNone(trained)
                self.assertIn("the training command is not started: ", done.stderr)
                self.assertIn(why, done.stderr)

    def test_the_training_follows_no_tuning_that_was_asked_to_end(self):
        done, trained = self.train(self.LEAVE + """record
trap 'echo 0 >"$FILE"; kill %1; exit' USR1
sleep 60 &
kill -TERM $PPID
wait""")

        self.assert_ended(done, 0, 1)
        self.assertIsNone(trained)
        self.assertIn("SIGTERM asked for the end", done.stderr)

    def test_what_an_earlier_start_left_is_not_trained_with(self):
        for options in ((), ("--shared", str(self.directory))):
            with self.subTest(options):
                (self.directory / "starts").unlink(missing_ok=True)
                (self.directory / "arguments").unlink(missing_ok=True)

                done, trained = self.train(self.LEAVE + 'record; echo 137 >"$FILE"', 'record; echo 0 >"$FILE"',
                                           options=options)

                self.assert_ended(done, 0, 2)
                self.assertIsNone(trained)
                self.assertIn("rank 0 left no optimum", done.stderr)
        self.assertEqual([path.name for path in self.directory.glob(".dstune-exit-code.*")], [])

    def test_only_the_programs_own_run_starts_a_training(self):
        done = self.supervise(self.LEAVE + 'echo 0 >"$FILE"', arguments=("config.json", "--", "train", "--run"))

        self.assert_ended(done, 0, 1)
        self.assertFalse((self.directory / "trained").exists())

    def test_the_launchers_settings_are_not_the_trainings(self):
        leave = """echo "sh -c 'env >trained'" >"$FILE.command"; env >tuned; echo 0 >"$FILE" """
        done, trained = self.train(leave)

        self.assert_ended(done, 0, 1)
        self.assertIn("OMPI_MCA_orte_local_tmpdir_base", (self.directory / "tuned").read_text(encoding="utf-8"))
        self.assertNotIn("OMPI_MCA_orte", trained)

    def test_rank_0s_death_is_resumed_without_overwrite(self):
        done = self.supervise('record; echo 137 >"$FILE"', 'echo 0 >"$FILE"',
                              arguments=("--overwrite", "config.json", "--", "train.py", "--overwrite"))

        self.assert_ended(done, 0, 2)
        self.assertEqual(self.arguments[1], "--resume config.json -- train.py --overwrite")
        self.assertIn("rank 0 died", done.stderr)

    def test_a_death_before_the_journal_starts_anew(self):
        done = self.supervise("exit 137", 'echo 0 >"$FILE"')

        self.assert_ended(done, 0, 2)
        self.assertEqual(self.arguments[1], "config.json")

    def test_a_rank_that_died_at_the_start_is_started_again(self):
        done = self.supervise('echo 4 >"$FILE"', 'echo 1 >"$FILE"; record; exit 137')

        self.assert_ended(done, 1, 2)

    def test_an_error_before_the_journal_is_one_unless_a_rank_died(self):
        done = self.supervise('echo 1 >"$FILE"; exit 137', 'echo 1 >"$FILE"; exit 1')

        self.assert_ended(done, 1, 2)

    def test_another_runs_journal_is_not_resumed(self):
        (self.directory / "autotuning_results").mkdir()
        (self.directory / "autotuning_results" / "journal.jsonl").write_text('{"type": "finished"}\n')

        done = self.supervise("exit 137", 'echo 0 >"$FILE"', arguments=("--overwrite", "config.json"))

        self.assert_ended(done, 0, 2)
        self.assertEqual(self.arguments[1], "--overwrite config.json")

    def test_a_lost_worker_is_resumed_with_all_ranks_three_times(self):
        lost = ('record; echo \'{"restart": "worker_lost"}\' >autotuning_results/status.json; echo 4 >"$FILE"')

        done = self.supervise(lost, lost, lost, lost)

        self.assert_ended(done, 4, 4)
        self.assertIn("--resume", done.stderr)

    def test_a_worker_that_ended_for_want_of_memory_does_not_count_as_a_restart(self):
        lost = ("record; sed -i '$s/}$/, \"outcome\": {\"refusal\":\"killed\"}}/' autotuning_results/journal.jsonl; "
                'echo \'{"restart": "worker_lost"}\' >autotuning_results/status.json; echo 4 >"$FILE"')

        done = self.supervise(*[lost] * 6, 'record; echo 0 >"$FILE"')

        self.assert_ended(done, 0, 7)

    def test_the_results_folder_is_the_configurations(self):
        (self.directory / "config.json").write_text('{"autotuning": {\n // "results_dir": "no",\n "results_dir": "there"}}')
        lost = ('mkdir -p there; echo \'{"type":"finished"}\' >>there/journal.jsonl; '
                'echo \'{"restart": "worker_lost"}\' >there/status.json; echo 4 >"$FILE"')

        done = self.supervise(lost, 'echo 0 >"$FILE"')

        self.assert_ended(done, 0, 2)

    def test_the_option_wins_over_the_configurations_folder(self):
        (self.directory / "config.json").write_text('{"autotuning": {"results_dir": "there"}}')
        lost = ('mkdir -p here; echo \'{"type":"finished"}\' >>here/journal.jsonl; '
                'echo \'{"restart": "worker_lost"}\' >here/status.json; echo 4 >"$FILE"')

        done = self.supervise(lost, 'echo 0 >"$FILE"', arguments=("config.json", "--results-dir", "here"))

        self.assert_ended(done, 0, 2)
        self.assertEqual(self.arguments[1], "--resume config.json --results-dir here")

    def test_two_starts_without_a_record_end_it(self):
        done = self.supervise('record; echo 137 >"$FILE"', 'echo 137 >"$FILE"', 'echo 137 >"$FILE"',
                              'echo 0 >"$FILE"')

        self.assert_ended(done, 4, 3)
        self.assertIn("no new record", done.stderr)

    def test_an_interruption_is_not_resumed(self):
        done = self.supervise('record; echo 4 >"$FILE"')

        self.assert_ended(done, 4, 1)

    def test_a_launcher_that_cannot_start_is_not_repeated(self):
        done = self.supervise('rm "$FILE.rank0"; exit 213')

        self.assert_ended(done, 1, 1)

    def test_a_launcher_that_outlives_its_ranks_is_ended(self):
        done = self.supervise('record; echo 3 >"$FILE"; trap "" TERM; exec sleep 1000')

        self.assert_ended(done, 3, 1)

    def test_a_launcher_whose_rank_0_is_gone_is_ended(self):
        done = self.supervise('record; (:) & echo "$(uname -n) $!" >"$FILE.rank0"; wait; exec sleep 1000',
                              'echo 0 >"$FILE"')

        self.assert_ended(done, 0, 2)

    def test_a_signal_is_handed_on_as_usr1_and_ends_it(self):
        done = self.supervise('record; trap \'echo 4 >"$FILE"; exit\' USR1; kill -INT $PPID; while :; do read -rt 0.1 <> <(:); done')

        self.assert_ended(done, 4, 1)

    def test_a_signal_between_two_starts_ends_it(self):
        """stat, which the supervisor calls before it starts again, sends the signal."""
        self.tool("stat", '[ -e asked ] || [ ! -e supervisor ] || { : >asked; kill -INT "$(cat supervisor)"; }\n'
                          f'exec {shutil.which("stat")} "$@"\n')

        done = self.supervise('echo $PPID >supervisor; record; echo 137 >"$FILE"', 'echo 0 >"$FILE"',
                              PATH=f"{self.directory}/tools:{os.environ['PATH']}")

        self.assert_ended(done, 4, 1)
        self.assertIn("interrupted by SIGINT; continue it with --resume", done.stderr)

    def test_leftovers_of_a_dead_supervisor_are_removed(self):
        dead = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout.strip()
        for owner in (dead, str(os.getpid())):
            (self.directory / f"dstune-run.{os.uname().nodename}.{owner}").mkdir()

        self.supervise('echo 0 >"$FILE"')

        self.assertEqual([path.name for path in self.directory.glob("dstune-run.*")],
                         [f"dstune-run.{os.uname().nodename}.{os.getpid()}"])

    def test_files_of_a_supervisor_that_lives_stay(self):
        dead = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout.strip()
        name = f".dstune-exit-code.{os.uname().nodename}."
        for end in (dead, f"{dead}.rank0", f"{os.getpid()}.rank0"):
            (self.directory / (name + end)).touch()

        self.supervise('echo 0 >"$FILE"', options=("--shared", str(self.directory)))

        self.assertEqual([path.name for path in self.directory.glob(".dstune-exit-code.*")],
                         [f"{name}{os.getpid()}.rank0"])

    def tool(self, name, lines):
        tools = self.directory / "tools"
        tools.mkdir()
        (tools / name).write_text("#!/bin/sh\n" + lines, encoding="utf-8")
        (tools / name).chmod(0o755)

    def slurm(self):
        """A scontrol that notes that it was called."""
        self.tool("scontrol", 'echo "$*" >scontrol.log\n')
        return {"PATH": f"{self.directory}/tools:{os.environ['PATH']}", "SLURM_JOB_ID": "7"}

    def test_a_job_whose_rank_0_died_is_requeued_while_records_come(self):
        variables = self.slurm()

        first = self.supervise('record; echo 137 >"$FILE"', options=("--requeue",), **variables)
        requeued = (self.directory / "scontrol.log").read_text(encoding="utf-8")
        for count in ("1", "2"):
            (self.directory / "starts").unlink()
            last = self.supervise('echo 137 >"$FILE"', options=("--requeue",), SLURM_RESTART_COUNT=count, **variables)

        self.assertEqual((first.returncode, requeued), (0, "requeue 7\n"), first.stderr)
        self.assertEqual(self.arguments[1:], ["--resume config.json"] * 2)
        self.assertEqual(last.returncode, 0, last.stderr)
        (self.directory / "starts").unlink()
        stopped = self.supervise('echo 137 >"$FILE"', options=("--requeue",), SLURM_RESTART_COUNT="3", **variables)
        self.assert_ended(stopped, 4, 3)
        self.assertFalse((self.directory / "dstune-7.starts").exists())

    def test_the_time_limit_requeues_the_job(self):
        done = self.supervise('record; trap \'echo 4 >"$FILE"; exit\' USR1; kill -USR1 $PPID; while :; do read -rt 0.1 <> <(:); done',
                              options=("--requeue",), **self.slurm())

        self.assert_ended(done, 0, 1)
        self.assertTrue((self.directory / "scontrol.log").exists())

    def test_a_job_that_is_requeued_while_it_trains_trains_again(self):
        variables = self.slurm()
        first, _ = self.train(self.LEAVE + 'record; echo 0 >"$FILE"', options=("--requeue",), **variables)
        for count in ("1", "2", "3"):
            (self.directory / "starts").unlink()
            (self.directory / "trained").unlink()

            again, trained = self.train(self.LEAVE + 'echo 0 >"$FILE"', options=("--requeue",),
                                        SLURM_RESTART_COUNT=count, **variables)

            self.assertEqual((first.returncode, again.returncode), (9, 9), again.stderr)
            self.assertEqual(trained, "a b c d\n")
            self.assertEqual(self.arguments[-1], "--resume --run config.json -- train --run")

    def test_a_time_limit_that_comes_with_the_answer_requeues_the_job_for_its_training(self):
        done, trained = self.train(self.LEAVE + """record
trap 'echo 0 >"$FILE"; kill %1; exit' USR1
sleep 60 &
kill -USR1 $PPID
wait""", options=("--requeue",), **self.slurm())

        self.assert_ended(done, 0, 1)
        self.assertIsNone(trained)
        self.assertTrue((self.directory / "scontrol.log").exists())
        self.assertTrue((self.directory / "dstune-7.starts").exists())


if __name__ == "__main__":
    unittest.main()
