"""Where memory is less than the host has: control groups, Slurm, ulimit. What the system refuses or ends is an outcome."""

import os
import pathlib
import subprocess
import unittest

from support import PROGRAM, SOURCE, SURVIVE, ProgramTest, events, mpi_command, names, outcomes, read_json

GROUPS = {1: (pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
          2: (pathlib.Path("/sys/fs/cgroup"), "memory.max")}


class ControlGroup:
    """A new control group of version 1 or 2, for commands that are started within()."""

    def __init__(self, limit):
        version = 1 if (GROUPS[1][0] / GROUPS[1][1]).exists() else 2
        top, file = GROUPS[version]
        self.path = top / f"dstune-test-{os.getpid()}"
        try:
            self.path.mkdir()
            (self.path / file).write_text(str(limit), encoding="ascii")
        except OSError as reason:
            self.remove()
            raise unittest.SkipTest(f"no control group of memory can be made here: {reason}") from reason

    def within(self, command):
        return ["sh", "-c", f'echo $$ >"{self.path}/cgroup.procs" && exec "$@"', "sh", *map(str, command)]

    def remove(self):
        """Ranks that were killed take a moment to leave it."""
        if not self.path.exists():
            return
        subprocess.run(["sh", "-c", f"for i in 1 2 3 4 5 6 7 8 9; do rmdir '{self.path}' 2>/dev/null && exit; "
                        "sleep 0.2; done"], check=False)


class HostMemory(ProgramTest):
    """A micro-batch of 160 needs 486 MiB on each rank, nearly all of it
    logits, which take little time."""

    def small(self, *micro_batches, stages=(0,)):
        config = self.tiny(zero_optimization={"stage": list(stages)},
                           train_micro_batch_size_per_gpu=list(micro_batches))
        del config["dstune"]["memory_limit"]
        config["dstune"].update(warmup_steps=0, measure_steps=1)
        config["dstune"]["model"].update(vocab_size=8192, n_embd=8, n_layer=1, n_head=1)
        return self.write_config(config)

    def group(self, limit):
        group = ControlGroup(limit)
        self.addCleanup(group.remove)
        return group

    def assert_found(self, finished, micro_batch=1):
        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertEqual(read_json(self.results / "ds_config_optimal.json")["train_micro_batch_size_per_gpu"],
                         micro_batch)

    def test_a_control_group_bounds_the_default_limit(self):
        for size, limit in ((3 << 30, "1.27 GiB"), (400 << 20, "104.00 MiB")):
            group = self.group(size)
            finished = self.run_command(group.within(mpi_command(3, self.small(1), "--overwrite")))
            group.remove()

            self.assert_found(finished)
            self.assertIn(f"memory limit {limit} per rank: ", finished.stderr)
            self.assertIn(f"of control group {group.path}", finished.stderr)

    def test_slurms_memory_bounds_the_default_limit(self):
        given = ("-x", "SLURM_JOB_ID=1", "-x", "SLURM_MEM_PER_NODE=1024")

        finished = self.tune(3, self.small(1), mpi=given)

        self.assert_found(finished)
        self.assertRegex(finished.stderr, r"memory limit 416.00 MiB per rank: \S+ \S+ of the 1.00 GiB of Slurm "
                         r"\(SLURM_MEM_PER_NODE\)")

    def test_ulimit_bounds_the_default_limit(self):
        finished = self.run_command(["sh", "-c", 'ulimit -v 1048576 && exec "$@"', "sh",
                                     *mpi_command(3, self.small(16, 160))])

        self.assert_found(finished, 16)
        self.assertRegex(finished.stderr, r"memory limit \S+ MiB per rank: \S+ \S+ of the 1.00 GiB of ulimit -v")

    def test_who_is_ended_for_want_of_memory_costs_its_experiment_and_one_start_of_the_run(self):
        group = self.group(400 << 20)
        config = self.small(16, 160, stages=(0, 1))
        supervised = [SOURCE / "scripts/supervise.sh",
                      *mpi_command(3, config, "--memory-limit", "10GiB")]
        supervised.insert(supervised.index(PROGRAM), "--")

        finished = self.run_command(group.within(supervised))

        self.assert_found(finished, 16)
        self.assertIn("memory_limit is 10.00 GiB on each of 2 workers", finished.stderr)
        killed = [name for name, outcome in outcomes(self.results).items() if outcome["status"] == "out_of_memory"]
        self.assertEqual(killed, ["z0_gas1_tmbspg160", "z1_gas1_tmbspg160"])
        for name in killed:
            outcome = outcomes(self.results)[name]
            self.assertIn("out-of-memory killer", outcome["refusal"])
            self.assertEqual((outcome["in_use_bytes"], outcome["limit_bytes"]), (400 << 20, 400 << 20))
        started = names(events(self.results, "started"))
        self.assertEqual(sorted(started), sorted(set(started)), "each was started once")
        self.assertEqual(len(events(self.results, "run")), 2)

    def test_what_the_system_refuses_is_said_and_tried_again_if_asked(self):
        # glibc reserves addresses for as many arenas as threads happen to meet.
        narrow = ["sh", "-c", 'ulimit -v 614400 && MALLOC_ARENA_MAX=1 exec "$@"', "sh"]
        arguments = (self.small(16, 160), "--memory-limit", "10GiB")

        refused = self.run_command([*narrow, *mpi_command(3, *arguments, mpi=SURVIVE)])
        outcome = outcomes(self.results)["z0_gas1_tmbspg160"]
        self.assert_found(refused, 16)  # later it may be the other, which then fits
        kept = self.tune(3, *arguments, "--resume")
        again = self.tune(3, *arguments, "--resume", "--retry-failed")

        self.assertEqual(outcome["status"], "out_of_memory")
        self.assertRegex(outcome["refusal"], r"ulimit -v has \S+ \S+ left of 600.00 MiB")
        self.assertGreater(outcome["requested_bytes"], 0)
        self.assertIn("[journal]", kept.stderr)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(outcomes(self.results)["z0_gas1_tmbspg160"]["status"], "measured")

    def test_check_says_what_is_exceeded_here(self):
        told = self.run_command([PROGRAM, "--check", "--memory-limit", "900TiB", str(self.small(1))])
        default = self.run_command(self.group(400 << 20).within([PROGRAM, "--check", self.small(1)]))

        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn("warning: memory_limit is 900.00 TiB on each of 2 workers", told.stderr)
        self.assertEqual(default.returncode, 0, default.stderr)
        self.assertRegex(default.stdout,
                         r"here a rank could have 104.00 MiB: \S+ MiB of the 400.00 MiB of control group")


if __name__ == "__main__":
    unittest.main()
