"""One rank of the real DeepSpeed."""
import gc
import importlib
import os
import statistics
import time

from verify import batches, models, watch
from verify.schedule import CHECK

WARM_UP = 2      # steps of a visit before those that are timed
WATCHED_STEP = 2  # from 0: the first that is like all later ones (stage 3 records the first)
PAUSE_S = 0.003


class Bench:
    def __init__(self, plan):
        self.torch, self.deepspeed, self.transformers = (
            importlib.import_module(name) for name in ("torch", "deepspeed", "transformers"))
        from deepspeed.accelerator import get_accelerator
        self.plan, self.accelerator = plan, get_accelerator()
        self.transformers.logging.set_verbosity_error()
        self.accelerator.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        self.deepspeed.init_distributed(verbose=False)
        self.rank, self.ranks = self.torch.distributed.get_rank(), self.torch.distributed.get_world_size()
        self.device = self.accelerator.current_device_name()
        # Stage 3 replaces it for the whole process, in which the other stages run as well.
        self.linear = self.torch.nn.functional.linear

    def about(self):
        return dict(torch=self.torch.__version__, deepspeed=self.deepspeed.__version__,
                    transformers=self.transformers.__version__, ranks=self.ranks,
                    device=self.accelerator.device_name(), backend=self.torch.distributed.get_backend(),
                    threads_per_rank=self.torch.get_num_threads())

    def close(self):
        self.torch.distributed.destroy_process_group()

    def agree(self, value):
        values = [value]
        self.torch.distributed.broadcast_object_list(values, src=0)
        return values[0]

    def of_all_ranks(self, value):
        values = [None] * self.ranks
        self.torch.distributed.all_gather_object(values, value)
        return values

    def visit(self, kind, configuration):
        """A fresh engine, trained for some steps: {"step_s": ...}, or what a check has of it."""
        self.clear()
        steps = self.plan["loss_steps"] if kind == CHECK else WARM_UP + self.plan["steps"]
        data = self.data_of(configuration, steps)
        memory = self.memory() if kind == CHECK else None
        if memory:
            memory.start()
        engine = self.engine(configuration)
        try:
            if kind == CHECK:
                return self.check(engine, data, configuration, memory)
            return {"step_s": self.times(engine, data, configuration)}
        finally:
            engine.destroy()
            del engine
            self.clear()

    def clear(self):
        gc.collect()
        self.torch.nn.functional.linear = self.linear
        self.accelerator.empty_cache()

    def memory(self):
        return watch.CpuMemory(self.torch) if self.device == "cpu" else watch.DeviceMemory(self.accelerator)

    def engine(self, configuration):
        self.torch.manual_seed(self.plan["seed"])
        settings = configuration["settings"]
        spec = settings["model"]
        model = models.make(self.transformers, models.with_dropout_of(self.plan["model"], spec),
                            spec.get("task", "causal_lm"), settings.get("attention", "sdpa"))
        self.check_parameters(model)
        config, optimizer = configuration["ds_config"], None
        if "optimizer" not in config:
            optimizer = models.trainers_optimizer(self.transformers, self.torch, model)
        engine, *_ = self.deepspeed.initialize(model=model, optimizer=optimizer, config=config)
        return engine

    def check_parameters(self, model):
        count, tuned = sum(each.numel() for each in model.parameters()), self.plan["parameters"]
        if tuned is not None and count != tuned:
            raise ValueError(f"the model has {count} parameters, the tuned one {tuned}")

    def data_of(self, configuration, steps):
        """Micro-steps by step, made before anything is timed."""
        settings, ds_config = configuration["settings"], configuration["ds_config"]
        spec, model = settings["model"], self.plan["model"]
        shape = (ds_config["train_micro_batch_size_per_gpu"], settings["sequence_length"],
                 spec.get("target_length", 0))
        config = self.transformers.AutoConfig.for_model(**model)
        # What a check trains on comes again, so that losses tell whether they fall.
        return [[self.batch(batches.micro_step(config, spec.get("task", "causal_lm"), shape, seed))
                 for seed in (batches.seed_of_micro_step(self.plan["seed"], self.rank, self.ranks, step, micro_step)
                              for micro_step in range(ds_config.get("gradient_accumulation_steps", 1)))]
                for step in range(steps)]

    def batch(self, rows):
        return dict(zip(("input_ids", "labels"), (self.torch.tensor(each, device=self.device) for each in rows)))

    def step(self, engine, micro_steps, keep_logits):
        """The mean loss of the micro-steps on this rank, still on the device."""
        losses, output = [], None
        for inputs in micro_steps:
            output = engine(**inputs)
            loss = output.loss
            if not keep_logits:
                output = None
            engine.backward(loss)
            engine.step()
            losses.append(loss.detach())
            loss = None
        return self.torch.stack(losses).float().mean()

    def times(self, engine, data, configuration):
        """Median seconds of a step of the slowest rank, of the timed ones."""
        keep_logits, seconds = configuration["settings"].get("keep_logits", False), []
        for micro_steps in data:
            self.accelerator.synchronize()
            begin = time.perf_counter()
            self.step(engine, micro_steps, keep_logits)
            self.accelerator.synchronize()
            seconds.append(time.perf_counter() - begin)
        slowest = [max(each) for each in zip(*self.of_all_ranks(seconds[WARM_UP:]))]
        return statistics.median(slowest)

    def check(self, engine, data, configuration, memory):
        keep_logits = configuration["settings"].get("keep_logits", False)
        losses = []
        pause_s = PAUSE_S if self.device == "cpu" else 0.0
        with watch.CollectiveSums(self.deepspeed.comm.comm.cdb, pause_s) as counted:
            for micro_steps in data[:WATCHED_STEP]:
                losses.append(self.step(engine, micro_steps, keep_logits))
            counted.sums.clear()
            memory.mark()
            losses.append(self.step(engine, data[WATCHED_STEP], keep_logits))
        peak = memory.stop()
        losses += [self.step(engine, micro_steps, keep_logits) for micro_steps in data[WATCHED_STEP + 1:]]
        by_rank = self.of_all_ranks(([float(loss) for loss in losses], peak))
        return {"losses": [statistics.fmean(step) for step in zip(*(each for each, _ in by_rank))],
                "peak_bytes": max(each for _, each in by_rank), "collectives": counted.sums}
