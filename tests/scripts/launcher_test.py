"""Which launcher scripts/tune.sh starts the ranks with, by what is here: commands that only say their name."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])
CALL = """. {source}/scripts/supervise/say.sh; . {source}/scripts/supervise/kind.sh; . {source}/scripts/tune/launcher.sh
choose_launcher '{library}' || exit; launch_options '{ranks}' '{hosts}' || exit; echo "$kind: ${{mpi[*]}}" """
OPENMPI = "mpirun (Open MPI) 4.1.4"
HYDRA = "HYDRA build details:"
INTEL = "Intel(R) MPI Library for Linux* OS, Version 2021.9"
MPICH = "MPICH 4.0.2"


class LauncherTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "bin").mkdir()
        for tool in ("bash", "awk", "head", "cat"):
            path = subprocess.run(["which", tool], capture_output=True, text=True, check=True).stdout.strip()
            (self.root / "bin" / tool).symlink_to(path)

    def have(self, **commands):
        for name, says in commands.items():
            path = self.root / "bin" / name.replace("_", ".")
            path.write_text(f"#!/bin/sh\necho '{says}'\n", encoding="utf-8")
            path.chmod(0o755)

    def call(self, library, ranks="4", hosts="", **variables):
        text = CALL.format(source=SOURCE, library=library, ranks=ranks, hosts=hosts)
        environment = {"PATH": str(self.root / "bin"), **variables}
        return subprocess.run([self.root / "bin" / "bash", "-euc", text], env=environment, cwd=self.root,
                              capture_output=True, text=True, check=False)

    def chosen(self, library, **how):
        done = self.call(library, **how)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.strip()

    def hosts(self, text):
        (self.root / "hosts").write_text(text, encoding="utf-8")
        return "hosts"

    def test_open_mpis_program_has_open_mpis_mpirun(self):
        self.have(mpirun=HYDRA, mpirun_openmpi="")
        self.assertEqual(self.chosen("Open MPI v4.1.4"), "openmpi: mpirun.openmpi --oversubscribe --bind-to none -n 4")

        self.have(mpirun=OPENMPI)
        self.assertEqual(self.chosen("Open MPI v4.1.4"), "openmpi: mpirun --oversubscribe --bind-to none -n 4")

    def test_a_program_that_does_not_name_its_library_has_mpirun(self):
        self.assertEqual(self.chosen(""), "openmpi: mpirun --oversubscribe --bind-to none -n 4")

    def test_mpichs_program_has_hydra_also_behind_open_mpis_names(self):
        self.have(mpirun=OPENMPI, mpiexec=OPENMPI, mpiexec_mpich="")
        self.assertEqual(self.chosen(MPICH), "hydra: mpiexec.mpich -n 4")

        self.have(mpiexec=HYDRA)
        self.assertEqual(self.chosen(MPICH), "hydra: mpiexec -n 4")

    def test_intels_mpiexec_is_a_hydra(self):
        self.have(mpiexec=INTEL)

        self.assertEqual(self.chosen("Intel(R) MPI Library 2021.9 for Linux* OS"), "hydra: mpiexec -n 4")

    def test_of_another_library_than_the_programs_there_is_none(self):
        self.have(mpirun=OPENMPI, mpiexec=OPENMPI)

        done = self.call(MPICH)

        self.assertEqual(done.returncode, 2)
        self.assertIn("no launcher of MPICH 4.0.2", done.stderr)

    def test_slurm_and_flux_start_ranks_where_there_is_no_mpirun(self):
        self.have(srun="slurm 23.02", flux="commands: 0.60")

        self.assertEqual(self.chosen("Open MPI v5.0.3", SLURM_JOB_ID="1"),
                         "slurm: srun --mpi=pmix --cpu-bind=none -n 4")
        self.assertEqual(self.chosen(MPICH, SLURM_JOB_ID="1"), "slurm: srun --mpi=pmi2 --cpu-bind=none -n 4")
        self.assertEqual(self.chosen("CRAY MPICH version 8.1.28.15", SLURM_JOB_ID="1"),
                         "slurm: srun --mpi=cray_shasta --cpu-bind=none -n 4")
        self.assertEqual(self.chosen(MPICH, FLUX_URI="local:///run/flux"), "flux: flux run -o cpu-affinity=off -n 4")
        self.assertEqual(self.chosen(MPICH, SLURM_JOB_ID="1", ranks=""), "slurm: srun --mpi=pmi2 --cpu-bind=none")

    def test_an_mpirun_of_the_library_goes_before_the_jobs_manager(self):
        self.have(srun="slurm 23.02", mpirun=OPENMPI)

        self.assertTrue(self.chosen("Open MPI v4.1.4", SLURM_JOB_ID="1").startswith("openmpi: mpirun "))

    def test_pals_is_known_by_its_other_commands(self):
        self.have(mpiexec="mpiexec version 1.2.12", palstat="")

        self.assertEqual(self.chosen("CRAY MPICH version 8.1.28.15"), "pals: mpiexec --cpu-bind none -n 4")
        hosts = self.hosts("a slots=3\nb slots=2\n")
        self.assertEqual(self.chosen("CRAY MPICH version 8.1.28.15", hosts=hosts, ranks=""),
                         "pals: mpiexec --cpu-bind none --hosts a,b --ppn 3 -n 5")

    def test_who_names_one_gets_it(self):
        self.have(mpirun=OPENMPI, srun="slurm 23.02")

        self.assertEqual(self.chosen("Open MPI v4.1.4", DSTUNE_MPIRUN="srun --mpi=pmix_v4"),
                         "slurm: srun --mpi=pmix_v4 --cpu-bind=none -n 4")

    def test_hydra_gets_the_hosts_of_open_mpis_file(self):
        self.have(mpiexec_hydra="")
        hosts = self.hosts("# two hosts\nnode01 slots=5 max_slots=9\nnode02:4 # four\nnode03\n\n")

        for ranks, number in (("", 10), ("6", 6)):
            self.assertEqual(self.chosen(MPICH, ranks=ranks, hosts=hosts),
                             f"hydra: mpiexec.hydra -hosts node01:5,node02:4,node03:1 -n {number}")

    def test_host_files_that_cannot_be_used_are_told(self):
        self.have(mpiexec_hydra="", srun="slurm 23.02")

        missing = self.call(MPICH, hosts="nowhere")
        with_srun = self.call(MPICH, hosts=self.hosts("a slots=2\n"), DSTUNE_MPIRUN="srun")

        self.assertEqual((missing.returncode, missing.stderr), (2, "error: no host file nowhere\n"))
        self.assertEqual(with_srun.returncode, 2)
        self.assertIn("-hostfile is not for srun", with_srun.stderr)


if __name__ == "__main__":
    unittest.main()
