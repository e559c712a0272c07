"""scripts/verify/share.py: what a shared file has, and what it must not have."""

import json
import os
import pathlib
import tempfile
import unittest

from verify_support import journal, record

from verify import share

# What tells who and where somebody is.
SECRETS = ["gpu-box-07", "node-a13", "node-b2", "compute9", "alice", "mallory", "bob.secret", "acme", "hidden_project",
           "my secret folder", "10.1.2.3", "fe80:0:0:0:12:34", "GPU-3b1e6f0a", "/scratch", "/opt", "private_run.json",
           "lengths_of_acme", "node16", "node17", "node18", "node19", "node20", "node21", "node22", "node23", "node24",
           "frank", "models/", "run3", "s3cret", "night shift"]
LEDGER_HOST = [{"event": "gradient hook", "calls": 4, "time_s": 0.1, "idle_s": 0.0}]


def planted():
    """A journal with them in its records, experiments and outcomes."""
    lines = [record("z0", 1.0, host_overhead_s={"origin": "/home/alice/acme/host_overhead.json"}),
             record("z3", 1.1, stage=3)]
    experiment = lines[0]["experiment"]
    experiment["ds_config"]["zero_optimization"]["offload_param"] = {"nvme_path": "/scratch/bob.secret/nvme"}
    experiment["settings"]["model"] = dict(experiment["settings"]["model"], name="../hidden_project/config.json")
    lines[1]["outcome"]["network"] = {"node-a13": "10.1.2.3", "compute9": "fe80:0:0:0:12:34"}
    lines[1]["outcome"]["note"] = ("rank 3 on node-b2 wrote ~mallory/x and data/lengths_of_acme.csv, GPU-3b1e6f0a-aa, "
                                   "mallory@compute9, see /opt/acme/lib.so: 3.5 GB/s")
    lines[1]["outcome"]["hosts"] = ["node-a13", "compute9.cluster.acme"]
    lines[1]["outcome"]["ledger"]["host"] = LEDGER_HOST
    experiment["settings"]["host_overhead_s"]["note"] = (
        "p.json, measured on node16 (AMD EPYC), 2 ranks, what a pick by it loses was measured on no GPU")
    experiment["ds_config"]["comet"] = {"enabled": True, "api_key": "s3cret"}
    experiment["ds_config"]["wandb"] = {"team": "s3cret"}
    experiment["ds_config"]["tensorboard"] = {"job_name": "night shift"}
    experiment["ds_config"]["csv_monitor"] = {"job_name": "night shift"}
    experiment["ds_config"]["dstune_preflight"] = ["node22: 2"]
    lines[1]["outcome"]["nodes"] = [{"name": "node24", "slots": 4}]
    lines[0]["outcome"]["culprits"] = [{"rank": 1, "host": "10.1.2.3"}]
    lines[0]["outcome"]["notes"] = [
        "ranks 1 and 2 on node18, node19:2 and frank@node20, [node21]:29500, node23:29500", "10 of 10 steps, 2/3",
        "from https://git.acme.com/repo and models/acme-llama/run3 at 5 tokens/s/GPU, 3 GFLOP/s", "rank 3 on node17."]
    begin = {"type": "run", "identity": {"program": "dstune-mpi 0.1.0", "machine": "AMD EPYC"},
             "process": {"host": "gpu-box-07", "launcher_folder": "/tmp/ompi.gpu-box-07.1000/pid.1"}}
    return [begin, *lines]


