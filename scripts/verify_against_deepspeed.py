#!/usr/bin/env python3
r"""Holds tuned results against the real DeepSpeed on this machine: a verdict with its noise.

    scripts/tune.sh CONFIG.json
    scripts/verify_against_deepspeed.py CONFIG.json [--configs 12] [--ranks 2]

Takes the results of CONFIG.json, chooses configurations that matter (the pick, the best of each stage, close ones, a
few far ones, over all batches), runs each in DeepSpeed with transformers' model on synthetic tokens, twice, in turns
with a repeated reference, and judges: the pick, the order, the times, peak memory beside the ledger's and the limit,
what is sent (calls, elements, types), losses and gradients' norms beside stage 0's, and whether losses fall. Needs
torch, transformers and deepspeed in the Python that runs it, and peft for LoRA; docs/fidelity.md says how to read what
comes out.

Exit codes: 0 the verdict is good, 1 something is wrong, 2 wrong input, no results, or DeepSpeed did not run, 3 nothing
is wrong, but the run cannot tell all of it: the report says what would be needed.
"""
import argparse
import dataclasses
import datetime
import json
import pathlib
import re
import sys

from calibration.processors import processor
from calibration.terminal import shown
from verify import choice, findings, judge, launch, models, plot, report, schedule, share, tuned

EXIT_CODES = {findings.GOOD: 0, findings.WRONG: 1, findings.CANNOT_TELL: 3}
FIRST_WITHOUT_ZERO_INIT = (0, 19, 4)  # from here on weights are kept alike without it
OURS_ALONE = ("host_overhead_s", "memory_limit_bytes", "experiment_timeout_s", "allocator", "warmup_steps",
              "measure_steps", "least_warmup_s", "least_measure_s",
              "product_workspace")  # settings that say how we measure, and not what DeepSpeed trains
CHECK_SHARE_OF_INITIALISATION = 1  # a check's profiler and engine, in visits


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=pathlib.Path, metavar="CONFIG.json")
    parser.add_argument("--configs", type=int, default=12, help="how many configurations at most")
    parser.add_argument("--ranks", type=int, help="default: those that the results are of")
    parser.add_argument("--steps", type=int, default=5, help="timed optimizer steps of a visit")
    parser.add_argument("--passes", type=int, default=2, help="visits of each configuration that are timed")
    parser.add_argument("--loss-steps", type=int, default=20)
    parser.add_argument("--minutes", type=float, help="leaves out the far ones where all would take longer")
    parser.add_argument("--reference-every", type=int, default=4, help="visits between two of the reference")
    parser.add_argument("--model-class", metavar="MODULE:CLASS",
                        help="of the trainer, in place of AutoModel's; found from PYTHONPATH")
    parser.add_argument("--results", type=pathlib.Path,
                        help="default: the results_dir of CONFIG.json, else the last run's folder")
    parser.add_argument("--runs", type=pathlib.Path, metavar="FOLDER",
                        help="judges those of an earlier verdict's folder beside the present results, and runs none")
    parser.add_argument("--share", type=pathlib.Path, metavar="FILE",
                        help="writes versions, machine, profile, verdict, runs and journal into one JSON file that "
                             "can be sent: without names of hosts and users, addresses and paths")
    parser.add_argument("--output", type=pathlib.Path, help="default: RESULTS/verify")
    options = parser.parse_args(arguments)
    for name, least in (("configs", 2), ("steps", 1), ("passes", 2), ("loss_steps", 8), ("reference_every", 1)):
        if getattr(options, name) < least:
            parser.error(f"--{name.replace('_', '-')} must be at least {least}")
    return options


def baselines_of(chosen, configurations):
    """({batch: name of its stage 0}, those of them that are not chosen themselves)."""
    names, extra = {}, {}
    for each in chosen:
        if each.batch in names:
            continue
        candidates = [other for other in (*chosen, *configurations) if other.batch == each.batch and other.stage == 0]
        if candidates:
            names[each.batch] = candidates[0].name
            if candidates[0] not in chosen:
                extra[candidates[0].name] = described(candidates[0])
        else:
            names[each.batch] = f"stage 0 of {each.name}"
            config = dict(each.ds_config, zero_optimization={"stage": 0})
            extra[names[each.batch]] = dict(described(each), ds_config=config)
    return names, extra


def described(configuration):
    return {"ds_config": configuration.ds_config, "settings": configuration.settings}


