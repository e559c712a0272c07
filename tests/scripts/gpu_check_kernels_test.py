"""The kernels of scripts/gpu_check.sh beside libraries and PyTorch, and what it says where there is no torch."""

import json
import unittest

from gpu_check_support import KERNELS, Machine

import beside_torch
from ending import Ended
from rows import FAILED, NOT_RUN, PASSED


def ended(text, code=0):
    return Ended(code, text, 1.0)


def results(rows):
    return {row.check: row.result for row in rows}


class Kernels(Machine):
    def test_a_missed_aim_names_the_kernel(self):
        self.program("root/bin/bench/bench_gpu_kernels", KERNELS)

        rows = self.only("kernels", code=1)

        self.assertEqual(rows["bench_gpu_kernels"], ("passed", "figures: 3"))
        self.assertEqual(rows["bench_gpu_kernels: gpt2 c_fc, forward"][0], "at least 0.97")
        self.assertEqual(rows["bench_gpu_kernels: gpt2 c_fc, gradient"][0],
                         "mend: gpt2 c_fc, gradient is slower than cuBLASLt alone, 0.50 of its speed")
        self.assertEqual(rows["bench_gpu_kernels: attention"][0], "not judged")
        line = self.lines()["bench_gpu_kernels: gpt2 c_fc, gradient"]
        self.assertEqual((line["ours_tflop_per_s"], line["reference_tflop_per_s"]), (50.0, 100.0))
        self.assertEqual(line["aim"], [0.97, None])
        self.assertIn("## bench_gpu_kernels", (self.output / "report.md").read_text(encoding="utf-8"))

    def test_lines_beside_pytorch_are_judged_one_by_one(self):
        text = 'warning\n{"kernel": "adam", "ours_ms": 1.0, "torch_ms": 1.05, "ratio": 0.95}\n' \
               '{"kernel": "norm", "ours_ms": 1.0, "torch_ms": 2.0, "ratio": 0.5}\n'
        rows = beside_torch.beside_kernels(ended(text, 1))
        self.assertEqual(results(rows), {"kernels beside PyTorch": PASSED, "kernel: adam": PASSED,
                                         "kernel: norm": FAILED})
        self.assertEqual(beside_torch.beside_kernels(ended("nothing")), [])
        self.assertEqual(beside_torch.beside_kernels(ended(text, 2))[0].result, FAILED)


class KernelsBesideTorch(Machine):
    """The script is called by the Python that has torch, with the program that it asks for kernels."""

    def setUp(self):
        super().setUp()
        self.program("root/bin/bench/bench_gpu_kernels", KERNELS.replace("exit 1", "exit 0").replace("50.0", "99.0"))
        self.program("root/bin/bench/kernels_on_request", "exit 1")
        self.program("tools/python-torch", f"""case "$2" in
          */versions.py) echo '{json.dumps(dict.fromkeys(("torch", "deepspeed", "transformers", "cuda"), "1"))}' ;;
          */kernels_beside_torch.py) test -x "$3" && name="$(basename "$3") $4 $5" &&
            echo '{{"kernel": "'$name'", "ours_ms": 1, "torch_ms": 1}}' ;;
        esac""")
        self.variables = {"PYTHON": str(self.directory / "tools" / "python-torch")}

    def write_script(self, text):
        path = self.root / "bench" / "gpu" / "kernels_beside_torch.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def test_without_the_script_nothing_runs(self):
        self.assertEqual(self.only("kernels")["kernels beside PyTorch"],
                         ("not run", "there is no bench/gpu/kernels_beside_torch.py"))

    def test_it_gets_the_program(self):
        self.write_script("")
        self.assertEqual(self.only("kernels")["kernel: kernels_on_request"][0], "within 0.9 to 1.1")

    def test_pretended_it_runs_on_the_cpu_if_it_can(self):
        self.write_script("add_argument('--backend')")
        self.assertIn("kernel: kernels_on_request --backend cpu", self.only("kernels", "--pretend"))
        self.write_script("")
        self.assertEqual(self.only("kernels", "--pretend")["kernels beside PyTorch"],
                         ("not run", "it runs on a GPU alone"))


class NoTorch(Machine):
    def test_what_needs_it_says_so(self):
        self.program("tools/python-without", 'echo "{\\"torch\\": null}"')
        self.variables = {"PYTHON": str(self.directory / "tools" / "python-without")}
        self.program("root/bin/bench/bench_gpu_kernels", KERNELS)

        self.check("--only", "kernels,host", code=1)

        for check in ("kernels beside PyTorch", "calibrate"):
            line = self.lines()[check]
            self.assertEqual(line["result"], NOT_RUN)
            self.assertIn("python-without has no torch", line["detail"])

    def test_torch_without_a_gpu_is_none_here(self):
        versions = '{\\"torch\\": \\"2.9\\", \\"deepspeed\\": \\"1\\", \\"transformers\\": \\"1\\", \\"cuda\\": false}'
        self.program("tools/python-cpu", f'echo "{versions}"')
        self.variables = {"PYTHON": str(self.directory / "tools" / "python-cpu")}

        self.check("--only", "host", code=1)

        self.assertIn("finds no GPU", self.lines()["calibrate"]["detail"])


if __name__ == "__main__":
    unittest.main()