class Share(unittest.TestCase):
    MACHINE = ({"gpu-box-07.cluster.acme", "gpu-box-07"}, {"alice"}, {"/home/alice", "/data/my secret folder"})

    def shared(self):
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder)
            runs = results / "verify"
            runs.mkdir()
            (results / "journal.jsonl").write_text(journal(planted()), encoding="utf-8")
            (results / "summary.txt").write_text("Note: a slow rank: rank 2 on gpu-box-07, of 10.1.2.3.\n"
                                                 "best is /zero_optimization/stage 3 at 12.5 samples/s\n"
                                                 "The exp result is at /data/my secret folder/run/z0.\n",
                                                 encoding="utf-8")
            (runs / "plan.json").write_text('{"model": {"_name_or_path": "/opt/acme/model"}}', encoding="utf-8")
            (runs / "events.jsonl").write_text('{"event": "failed", "reason": "No such file: /home/bob.secret/x y"}\n',
                                               encoding="utf-8")
            verdict = {"about": {"versions": {"torch": "2.15.0", "transformers": "5.24.0"}, "host_overhead_s": {},
                                 "line": "private_run.json: 2 of 2 configurations"}}
            share.write(results / "share.json", results, runs, verdict, ["private_run.json"], self.MACHINE)
            return (results / "share.json").read_text(encoding="utf-8"), folder

    def test_no_name_and_no_path_is_left(self):
        text, folder = self.shared()

        for secret in [*SECRETS, folder, "/tmp", "/home", "/data"]:
            with self.subTest(secret):
                self.assertNotIn(secret.lower(), text.lower())

    def test_what_a_verdict_stands_on_is(self):
        tree = json.loads(self.shared()[0])

        self.assertEqual(tree["versions"], {"torch": "2.15.0", "transformers": "5.24.0",
                                            "dstune_mpi": ["dstune-mpi 0.1.0"]})
        self.assertEqual(tree["machine"]["tuned"], ["AMD EPYC"])
        self.assertEqual([each["type"] for each in tree["journal"]], ["run", "finished", "finished"])
        self.assertEqual(tree["journal"][2]["outcome"]["step_time_s"], {"median": 1.1})
        self.assertEqual(tree["journal"][2]["experiment"]["ds_config"]["zero_optimization"]["stage"], 3)
        self.assertIn("best is /zero_optimization/stage 3 at 12.5 samples/s", tree["summary"])
        self.assertEqual(len(tree["journal"][2]["outcome"]["network"]), 2)
        self.assertEqual(tree["journal"][2]["outcome"]["ledger"]["host"], LEDGER_HOST)
        notes = tree["journal"][1]["outcome"]["notes"]
        self.assertEqual(notes[1], "10 of 10 steps, 2/3")
        self.assertRegex(notes[2], "^from URL and PATH at 5 tokens/s/GPU, 3 GFLOP/s$")
        self.assertRegex(tree["journal"][1]["experiment"]["settings"]["host_overhead_s"]["note"],
                         r"measured on HOST\d+ \(AMD EPYC\), 2 ranks, what a pick by it loses was measured on no GPU$")
        self.assertEqual(tree["journal"][1]["outcome"]["culprits"], [{"rank": 1, "host": "ADDRESS"}])
        self.assertIn("GB/s", tree["journal"][2]["outcome"]["note"])

    def test_an_untouched_journal_keeps_its_keys_and_numbers(self):
        tree = record("z0", 1.0)
        tree["outcome"]["ledger"]["host"] = LEDGER_HOST

        self.assertEqual(share.Cleaner([tree], [], (set(), set(), set())).clean(tree), tree)

    def test_a_real_journal_loses_hosts_and_folders_and_nothing_else(self):
        path = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"]) / "tests" / "data" / "shared_journal.jsonl"
        text = path.read_text(encoding="utf-8")
        tree = [json.loads(line) for line in text.splitlines()]
        expected = text.replace("/tmp/ompi.node17.0/pid.30089", "PATH").replace("node17", "HOST0")

        cleaned = share.Cleaner([tree], [], (set(), set(), set())).clean(tree)

        self.assertEqual(cleaned, [json.loads(line) for line in expected.splitlines()])
        self.assertTrue(cleaned[2]["outcome"]["ledger"]["host"][0]["calls"] > 0)


if __name__ == "__main__":
    unittest.main()
