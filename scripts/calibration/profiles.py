"""Where profiles are kept: in the results directory, and in the user's cache by machine and versions."""
import json
import os
import pathlib
import re
import sys
import tempfile

import commented_json
import terminal


def key_of(backend, device):
    """The folder of a machine's profiles in the cache: "cpu-intel-r-xeon-r-processor"."""
    return f"{backend}-" + re.sub(r"[^a-z0-9]+", "-", device.lower())


def public(version):
    """Without what a build adds: "2.15.0+cu132" is 2.15.0."""
    return version.partition("+")[0]


def cache_path(measured_on, environment):
    """Of a profile measured on this machine with these versions and ranks."""
    base = environment.get("XDG_CACHE_HOME") or os.path.join(environment.get("HOME", "~"), ".cache")
    threads = measured_on.get("threads", 1)
    name = (f"{measured_on['ranks']}-ranks-{f'{threads}-threads-' if threads > 1 else ''}"
            f"deepspeed-{public(measured_on['deepspeed'])}-torch-{public(measured_on['torch'])}.json")
    key = key_of(measured_on["backend"], measured_on["processor"])
    return pathlib.Path(base).expanduser() / "dstune-mpi" / "profiles" / key / name


def results_path(config, results_dir):
    """host_overhead.json in the results directory; None if nobody asked for one and none is there.

    config: path of CONFIG.json; results_dir: of --results-dir; "" if not given.
    """
    folder = results_dir or "autotuning_results"
    # A trainer's YAML has no section "autotuning".
    if config and not results_dir and not config.endswith((".yaml", ".yml")):
        folder = commented_json.read(config).get("autotuning", {}).get("results_dir", folder)
    path = pathlib.Path(folder) / "host_overhead.json"
    return path if config or results_dir or path.parent.is_dir() else None


def write(path, text):
    """All of it or nothing: a reader never sees half a profile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def main(config, results_dir):
    """Prints results_path(), or nothing."""
    try:
        print(results_path(config, results_dir) or "")
    except (OSError, ValueError, AttributeError, TypeError) as fault:
        print(terminal.shown(f"error: {config} is not a configuration: {fault}"), file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main(*sys.argv[1:])
