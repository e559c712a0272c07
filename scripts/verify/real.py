"""One rank of the real DeepSpeed."""
import gc
import importlib.metadata
import importlib.util
import math
import os
import statistics
import subprocess
import time

from verify import batches, fine_tuning, lengths, models, watch
from verify.schedule import CHECK

WARM_UP = 2      # steps of a visit before those that are timed
WATCHED_STEP = 2  # of LOSS_CYCLE, from 0: the first one is like all later ones. Stage 3 records its first micro-step,
#                   after which its persistent parameters are gathered with all others: that is a peak of its own.
LOSS_CYCLE = 4   # after so many steps of a check its data come again, so that it shows whether losses fall


class Bench:
    def __init__(self, plan):
        self.torch, self.deepspeed, self.transformers = (
            importlib.import_module(name) for name in ("torch", "deepspeed", "transformers"))
        from deepspeed.accelerator import get_accelerator
        self.plan, self.accelerator = plan, get_accelerator()
        self.transformers.logging.set_verbosity_error()
        self.accelerator.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        self.memory = self.memory_watch()
        self.deepspeed.init_distributed(verbose=False)
        self.rank, self.ranks = self.torch.distributed.get_rank(), self.torch.distributed.get_world_size()
        self.device = self.accelerator.current_device_name()
        # Stage 3 replaces it for the whole process, in which the other stages run as well.
        self.linear = self.torch.nn.functional.linear

    def about(self):
        return dict(**self.libraries(), torch=self.torch.__version__, deepspeed=self.deepspeed.__version__,
                    transformers=self.transformers.__version__, ranks=self.ranks,
                    device=self.accelerator.device_name(), backend=self.torch.distributed.get_backend(),
                    threads_per_rank=self.torch.get_num_threads())

    def libraries(self):
        """Versions of what some configurations need beside."""
        return {name: importlib.metadata.version(name) for name in ("peft", "trl", "liger_kernel", "accelerate")
                if importlib.util.find_spec(name)}

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
        data = self.data_of(configuration, self.numbers_of(kind, configuration))
        memory = self.memory if kind == CHECK else None
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
        fine_tuning.undo(self.torch)
        self.accelerator.empty_cache()

    def memory_watch(self):
        """None where there is no compiler: peaks stay unknown."""
        if self.accelerator.device_name() != "cpu":
            return watch.DeviceMemory(self.accelerator)
        try:
            return watch.CountedMemory(self.torch)
        except (OSError, subprocess.CalledProcessError):
            return None

    def engine(self, configuration):
        self.torch.manual_seed(self.plan["seed"])
        settings = configuration["settings"]
        spec = settings["model"]
        model = models.make(self.transformers, models.with_dropout_of(self.plan["model"], spec),
                            spec.get("task", "causal_lm"), settings.get("attention"), self.plan.get("model_class"))
        model = fine_tuning.prepare(model, configuration, self.torch, self.deepspeed)
        self.check_parameters(model)
        config = {key: value for key, value in configuration["ds_config"].items() if key != "dstune"}
        trained, optimizer = [each for each in model.parameters() if each.requires_grad], None
        if "optimizer" not in config:
            optimizer = models.trainers_optimizer(self.transformers, self.torch, model)
        engine, *_ = self.deepspeed.initialize(model=model, optimizer=optimizer, config=config,
                                               model_parameters=None if optimizer else trained)
        return engine

    def check_parameters(self, model):
        count, tuned = sum(each.numel() for each in model.parameters()), self.plan["parameters"]
        if tuned is not None and count != tuned:
            raise ValueError(f"the model has {count} parameters, the tuned one {tuned}")

    def numbers_of(self, kind, configuration):
        """Of the steps' data; where lengths vary those below zero are the longest, as in warm-up and where memory is
        watched."""
        if kind == CHECK:
            cycle = [-1 if step == WATCHED_STEP else step for step in range(LOSS_CYCLE)]
            return [cycle[step % LOSS_CYCLE] for step in range(self.plan["loss_steps"])]
        least = lengths.LEAST_STEPS if "lengths" in configuration["settings"] else 1
        return list(range(-WARM_UP, max(self.plan["steps"], least)))

    def data_of(self, configuration, numbers):
        """Micro-steps by step, made before anything is timed."""
        accumulation = configuration["ds_config"].get("gradient_accumulation_steps", 1)
        config = self.transformers.AutoConfig.for_model(**self.plan["model"])
        made = {step: [self.micro_step(configuration, config, step, micro_step) for micro_step in range(accumulation)]
                for step in dict.fromkeys(numbers)}
        return [made[step] for step in numbers]

    def micro_step(self, configuration, config, step, micro_step):
        settings, ds_config = configuration["settings"], configuration["ds_config"]
        spec, rows = settings["model"], ds_config["train_micro_batch_size_per_gpu"]
        task, width, varying = spec.get("task", "causal_lm"), settings["sequence_length"], settings.get("lengths")
        if varying and step < 0:
            tokens_of_rows, width = lengths.longest(varying, rows)
        elif varying:
            accumulation = ds_config.get("gradient_accumulation_steps", 1)
            first = ((step * accumulation + micro_step) * self.ranks + self.rank) * rows
            tokens_of_rows, width = lengths.drawn(varying, settings["seed"], first, rows)
        seed = batches.seed_of_micro_step(self.plan["seed"], self.rank, self.ranks, step + WARM_UP, micro_step)
        tokens, labels = batches.micro_step(config, task, (rows, width, spec.get("target_length", 0)), seed)
        if not varying:
            return self.tensors({"input_ids": tokens, "labels": labels})
        return self.tensors(lengths.padded(tokens, labels, tokens_of_rows, getattr(config, "pad_token_id", None)))

    def tensors(self, rows):
        return {name: self.torch.tensor(each, device=self.device) for name, each in rows.items()}

    def step(self, engine, micro_steps, settings, norms=None):
        """The mean loss of the micro-steps on this rank, still on the device; norms gets that of the gradients."""
        losses, output, whole = [], None, None
        options = fine_tuning.options_of_forward(settings.get("loss"))
        for inputs in micro_steps:
            output = engine(**inputs, **options)
            loss = output.loss
            if not settings.get("keep_logits", False):
                output = None
            engine.backward(loss)
            if norms is not None and engine.is_gradient_accumulation_boundary():
                whole = self.norm_of_whole_gradients(engine)
            engine.step()
            losses.append(loss.detach())
            loss = None
        if norms is not None:
            norm = engine.get_global_grad_norm()
            norms.append(usable(whole if norm is None else float(norm)))
        return self.torch.stack(losses).float().mean()

    def norm_of_whole_gradients(self, engine):
        """Before they are clipped, where each rank has all of them (stage 0 in fp32, of which DeepSpeed tells none)."""
        squares = [float(each.grad.float().norm()) ** 2 for each in engine.module.parameters() if each.grad is not None]
        return math.sqrt(sum(squares)) if squares and engine.zero_optimization_stage() == 0 else None

    def times(self, engine, data, configuration):
        """Seconds of a step of the slowest rank: the median of those timed, or their mean where lengths vary."""
        settings, seconds = configuration["settings"], []
        for micro_steps in data:
            self.accelerator.synchronize()
            begin = time.perf_counter()
            self.step(engine, micro_steps, settings)
            self.accelerator.synchronize()
            seconds.append(time.perf_counter() - begin)
        slowest = [max(each) for each in zip(*self.of_all_ranks(seconds[WARM_UP:]))]
        return (statistics.fmean if "lengths" in settings else statistics.median)(slowest)

    def check(self, engine, data, configuration, memory):
        settings, losses, norms, peaks, first, sent = configuration["settings"], [], [], [], 0, {}
        for step, micro_steps in enumerate(data):
            if step % LOSS_CYCLE == WATCHED_STEP:
                with watch.CollectiveSums(self.deepspeed.comm.comm.cdb) as counted:
                    loss, peak = self.watched_step(engine, micro_steps, settings, memory)
                peaks.append(peak)
                sent = sent or counted.sums
            elif step == 0 and engine.zero_optimization_stage() == 3:
                loss, first = self.watched_step(engine, micro_steps, settings, memory)
            else:
                loss = self.step(engine, micro_steps, settings, norms if step > WATCHED_STEP else None)
            losses.append(loss)
        own = highest(first, peaks) if memory else None
        losses_by_rank, highests = zip(*self.of_all_ranks(([float(loss) for loss in losses], own)))
        return {"losses": [statistics.fmean(step) for step in zip(*losses_by_rank)], "loss_cycle": LOSS_CYCLE,
                "norms": norms, "peak_bytes": None if None in highests else max(highests), "collectives": sent}

    def watched_step(self, engine, micro_steps, settings, memory):
        """(the loss, what it needs of memory at most, if that is watched)"""
        gc.collect()  # peaks are of steps before which it has run (docs/memory.md)
        if memory is None:
            return self.step(engine, micro_steps, settings), None
        memory.mark()
        return self.step(engine, micro_steps, settings), memory.peak()


def highest(first, peaks):
    """Of the first step, 0 where it is like the others, and of those watched later the least, since a thread of gloo's
    may free a message late."""
    return max(first, min(peaks)) if peaks else None


def usable(norm):
    """None for what DeepSpeed says of gradients that overflowed."""
    return norm if norm is not None and math.isfinite(norm) and norm >= 0 else None
