"""A ReFrame check of an installed dstune-mpi: it tunes in virtual time, where the answer is the same on every machine."""

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class TunesInVirtualTime(rfm.RunOnlyRegressionTest):
    descr = "dstune-mpi tunes examples/sim.json on four simulated GPUs"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    ranks = variable(int, value=5)
    sourcesdir = None
    executable = "dstune"
    prerun_cmds = ['sim="$(dirname "$(readlink -f "$(command -v dstune)")")/../share/dstune-mpi/examples/sim.json"']

    @run_after("init")
    def set_options(self):
        # dstune starts the ranks itself: the check is one task, by the scheduler's local launcher.
        self.executable_opts = ['"$sim"', "-n", str(self.ranks), "--format", "json", "--results-dir", "results"]

    @run_before("run")
    def start_directly(self):
        from reframe.core.backends import getlauncher
        self.job.launcher = getlauncher("local")()

    @sanity_function
    def finds_the_optimum(self):
        optimum = "results/ds_config_optimal.json"
        return sn.all([sn.assert_found(r'"stage": 0', optimum),
                       sn.assert_found(r'"train_micro_batch_size_per_gpu": 4', optimum),
                       sn.assert_eq(sn.count(sn.findall(r'"type":"finished"', "results/journal.jsonl")), 12)])

    @performance_function("samples/s")
    def samples_per_second(self):
        return sn.extractsingle(r'"samples_per_s": ([0-9.e+]+)', self.stdout, 1, float)
