"""Which hardware the program finds, which of it a worker takes, and what it says where there is none."""

import pathlib
import re
import tempfile
import unittest

import fake_hosts
from support import MPIEXEC, PROGRAM, SURVIVE, ProgramTest, example, mpi_command

HOSTS = 2


class Hardware(ProgramTest):
    def backends(self):
        finished = self.run_command([PROGRAM, "--list-backends"])
        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertEqual(finished.stderr, "")
        return dict(line.split(": ", 1) for line in finished.stdout.splitlines()[1:])

    def no_cuda(self):
        """Why CUDA cannot be used here."""
        said = self.backends()["cuda"]
        if said.startswith("available"):
            self.skipTest("CUDA can be used here")
        return said.removeprefix("unavailable: ")

    def test_every_backend_is_listed_with_its_state(self):
        backends = self.backends()

        self.assertRegex(backends["cpu"], r"^available \(.+, [\d.]+ GiB\)$")
        self.assertRegex(backends["sim"], r"^available ")
        self.assertRegex(backends["cuda"], r"^(available \(|unavailable: ).+")
        self.assertIn("Open MPI", backends["MPI"])

    def test_one_process_of_several_answers(self):
        finished = self.run_command(mpi_command(3, "--list-backends"))

        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertEqual(finished.stdout.count("cpu: available"), 1, finished.stdout)

    def test_cuda_where_there_is_none_is_wrong_input_with_the_reason(self):
        reason = self.no_cuda()
        for mpi in ((), SURVIVE):
            finished = self.tune(3, "--backend", "cuda", example("tiny"), mpi=mpi)

            if not mpi:  # an mpirun that survives deaths returns 0 whatever the program returned
                self.assertEqual(finished.returncode, 2, finished.stderr)
            self.assertRegex(finished.stderr, r"/dstune/backend  is cuda, which rank 1 on \S+ cannot use: "
                             + re.escape(reason))
            self.assertEqual(finished.stderr.count("error:"), 1, finished.stderr)
            self.assertEqual(finished.stdout, "")
            self.assertEqual(self.listing(), [])

    def test_a_plan_for_cuda_says_why_not(self):
        reason = self.no_cuda()

        finished = self.run_command([PROGRAM, "--plan", "--world-size", "2", "--backend", "cuda",
                                     str(example("tiny"))])

        self.assertEqual(finished.returncode, 2, finished.stderr)
        self.assertIn(f"which this machine cannot use: {reason}", finished.stderr)

    def test_workers_are_counted_host_by_host(self):
        missing = fake_hosts.missing()
        if missing:
            self.skipTest(missing)
        root = tempfile.TemporaryDirectory()
        self.addCleanup(root.cleanup)
        hosts = fake_hosts.start(root.name, HOSTS)
        self.addCleanup(hosts.close)
        list_of_hosts = ",".join(f"{name}:3" for name in hosts.names)

        finished = self.run_command(
            [*hosts.enter(hosts.names[0], self.directory), "env", f"TMPDIR={hosts.temporary(hosts.names[0])}",
             MPIEXEC, "--mca", "plm_rsh_agent", str(hosts.agent), "--bind-to", "none", "-host", list_of_hosts,
             "-n", str(3 * HOSTS), PROGRAM, "--verbose", "--backend", "sim",
             str(pathlib.Path(self.quick_tiny()))])

        self.assertEqual(finished.returncode, 0, finished.stderr)
        said = re.findall(r"\[rank (\d) (\w+)\] worker (\d) of (\d) on this host", finished.stderr)
        self.assertEqual(sorted(said), [("1", "h1", "1", "2"), ("2", "h1", "2", "2"), ("3", "h2", "1", "3"),
                                        ("4", "h2", "2", "3"), ("5", "h2", "3", "3")])


if __name__ == "__main__":
    unittest.main()
