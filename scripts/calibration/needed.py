"""Whether a tuning should measure this machine first: DeepSpeed is here, and no profile with all that is measured.

usage: needed.py CONFIG RESULTS_DIR BACKEND RANKS WORKERS THREADS; "" for what is not given. Exit code 0: it should,
and stdout has with how many ranks, what of the profile is there now (none, earlier: of an earlier version, broken: no
profile at all), and where it will be. 1: it should not.
"""
import importlib.metadata
import importlib.util
import json
import os
import sys

import commented_json
import processors
import profiles

NEEDED = ("torch", "deepspeed", "transformers")


def reads_a_profile(settings, backend):
    """Whether a run on the CPU looks for a profile: the file may name another backend, or a profile."""
    on_cpu = (backend or settings.get("backend", "auto")) in ("auto", "cpu")
    return on_cpu and settings.get("host_overhead", "default") == "default"


def state_of(path):
    """Of a profile in the cache. Earlier versions measured less of PyTorch's own time, and theirs is still read."""
    try:
        profile = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return "none"
    except (OSError, ValueError):
        return "broken"
    if not isinstance(profile, dict):
        return "broken"
    of_types = profile.get("products", {}).values()
    is_whole = "operations" in profile and all("result_ns_per_kib" in entry for entry in of_types)
    return "whole" if is_whole else "earlier"


def missing_profile(config, results_dir, backend, ranks, workers, threads, environment):
    """The ranks of an experiment, and of this machine's profile its state and where it would be; None if it is there
    or of no use."""
    settings = commented_json.read(config).get("dstune", {})
    ranks = int(ranks or settings.get("ranks_per_experiment") or workers)
    if not 2 <= ranks <= int(workers) or not reads_a_profile(settings, backend):
        return None
    if any(importlib.util.find_spec(name) is None for name in NEEDED):
        return None
    of_run = profiles.results_path(config, results_dir)
    if of_run is not None and of_run.exists():
        return None
    versions = {name: importlib.metadata.version(name) for name in NEEDED}
    path = profiles.cache_path(dict(backend="cpu", processor=processors.processor(), ranks=ranks, threads=threads,
                                    **versions), environment)
    state = state_of(path)
    return None if state == "whole" else (ranks, state, path)


def main(config, results_dir, backend, ranks, workers, threads):
    try:
        missing = missing_profile(config, results_dir, backend, ranks, workers, int(threads), os.environ)
    except (OSError, ValueError, AttributeError, TypeError, ImportError):
        missing = None  # what is wrong with the configuration is the program's to say
    if missing is None:
        sys.exit(1)
    print(*missing)


if __name__ == "__main__":
    main(*sys.argv[1:])
