"""What ranks on other hosts get of the environment of tune.sh."""
import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])
CALL = """. {source}/scripts/supervise/say.sh; . {source}/scripts/tune/exports.sh
export_one() {{ printf '%s\\n' "$1"; }}
hand_on export_one"""


class ExportsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("home", "here"):
            (self.root / name).mkdir()

    def write(self, name, text):
        (self.root / name).write_text(text)

    def call(self, **variables):
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.root / "home"), **variables}
        return subprocess.run(["bash", "-euc", CALL.format(source=SOURCE)], env=environment, text=True,
                              capture_output=True, check=False, cwd=self.root / "here")

    def handed_on(self, warning="", **variables):
        done = self.call(**variables)
        self.assertEqual((done.returncode, done.stderr), (0, warning))
        return sorted(done.stdout.splitlines())

    def test_what_deepspeed_hands_on_and_what_the_training_needs(self):
        names = ["CONDA_PREFIX", "DSTUNE_NP", "LD_LIBRARY_PATH", "MLFLOW_RUN", "MV2_IBA", "NCCL_SOCKET_IFNAME",
                 "PYTHONPATH", "UCX_TLS", "VIRTUAL_ENV"]

        others = {"SECRET": "no", "LANG": "C", "NCCL_HOSTID": "mine"}
        self.assertEqual(self.handed_on(**others, **dict.fromkeys(names, "some value")), names)

    def test_devices_of_infiniband_are_a_hosts_own_where_deepspeed_says_so(self):
        devices = {"NCCL_IB_HCA": "mlx5_0", "UCX_NET_DEVICES": "mlx5_0:1"}

        self.assertEqual(self.handed_on(**devices), list(devices))
        self.assertEqual(self.handed_on(AISC_JOB_NAME="job", **devices), [])

    def test_gpus_by_number_are_the_same_everywhere_none_and_ids_are_not(self):
        for value, handed_on in (("0", True), ("0,1,10", True), ("", False), ("-1", False), ("GPU-5d3b", False)):
            self.assertEqual(self.handed_on(CUDA_VISIBLE_DEVICES=value), ["CUDA_VISIBLE_DEVICES"] * handed_on, value)

    def test_deepspeeds_file_is_read_at_home_and_here_where_it_counts_more(self):
        self.write("home/.deepspeed_env", "NCCL_DEBUG=INFO\nCC=gcc -O1 # as it is\n")
        self.write("here/.deepspeed_env", " NCCL_DEBUG = a=b c \r\nLAST=1")

        self.assertEqual(self.handed_on(NCCL_DEBUG="WARN", NCCL_NET="Socket"),
                         ["CC=gcc -O1 # as it is", "LAST=1", "NCCL_DEBUG=a=b c", "NCCL_NET"])

    def test_lines_at_which_deepspeed_ends_are_told(self):
        self.write("here/.deepspeed_env", "A=1\n\n# B\n")

        said = "".join(f"dstune-mpi: warning: ./.deepspeed_env line {line} is not a variable: DeepSpeed's launcher ends "
                       "there\n" for line in (2, 3))
        self.assertEqual(self.handed_on(said), ["A=1"])

    def test_another_file_may_be_named(self):
        self.write("here/.deepspeed_env", "A=1\n")
        self.write("here/other", "B=2\n")
        self.write("elsewhere", "C=3\n")

        self.assertEqual(self.handed_on(DS_ENV_FILE="other"), ["B=2"])
        self.assertEqual(self.handed_on(DS_ENV_FILE=str(self.root / "elsewhere")), ["C=3"])

    def test_open_mpis_own_list_counts_alone(self):
        done = self.call(NCCL_NET="Socket", OMPI_MCA_mca_base_env_list="A;B")

        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("OMPI_MCA_mca_base_env_list says what ranks on other hosts get", done.stderr)

    def test_every_line_that_deepspeed_could_not_read_is_named_and_nothing_starts(self):
        self.write("here/.deepspeed_env", "A=1\nexport B=2\n\x1b[31m\n")

        done = self.call()

        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.splitlines(),
                         ["error: ./.deepspeed_env line 2: export B=2; accepted: NAME=VALUE",
                          r"error: ./.deepspeed_env line 3: \x1B[31m; accepted: NAME=VALUE"])


if __name__ == "__main__":
    unittest.main()
