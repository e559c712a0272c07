"""Tries the largest micro-batch that is predicted to fit in each stage, and one sequence more, which the limit of the
prediction does not hold back: the device says whether it fits.

usage: predicted_batches.py FOLDER BACKEND MPIRUN PROGRAM CONFIG.json

CONFIG.json names no micro-batch. Prints a line of JSON for each stage. Exit code 2: a program failed.
"""
import json
import pathlib
import subprocess
import sys

NO_LIMIT = "1TiB"  # more than any device has


def run(command):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          universal_newlines=True, check=False)
    if done.returncode not in (0, 3):  # 3: nothing fits, which is an answer
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}")
    return done.stdout


def predictions(plan):
    """stage -> the largest micro-batch that is predicted to fit; stages where none does are left out."""
    return {each["stage"]: each["max_micro_batch"] for each in plan["stages"] if each["feasible"]}


def config_for(config, stage, predicted):
    """That measures these two micro-batches alone."""
    tried = json.loads(json.dumps(config))
    tried.pop("train_batch_size", None)
    tried["train_micro_batch_size_per_gpu"] = [predicted, predicted + 1]
    tried["zero_optimization"]["stage"] = [stage]
    tried["dstune"].update(tuner="fast", memory_limit=NO_LIMIT, preflight=False, learnt=False)
    return tried


def statuses(journal):
    """micro-batch -> how its experiment ended, of a journal's whole lines."""
    records = [json.loads(line) for line in journal.split("\n")[:-1]]
    return {record["experiment"]["ds_config"]["train_micro_batch_size_per_gpu"]: record["outcome"]["status"]
            for record in records if record["type"] == "finished" and not record["experiment"].get("measures_machine")}


def main():
    folder, backend, mpirun, program = pathlib.Path(sys.argv[1]), *sys.argv[2:5]
    config = json.loads(pathlib.Path(sys.argv[5]).read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        plan = json.loads(run([program, "--plan", "--world-size", "1", "--backend", backend, "--format", "json",
                               sys.argv[5]]))
        for stage, predicted in predictions(plan).items():
            path, results = folder / f"stage_{stage}.json", folder / f"stage_{stage}"
            path.write_text(json.dumps(config_for(config, stage, predicted)), encoding="utf-8")
            run([mpirun, "-np", "2", program, "--backend", backend, path, "--results-dir", results, "--overwrite"])
            found = statuses((results / "journal.jsonl").read_text(encoding="utf-8"))
            print(json.dumps({"stage": stage, "predicted": predicted, "of_predicted": found.get(predicted, "not tried"),
                              "of_one_more": found.get(predicted + 1, "not tried")}), flush=True)
    except (OSError, RuntimeError, ValueError) as fault:
        print(f"predicted_batches.py: {fault}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
