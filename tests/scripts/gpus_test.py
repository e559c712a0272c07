"""What tune.sh makes of the GPUs of a machine."""
import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])
TWO_GPUS = """dstune-mpi 0.1.0
GPU 0: Some GPU, 80.00 GiB (GPU-00000000-0000)
GPU 1: Some GPU, 80.00 GiB (GPU-11111111-1111)
{cuda}
cpu: available (Some CPU, 64.00 GiB)
"""


class GpusTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def file(self, name, text="", mode=0o644):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def call(self, command, **variables):
        environment = {"PATH": "/usr/bin:/bin", "CUDA_HOME": str(self.root / "no toolkit"), **variables}
        done = subprocess.run(["bash", "-euc", f". {SOURCE}/scripts/tune/gpus.sh; {command}"],
                              env=environment, text=True, capture_output=True, check=True)
        return done.stdout.strip(), done.stderr

    def program(self, cuda):
        return self.file("program", f"#!/bin/sh\ncat <<'TEXT'\n{TWO_GPUS.format(cuda=cuda)}TEXT\n", 0o755)

    def ranks(self, program, backend=""):
        return self.call(f"default_ranks {program} '{backend}'")[0]

    def test_a_rank_per_gpu_and_one_that_tunes(self):
        program = self.program("cuda: available (Some GPU, 80.00 GiB)")

        self.assertEqual([self.ranks(program, backend) for backend in ("", "auto", "cuda")], ["3"] * 3)

    def test_without_a_usable_gpu_the_cores_count(self):
        unusable = self.program("cuda: unavailable: NCCL is not usable")
        by_cores = self.call(f"ranks_for_cores {unusable}")[0]

        self.assertGreaterEqual(int(by_cores), 3)
        self.assertEqual(self.ranks(unusable), by_cores)
        self.assertEqual(self.call(f"count_gpus {unusable}")[0], "0")
        usable = self.program("cuda: available (Some GPU, 80.00 GiB)")
        self.assertEqual(self.ranks(usable, "cpu"), by_cores)

    def test_cores_get_no_more_workers_than_a_control_group_has_memory_for(self):
        for size, ranks in (("15.00 GiB", "3"), ("400.00 MiB", "3"), ("1.00 TiB", self.many_cores("64.00 GiB"))):
            self.assertEqual(self.many_cores(f"{size} of 64.00 TiB"), ranks, size)

    def many_cores(self, memory):
        program = self.file("bounded", f"#!/bin/sh\necho 'cpu: available (Some CPU (R), {memory})'\n", 0o755)
        return self.call(f"nproc() {{ echo 64; }}; ranks_for_cores {program}")[0]

    def test_cuda_is_built_where_a_gpu_and_its_compiler_are(self):
        empty = self.root / "empty"
        empty.mkdir()
        self.file("dev/nvidia0")
        self.file("toolkit/bin/nvcc", mode=0o755)
        toolkit = {"CUDA_HOME": str(self.root / "toolkit")}

        self.assertEqual(self.call(f"choose_preset {self.root}/dev", **toolkit), ("cuda", ""))
        self.assertEqual(self.call(f"choose_preset {empty}", **toolkit), ("default", ""))

    def test_gpus_without_a_compiler_are_said_to_be_unused(self):
        self.file("dev/nvidia0")

        preset, log = self.call(f"has_nvcc() {{ false; }}; choose_preset {self.root}/dev")

        self.assertEqual(preset, "default")
        self.assertIn("GPUs and no nvcc", log)

    def hosts_of_job(self, **variables):
        self.file("bin/scontrol", "#!/bin/sh\n[ \"$*\" = 'show hostnames n[1-3]' ] && printf 'n1\\nn2\\nn3\\n'\n",
                  0o755)
        done = subprocess.run([SOURCE / "scripts/slurm/gpu_hosts.sh"], text=True, capture_output=True, check=True,
                              env={"PATH": f"{self.root}/bin:/usr/bin:/bin", "SLURM_JOB_NODELIST": "n[1-3]",
                                   **variables})
        return done.stdout

    def test_a_slurm_job_has_a_slot_per_gpu_and_one_for_rank_0(self):
        self.assertEqual(self.hosts_of_job(SLURM_GPUS_ON_NODE="4"), "n1 slots=5\nn2 slots=4\nn3 slots=4\n")

    def test_a_slurm_job_without_gpus_is_left_to_mpirun(self):
        self.assertEqual(self.hosts_of_job(), "")

    def test_the_user_has_the_last_word(self):
        self.assertEqual(self.call(f"choose_preset {self.root}", DSTUNE_PRESET="cuda"), ("cuda", ""))


if __name__ == "__main__":
    unittest.main()
