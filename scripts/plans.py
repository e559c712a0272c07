"""What `dstune-mpi --plan --explain` says of one configuration."""
import json
import subprocess
import sys
import tempfile


def plan(program, ds_config, dstune, ranks):
    """The finished process of the dry run of `ds_config` as it is, whose stdout is the outcome as JSON. dstune: the
    section "dstune" but for the backend and, unless it has one, the limit; ranks: of the experiment."""
    stage = ds_config["zero_optimization"]["stage"]
    name = f"z{stage}_gas{ds_config['gradient_accumulation_steps']}_tmbspg{ds_config['train_micro_batch_size_per_gpu']}"
    config = dict(ds_config, autotuning={"enabled": True},
                  dstune={"memory_limit": "1TiB", **dstune, "tuner": "fast", "backend": "sim"})
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(config, file)
        file.flush()
        return subprocess.run([program, "--plan", "--world-size", str(ranks), "--format", "json", "--explain", name,
                               file.name], capture_output=True, text=True)


def planned(program, ds_config, dstune, ranks):
    """The outcome of plan(). What the program refuses, or what does not fit, ends this one."""
    answer = plan(program, ds_config, dstune, ranks)
    if answer.returncode != 0:
        sys.exit(f"{json.dumps(ds_config)}, {json.dumps(dstune)}: {answer.stderr}")
    outcome = json.loads(answer.stdout)
    if outcome["status"] != "measured":
        sys.exit(f"{json.dumps(ds_config)}, {json.dumps(dstune)}: {outcome}")
    return outcome
