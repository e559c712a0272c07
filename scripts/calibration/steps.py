"""DeepSpeed's steps on Hugging Face's GPT-2, in shapes so small that host code is all they take.

Cases differ in one term where they can: layers change tensors and modules, accumulation the hooks of
stages 2 and 3 but not those of stage 1, buckets the number of collectives, what is kept the gathers of
stage 3 but not its hooks.
"""
import collections
import statistics
import time

from collectives import Recorder
from fitting import EVENTS
from gathers import GATHERED, GatherCounter
from hooks import HOOK, HookCounter

HIDDEN, HEADS, VOCABULARY, SEQUENCE = 32, 4, 64, 8
LARGE, SMALL = 1_000_000, 5_000  # reduce_bucket_size, elements: one bucket, and about four a block
STEPS = 3  # of a case in a round, after one that is not measured

# Of stage 3's parameters: kept from step to step, gathered in one call a micro-step, or one a module.
GATHERS = {
    None: {},
    "kept": {"stage3_param_persistence_threshold": 1_000_000_000},
    "ahead": {"stage3_param_persistence_threshold": 0},
    "on demand": {"stage3_param_persistence_threshold": 0, "stage3_prefetch_bucket_size": 0,
                  "stage3_max_reuse_distance": 0},
}

Case = collections.namedtuple("Case", "stage layers accumulation bucket gathers")

CASES = (
    Case(0, 2, 1, LARGE, None), Case(0, 2, 4, LARGE, None), Case(0, 6, 1, LARGE, None), Case(0, 6, 4, LARGE, None),
    Case(1, 2, 1, LARGE, None), Case(1, 6, 1, LARGE, None), Case(1, 6, 1, SMALL, None), Case(1, 6, 4, LARGE, None),
    Case(2, 2, 1, LARGE, None), Case(2, 2, 4, LARGE, None), Case(2, 6, 1, LARGE, None), Case(2, 6, 1, SMALL, None),
    Case(2, 6, 4, LARGE, None),
    Case(3, 2, 1, LARGE, "kept"), Case(3, 2, 4, LARGE, "kept"), Case(3, 6, 1, LARGE, "kept"),
    Case(3, 2, 1, LARGE, "ahead"), Case(3, 2, 4, LARGE, "ahead"), Case(3, 6, 1, LARGE, "ahead"),
    Case(3, 2, 1, SMALL, "ahead"), Case(3, 6, 1, SMALL, "ahead"),
    Case(3, 2, 1, LARGE, "on demand"), Case(3, 2, 2, LARGE, "on demand"), Case(3, 6, 1, LARGE, "on demand"),
)


def title(case):
    gathers = f", gathers {case.gathers}" if case.gathers else ""
    return (f"stage {case.stage}, {case.layers} layers, {case.accumulation} micro-steps, "
            f"buckets of {case.bucket}{gathers}")


def host_events(case, tensors, collectives, owned_tensors, hooks=0, gathered=0):
    """The events of one optimizer step in fp32, as dstune-mpi's ledger counts them.

    hooks, gathered: as HookCounter and GatherCounter find them.
    """
    steps = case.accumulation
    counts = dict.fromkeys((*EVENTS, GATHERED), 0)
    counts["collective"] = collectives
    counts["optimizer_tensor"] = owned_tensors
    counts["synchronization"] = 2 * steps  # timer: every forward and engine.step()
    if case.stage == 1:
        counts["gradient_hook"] = tensors
    if case.stage >= 2:
        counts["gradient_hook"] = steps * tensors
    if case.stage == 3:
        counts[GATHERED] = gathered
        counts[HOOK] = hooks
        counts["synchronization"] += steps  # the end of every backward
    return counts


def make_model(transformers, layers, attention=None):
    """Hugging Face's GPT-2: 12 modules called in a block, 6 of them with parameters, and a tied head.

    The real one, since every module called has hooks, and which are called is transformers' to say. attention: how
    transformers computes it ("sdpa", "eager"); None: as it would.
    """
    config = transformers.GPT2Config(
        n_layer=layers, n_embd=HIDDEN, n_head=HEADS, vocab_size=VOCABULARY, n_positions=SEQUENCE,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False, bos_token_id=0,
        eos_token_id=0, attn_implementation=attention)
    return transformers.GPT2LMHeadModel(config).train()


def deepspeed_config(case):
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": case.accumulation,
        "gradient_clipping": 1.0,
        "zero_optimization": {"stage": case.stage, "reduce_bucket_size": case.bucket, **GATHERS[case.gathers]},
    }


class Step:
    """One case, ready to run beside the same forward and backward without DeepSpeed."""

    def __init__(self, bench, case):
        self.bench, self.case = bench, case
        model = make_model(bench.transformers, case.layers)
        tensors = len(list(model.parameters()))
        optimizer = bench.torch.optim.AdamW(model.parameters(), lr=1e-4)
        self.engine, *_ = bench.deepspeed.initialize(model=model, optimizer=optimizer,
                                                     config=deepspeed_config(case))
        for _ in range(2):  # stage 3 records its first steps
            self.run()
        gathered, hooks = GatherCounter(model.parameters()), HookCounter(self.engine.optimizer)
        with Recorder(bench.deepspeed.comm.comm.cdb) as recorder, gathered, hooks:
            self.run()
        if case.stage == 3 and hooks.total == 0:
            raise RuntimeError("this DeepSpeed's hooks of stage 3 are not where they were: they cannot be counted")
        self.calls, self.pipelined = recorder.alone(), recorder.pipelined()
        owned = tensors
        if case.stage in (1, 2):
            owned = sum(len(group) for group in self.engine.optimizer.params_in_partition)
        self.counts = host_events(case, tensors, len(recorder.calls), owned, hooks.total, gathered.tensors)

    def run(self):
        for _ in range(self.case.accumulation):
            self.engine.backward(self.engine(self.bench.tokens, labels=self.bench.tokens).loss)
            self.engine.step()

    def run_plain(self):
        model = self.bench.plain_model(self.case.layers)
        for _ in range(self.case.accumulation):
            model(self.bench.tokens, labels=self.bench.tokens).loss.backward()
            for parameter in model.parameters():
                parameter.grad = None

    def round(self):
        """This rank's seconds with and without DeepSpeed, one beside the other."""
        return self.bench.seconds(self.run), self.bench.seconds(self.run_plain)


class Bench:
    """DeepSpeed and torch on this rank's accelerator, and a Step of each case."""

    def __init__(self, torch, deepspeed, transformers, accelerator, tell=lambda count: None):
        self.torch, self.deepspeed, self.transformers = torch, deepspeed, transformers
        self.accelerator = accelerator
        self.tokens = torch.randint(0, VOCABULARY, (1, SEQUENCE), device=accelerator.current_device_name())
        self.plain = {}
        self.steps = []
        for case in CASES:
            self.steps.append(Step(self, case))
            tell(len(self.steps))

    def plain_model(self, layers):
        if layers not in self.plain:
            self.plain[layers] = make_model(self.transformers, layers).to(self.tokens.device)
        return self.plain[layers]

    def seconds(self, run):
        self.torch.distributed.barrier()
        times = []
        for _ in range(STEPS + 1):
            self.accelerator.synchronize()
            begin = time.perf_counter()
            run()
            self.accelerator.synchronize()
            times.append(time.perf_counter() - begin)
        return statistics.median(times[1:])

    def round(self, number):
        """[(seconds with, without)] in the order of cases, begun with another one each round."""
        count = len(self.steps)
        times = [None] * count
        for i in range(count):
            k = (i + number) % count
            times[k] = self.steps[k].round()
        return times
