"""What `dstune-mpi --plan --explain` says of one configuration."""
import json
import subprocess
import sys
import tempfile


def planned(program, ds_config, dstune, ranks):
    """The outcome of the dry run of `ds_config` as it is, as JSON. dstune: the section "dstune" without backend and
    limit; ranks: of the experiment. What the program refuses ends this one."""
    stage = ds_config["zero_optimization"]["stage"]
    name = f"z{stage}_gas{ds_config['gradient_accumulation_steps']}_tmbspg{ds_config['train_micro_batch_size_per_gpu']}"
    config = dict(ds_config, autotuning={"enabled": True},
                  dstune={**dstune, "tuner": "fast", "backend": "sim", "memory_limit": "1TiB"})
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(config, file)
        file.flush()
        answer = subprocess.run([program, "--plan", "--world-size", str(ranks), "--format", "json", "--explain", name,
                                 file.name], capture_output=True, text=True)
    if answer.returncode != 0:
        sys.exit(f"{json.dumps(config)}: {answer.stderr}")
    outcome = json.loads(answer.stdout)
    if outcome["status"] != "measured":
        sys.exit(f"{json.dumps(config)}: {outcome}")
    return outcome
