"""Whether a tuning should measure this machine first: DeepSpeed is here, and no profile with all that is measured.

usage: needed.py CONFIG RESULTS_DIR BACKEND RANKS WORKERS THREADS GPU; "" for what is not given, GPU: the name of those
that the program can train on, THREADS: of a rank that trains on a CPU. Exit code 0: it should, and stdout has on what
(cpu, cuda), with how many ranks of how many threads, what of the profile is there now (none, earlier: of an earlier
version, broken: no profile at all), and where it will be. 1: it should not.
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


def backend_of(settings, backend, gpu):
    """Whose profile a run looks for: "cpu" or "cuda"; None for none, as the file may name another backend, or a
    profile."""
    if settings.get("host_overhead", "default") != "default":
        return None
    backend = backend or settings.get("backend", "auto")
    if backend == "auto":
        return "cuda" if gpu else "cpu"
    return backend if backend == "cpu" or (backend == "cuda" and gpu) else None


def is_whole(profile, backend):
    """Whether it has all that is measured: of products, attention and operations a CPU's alone."""
    if "micro_step_us" not in profile:
        return False
    if backend == "cuda":
        return True
    of_types = profile.get("products", {}).values()
    return "operations" in profile and all("result_ns_per_kib" in entry for entry in of_types)


def state_of(path, backend):
    """Of a profile in the cache. Earlier versions measured less of PyTorch's own time, and theirs is still read."""
    try:
        profile = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return "none"
    except (OSError, ValueError):
        return "broken"
    if not isinstance(profile, dict):
        return "broken"
    return "whole" if is_whole(profile, backend) else "earlier"


def missing_profile(config, results_dir, backend, ranks, workers, threads, gpu, environment):
    """(backend, ranks of an experiment and threads of each, this machine's profile's state, where it would be); None
    if it is there or of no use."""
    settings = commented_json.read(config).get("dstune", {})
    ranks = int(ranks or settings.get("ranks_per_experiment") or workers)
    backend = backend_of(settings, backend, gpu)
    if backend is None or not (1 if backend == "cuda" else 2) <= ranks <= int(workers):
        return None
    if any(importlib.util.find_spec(name) is None for name in NEEDED):
        return None
    of_run = profiles.results_path(config, results_dir)
    if of_run is not None and of_run.exists():
        return None
    versions = {name: importlib.metadata.version(name) for name in NEEDED}
    device, threads = (gpu, 1) if backend == "cuda" else (processors.processor(), threads)
    path = profiles.cache_path(dict(backend=backend, processor=device, ranks=ranks, threads=threads, **versions),
                               environment)
    state = state_of(path, backend)
    return None if state == "whole" else (backend, ranks, threads, state, path)


def main(config, results_dir, backend, ranks, workers, threads, gpu):
    try:
        missing = missing_profile(config, results_dir, backend, ranks, workers, int(threads), gpu, os.environ)
    except (OSError, ValueError, AttributeError, TypeError, ImportError):
        missing = None  # what is wrong with the configuration is the program's to say
    if missing is None:
        sys.exit(1)
    print(*missing)


if __name__ == "__main__":
    main(*sys.argv[1:])
