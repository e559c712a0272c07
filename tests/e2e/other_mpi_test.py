"""The program of another MPI than Open MPI, under its own launcher: DSTUNE_PROGRAM and DSTUNE_MPIEXEC say which, such
as build/mpich/dstune-mpi and mpiexec.mpich."""

import os
import pathlib
import shutil
import signal
import subprocess
import unittest

from kill_anything import wait_until
from processes import MARK, Processes, kill, new_mark
from support import DEADLOCK, MPIEXEC, PROGRAM, SOURCE, ProgramTest, events, launch_environment, names, read_json

SUPERVISE = SOURCE / "scripts" / "supervise.sh"
RESULTS = ("--results-dir", "autotuning_results")  # where ProgramTest.results looks


class Supervised:
    """scripts/supervise.sh with 3 ranks in `directory`, in a session of its own."""

    def __init__(self, directory, *arguments):
        self.mark = new_mark()
        self.log = directory / "log"
        command = [SUPERVISE, MPIEXEC, "-n", "3", "--", PROGRAM, *arguments]
        environment = {name: value for name, value in launch_environment().items() if name != "DSTUNE_SUPERVISED"}
        with self.log.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen([str(word) for word in command], cwd=directory, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, env=environment | {MARK: self.mark},
                                            start_new_session=True)

    def processes(self):
        return Processes(self.mark)

    def text(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def clean_up(self):
        kill(self.processes().found)
        self.process.wait()


class OtherMpi(ProgramTest):
    def tune(self, ranks, *arguments, mpi=()):
        return self.run_command([MPIEXEC, *mpi, "-n", str(ranks), PROGRAM, *RESULTS, *map(str, arguments)])

    def slow(self):
        return self.write_config(self.tiny(zero_optimization={"stage": [0, 2]}, train_micro_batch_size_per_gpu=[1, 4],
                                           dstune={"measure_steps": 20}))

    def begin(self):
        for left in (self.results, self.directory / "autotuning_exps"):
            shutil.rmtree(left, ignore_errors=True)
        run = Supervised(self.directory, *RESULTS, self.slow())
        self.addCleanup(run.clean_up)
        wait_until(lambda: self.has_measured() or run.process.poll() is not None, DEADLOCK)
        self.assertTrue(self.has_measured(), run.text())
        return run

    def has_measured(self):
        return (self.results / "journal.jsonl").exists() and events(self.results, "finished")

    def end(self, run, code):
        run.process.wait(DEADLOCK)
        self.assertEqual(run.process.returncode, code, run.text())
        gone = wait_until(lambda: not run.processes(), 10)  # but for a second's sleep
        self.assertIsNotNone(gone, str(run.processes()))

    def assert_each_measured_once(self, number=4):
        measured = names(events(self.results, "finished"))
        self.assertEqual(len(measured), len(set(measured)))
        self.assertEqual(len(measured), number)

    def test_tunes_on_cpu_ranks_and_resumes(self):
        config = self.write_config(self.tiny(zero_optimization={"stage": [1, 3]}))
        self.tune_well(3, config)
        self.assert_each_measured_once(6)

        again = self.tune_well(3, config, "--resume")

        self.assert_each_measured_once(6)
        self.assertIn("best: ", again.stderr)

    def test_tunes_in_virtual_time_with_several_experiments_at_once(self):
        config = self.write_config(self.tiny(dstune={"backend": "sim", "ranks_per_experiment": 2}))

        self.tune_well(5, config)

        self.assertEqual(len(events(self.results, "finished")), 12)

    def test_wrong_input_is_told_once_and_ends_all_ranks(self):
        done = self.tune(3, self.write_config(self.tiny(dstune={"backend": "abacus"})))

        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("abacus"), 1, done.stderr)

    def test_a_worker_that_dies_ends_a_plain_run_which_can_be_resumed(self):
        mark = new_mark()
        config = self.slow()
        process = subprocess.Popen([MPIEXEC, "-n", "3", PROGRAM, *RESULTS, str(config)], cwd=self.directory,
                                   env=launch_environment() | {MARK: mark}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: kill(Processes(mark).found))
        self.assertIsNotNone(wait_until(self.has_measured, DEADLOCK))

        kill(Processes(mark).ranks()[2])

        self.assertNotEqual(process.wait(DEADLOCK), 0)
        self.assertFalse(Processes(mark))
        self.tune_well(3, config, "--resume")
        self.assert_each_measured_once()

    def test_each_death_costs_a_start_and_no_result(self):
        for rank in (0, 1):
            with self.subTest(rank):
                run = self.begin()
                kill(run.processes().ranks()[rank])

                self.end(run, 0)

                self.assertIn("starting again (1 of 3)", run.text())
                self.assert_each_measured_once()
                self.assertEqual(read_json(self.results / "status.json")["status"], "found")

    def test_the_launchers_death_costs_a_start(self):
        run = self.begin()
        kill([pid for pid in run.processes().named("mpiexec.hydra")])

        self.end(run, 0)

        self.assertIn("starting again (1 of 3)", run.text())
        self.assert_each_measured_once()

    def test_a_signal_ends_it_with_what_was_found(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                run = self.begin()
                os.kill(run.process.pid, number)

                self.end(run, 4)

                self.assertEqual(read_json(self.results / "status.json")["status"], "interrupted")

    def test_stop_and_continue_reach_the_ranks(self):
        run = self.begin()
        ranks = [pid for pids in run.processes().ranks().values() for pid in pids]
        os.kill(run.process.pid, signal.SIGTSTP)
        self.assertIsNotNone(wait_until(lambda: {state(pid) for pid in ranks} == {"T"}, DEADLOCK), run.text())

        os.kill(run.process.pid, signal.SIGCONT)

        self.end(run, 0)
        self.assert_each_measured_once()

    def test_tune_sh_finds_the_launcher_of_the_programs_library(self):
        """With mpirun of Open MPI first on the PATH, as Debian has it."""
        done = self.run_command(["bash", "-c", f"""
. {SOURCE}/scripts/supervise/kind.sh; . {SOURCE}/scripts/tune/launcher.sh
choose_launcher "$({PROGRAM} --version | sed -n 's/^MPI: //p')"; echo "$kind" "${{launcher[@]}}" """])

        self.assertEqual(done.stdout, "hydra mpiexec.hydra\n", done.stderr)


def state(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]


if __name__ == "__main__":
    unittest.main()