def trained_by(settings):
    """What of an experiment's settings a run in DeepSpeed depends on. A model's name is a label."""
    kept = {key: value for key, value in settings.items() if key not in OURS_ALONE}
    return dict(kept, model={key: value for key, value in settings["model"].items() if key != "name"})


def plan_of(options, config, results, chosen, extra):
    model = models.config_json(config, options.config)
    models.check_sizes(model, chosen[0].settings["model"])
    visit_steps = options.steps + 2
    return {
        "ranks": chosen[0].ranks, "model": model, "parameters": results.parameters, "seed": 1, "steps": options.steps,
        "loss_steps": options.loss_steps, "order": [each.name for each in chosen], "reference": results.pick,
        "baselines": list(extra), "model_class": options.model_class, "passes": options.passes,
        "reference_every": options.reference_every,
        "expected_s": {each.name: each.step_s for each in chosen},
        "check_share": CHECK_SHARE_OF_INITIALISATION + options.loss_steps / visit_steps,
        "budget_s": None if options.minutes is None else options.minutes * 60,
        "configurations": {**{each.name: described(each) for each in chosen}, **extra}}


def release_of(version):
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def about_of(options, results, chosen, events, metric):
    """What the figures were made with, and what must be read beside them."""
    versions = next(event for event in events if event["event"] == "about")
    dropped = [] if options.runs else events[-1]["dropped"]
    advice = [note for note in results.notes if "calibrate" in note]
    notes = [f"Ours: {note}" for note in results.notes if note not in advice and
             any(word in note for word in ("host overhead", "precision", "CPU backend"))]
    if any("host overhead: preset" in note for note in results.notes):
        advice.append("calibrate this machine's host overhead (scripts/tune.sh --calibrate), and tune again.")
    if dropped:
        notes.append(f"Left out, for --minutes {options.minutes:g}: {len(dropped)}, the far ones first.")
    if any(each.is_under_zero_init for each in chosen) and release_of(versions["deepspeed"]) < FIRST_WITHOUT_ZERO_INIT:
        notes.append(f"Ours is under zero.Init, the runs are not: in DeepSpeed {versions['deepspeed']} stage 3 then "
                     "keeps more, so their peaks may be higher (dstune.zero_init).")
    notes += [f"Not compared, since it cannot be run here: {count} with {reason}."
              for reason, count in results.left_out.items()]
    line = (f"{options.config}: {len(chosen) - len(dropped)} of {len(results.configurations)} measured configurations, "
            f"{datetime.date.today()}, DeepSpeed {versions['deepspeed']}, torch {versions['torch']}, transformers "
            f"{versions['transformers']}, {versions['device']}, {versions['backend']}, {versions['ranks']} ranks of "
            f"{versions['threads_per_rank']} thread{'s' * (versions['threads_per_rank'] != 1)} on {processor()}.")
    return {"line": line, "notes": notes, "versions": versions, "metric": metric, "loss_steps": options.loss_steps,
            "host_overhead_s": chosen[0].settings.get("host_overhead_s"), "dropped": dropped, "advice": advice}


def earlier(options, config, results):
    """What (chosen, baselines, events, failed) of the runs in a folder can be compared with these results."""
    plan, events = launch.read_runs(options.runs)
    if plan["model"] != models.config_json(config, options.config):
        raise tuned.InputFault(f"the runs in {options.runs} are of another model")
    timed = {event["name"] for event in events if event["event"] == "visit" and event["kind"] == schedule.TIME}
    chosen = choice.distinct(
        [each for each in results.configurations if each.name in timed and each.ranks == plan["ranks"] and
         plan["configurations"][each.name]["ds_config"] == each.ds_config and
         trained_by(plan["configurations"][each.name]["settings"]) == trained_by(each.settings)])
    if results.pick not in [each.name for each in chosen]:
        raise tuned.InputFault(f"{options.runs} has no run of the optimum {results.pick} as it was tuned: run it anew, "
                               "without --runs")
    options.loss_steps = plan["loss_steps"]
    checked = {event["name"] for event in events if event["event"] == "visit" and event["kind"] == schedule.CHECK}
    baselines, _ = baselines_of(chosen, [each for each in results.configurations if each.name in checked])
    tried = {each.name for each in results.configurations}
    return chosen, baselines, events, {name: f"see {options.runs}" for name in plan["failed"] if name in tried}


