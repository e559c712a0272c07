"""scripts/supervise.sh in a Slurm job that may be requeued."""

import os
import unittest

from supervise_support import SuperviseTest


class Slurm(SuperviseTest):
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
        self.assertEqual(self.arguments[1:], [self.resumed("config.json")] * 2)
        self.assertEqual(last.returncode, 0, last.stderr)
        (self.directory / "starts").unlink()
        stopped = self.supervise('leave 137', options=("--requeue",), SLURM_RESTART_COUNT="3", **variables)
        self.assert_ended(stopped, 4, 3)
        self.assertFalse((self.directory / "dstune-7.starts").exists())

    def test_a_job_that_died_before_its_journal_was_noted_says_that_it_was_requeued(self):
        variables = self.slurm()
        for arguments, expected in ((("config.json",), "--requeued config.json"),
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

    def gpus(self, nodes=("n1", "n2")):
        """A job with four GPUs on each of the nodes."""
        self.tool("scontrol", f"printf '%s\\n' {' '.join(nodes)}\n")
        return {"PATH": f"{self.directory}/tools:{os.environ['PATH']}", "SLURM_JOB_ID": "7", "SLURM_GPUS_ON_NODE": "4",
                "SLURM_JOB_NODELIST": "n[1-2]"}

    def options_of(self, launcher, *options, nodes=("n1", "n2")):
        """What a launcher of this name gets beside its own options in such a job, and where it is a file, its text."""
        (self.directory / launcher).symlink_to("launcher")
        variables = self.gpus(nodes)
        (self.directory / "options").unlink(missing_ok=True)
        (self.directory / "starts").unlink(missing_ok=True)

        done = self.supervise('last=$(tail -n 1 options); if [ -e "$last" ]; then cat "$last" >hosts; fi; leave 0',
                              options=("--gpu-hosts",), launcher=(f"./{launcher}", *options), **variables)

        self.assertEqual(done.returncode, 0, done.stderr)
        given = (self.directory / "options").read_text(encoding="utf-8").splitlines()[len(options):]
        hosts = self.directory / "hosts"
        return given, hosts.read_text(encoding="utf-8") if hosts.exists() else None

    def test_the_host_file_of_gpus_follows_no_planted_link(self):
        mine = self.directory / "mine"
        mine.write_text("mine", encoding="utf-8")
        (self.directory / "dstune-7.hosts").symlink_to(mine)

        given, hosts = self.options_of("mpirun.openmpi")

        self.assertEqual(given[0], "-hostfile")
        self.assertEqual(hosts, "n1 slots=5\nn2 slots=4\n")
        self.assertEqual(mine.read_text(encoding="utf-8"), "mine")

    def test_hydra_gets_the_hosts_in_its_own_form(self):
        given, hosts = self.options_of("mpiexec.hydra")

        self.assertEqual((given[0], hosts), ("-f", "n1:5\nn2:4\n"))

    def test_srun_gets_the_number_of_ranks_since_it_knows_the_hosts(self):
        self.assertEqual(self.options_of("srun", "--mpi=cray_shasta", "--cpu-bind=none", nodes=("node1",)),
                         (["-n", "5"], None))

    def test_flux_gets_the_number_of_ranks(self):
        self.assertEqual(self.options_of("flux", "run"), (["-n", "9"], None))

    def test_a_number_of_ranks_that_was_given_stays(self):
        for options in (("-n", "3"), ("--ntasks=3",), ("--ntasks-per-node", "5")):
            with self.subTest(options):
                (self.directory / "srun").unlink(missing_ok=True)
                self.assertEqual(self.options_of("srun", *options), ([], None))

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
            self.assertEqual(self.arguments[-1], self.resumed("--run config.json -- train --run"))

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