def run(options, config, results, output, start):
    """(chosen, baselines, events, failed) of new runs, whose records go to the output folder."""
    chosen = choice.choose(results.configurations, results.pick, options.configs, tuned.metric_of(config))
    if any("lora" in each.settings["model"] for each in chosen) and not tuned.is_installed("peft"):
        raise tuned.InputFault("dstune.lora needs peft (pip install peft)")
    baselines, extra = baselines_of(chosen, results.configurations)
    plan = plan_of(options, config, results, chosen, extra)
    for old in output.glob("verdict.*"):  # of the runs whose records are replaced now
        old.unlink()
    return chosen, baselines, *launch.run(plan, output, start)


def named_paths(options, config):
    """Paths that the user gave, which may look like anything."""
    model = config.get("dstune", {}).get("model")
    given = [options.config, options.config.name, options.results, options.runs, options.output, options.share,
             model if isinstance(model, str) and models.preset(model) is None else None]
    return [each for each in given if each]


def check_share(path):
    """Before anything runs; OSError where it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(f"--share {path} is a folder")


def give(text, verdict, options, config, folders):
    """Writes the verdict; folders: that of the results, of the runs, and of the output."""
    folder, runs, output = folders
    (output / "verdict.md").write_text(text, encoding="utf-8")
    (output / "verdict.json").write_text(json.dumps(verdict, indent=1) + "\n", encoding="utf-8")
    if options.share:
        share.write(options.share, folder, runs, verdict, named_paths(options, config))


def verdict_of_failed_pick(fault, results, output):
    """(Markdown, JSON) where there are no runs to tell more."""
    found = findings.Finding("runs", findings.WRONG, str(fault))
    versions = next((event for event in launch.read_events(output / "events.jsonl") if event["event"] == "about"), {})
    pick = next(each for each in results.configurations if each.name == results.pick)
    about = {"versions": versions, "host_overhead_s": pick.settings.get("host_overhead_s")}
    return (f"{fault}\n\nVerdict: {findings.WRONG}.\n",
            {"about": about, "verdict": findings.WRONG, "findings": [dataclasses.asdict(found)],
             "configurations": []})


def verify(options, start=launch.torchrun):
    """(Markdown, the verdict); files go to the output folder."""
    config = tuned.read_configuration(options.config)
    folder = options.results or tuned.results_folder(config)
    results, metric = tuned.read_results(folder, options.ranks), tuned.metric_of(config)
    output = options.output or folder / "verify"
    output.mkdir(parents=True, exist_ok=True)
    folders = folder, options.runs or output, output
    if options.share:
        check_share(options.share)
    try:
        chosen, baselines, events, failed = (
            earlier(options, config, results) if options.runs else run(options, config, results, output, start))
    except launch.PickFails as fault:
        text, verdict = verdict_of_failed_pick(fault, results, output)
        give(text, verdict, options, config, folders)
        return text, findings.WRONG
    rows, pace, checks = judge.rows_of(chosen, events, metric)
    judge.give_baselines(rows, baselines, checks)
    result = judge.judge(rows, pace, results.pick, failed)
    found = findings.findings_of(rows, result, {*baselines.values()} - {each.name for each in chosen})
    about = about_of(options, results, chosen, events, metric)
    text = report.markdown(rows, result, about, found)
    give(text, report.as_json(rows, result, about, found), options, config, folders)
    drawn = f", {plot.write(output, rows, options.config.name).name}" if rows else ""
    print(shown(f"also in {output}: verdict.md, verdict.json{drawn}"), file=sys.stderr)
    return text, findings.verdict_of(found)


def main():
    options = parse(sys.argv[1:])
    missing = [name for name in ("torch", "transformers", "deepspeed") if not tuned.is_installed(name)]
    try:
        if missing and not options.runs:
            raise tuned.InputFault(f"needs {', '.join(missing)} (pip install torch transformers deepspeed)")
        text, verdict = verify(options)
    except tuned.InputFault as fault:
        print(shown(f"verify_against_deepspeed.py: {fault}\nTuned results come from: scripts/tune.sh {options.config}"),
              file=sys.stderr)
        return 2
    except (RuntimeError, OSError) as fault:
        print(shown(f"verify_against_deepspeed.py: {fault}"), file=sys.stderr)
        return 2
    print(shown(text), end="")
    return EXIT_CODES[verdict]


if __name__ == "__main__":
    sys.exit(main())
