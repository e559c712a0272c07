"""The groups smoke, tests and sanitizers: the program itself, and the tests that need a GPU."""
import glob
import re
import shutil

from checks import Check, write_config
from rows import FAILED, NOT_RUN, PASSED, Row

CASES = "EquivalenceReference.*:*OneParameterGroup/*Accumulation1*"  # each stage on 1 to 4 ranks
SAMPLED = {"gradient_types": 5, "optimizer_equivalence": 5}  # of hundreds of alike cases every n-th
STAND_IN = 'shift 2; "$@"; code=$?; echo "========= ERROR SUMMARY: 0 errors, pretended"; exit $code'


def smoke(place, work, _):
    def list_backends(ended):
        place.listing = ended.text
        found = f"{place.backend}: available" in ended.text
        row = Row("list-backends", PASSED if found and ended.code == 0 else FAILED,
                  f"{len(place.gpus())} GPUs" if found else f"no \"{place.backend}: available\" in what it lists")
        return [row]

    def tune(ended):
        optimum = work / "smoke" / "ds_config_optimal.json"
        if ended.code != 0 or not optimum.is_file():
            return [Row("tune", FAILED, ended.why_failed() if ended.code else "it wrote no optimum")]
        best = re.findall(r"^best: (\w+)", ended.text, re.MULTILINE)
        return [Row("tune", PASSED, f"optimum {best[-1]}" if best else "")]

    yield Check("list-backends", [place.program, "--list-backends"], list_backends, 60)
    yield Check("tune", tuning(place, work, 2, work / "smoke"), tune)


def tuning(place, work, ranks, results):
    """The command that tunes a tiny model on the backend that is checked."""
    config = place.root / "examples" / "tiny.json"
    if place.is_pretended:
        config = write_config(work / "tiny.json", memory_limit="256MiB", host_overhead="none")
    return place.on_ranks(ranks, place.program, "--backend", place.backend, config, "--results-dir", results,
                          "--overwrite")


def tests(place, _, options):
    if not place.tests:
        reason = "there are none: build with CUDA, or bundle --with-tests"
        if place.is_pretended:
            reason = "there is no CUDA on the host here: it comes with scripts/build.sh default"
            yield Check("tests", reason=reason)
        else:
            yield Check("tests", ["false"], lambda _: [Row("tests", FAILED, reason)])
    for ranks, program, chosen in place.tests:
        command = [program, *([f"--gtest_filter={chosen}"] if chosen else [])]
        environment = {} if options.long or chosen else sample(program.name)
        yield Check(program.name, command if ranks == 1 else place.on_ranks(ranks, *command),
                    judge_of_test(program.name), environment=environment, limit_s=600 if options.long else 180)


def sample(name):
    """The part of a large suite that a short check runs, by GoogleTest's variables."""
    if "equivalence_test" in name and "optimizer" not in name:
        return {"GTEST_FILTER": CASES}
    for suite, part in SAMPLED.items():
        if suite in name:
            return {"GTEST_TOTAL_SHARDS": str(part), "GTEST_SHARD_INDEX": "0"}
    return {}


def judge_of_test(name):
    def count(what, text):
        found = re.search(rf"^\[  {what}\] (\d+) test", text, re.MULTILINE)
        return int(found.group(1)) if found else 0

    def judge(ended):
        passed, skipped = count("PASSED  ", ended.text), count("SKIPPED ", ended.text)
        if ended.code == 77:
            said = [line for line in ended.text.splitlines() if line.startswith("skipped: ")]
            return [Row(name, NOT_RUN, said[-1] if said else "it skips itself")]
        if ended.code != 0:
            return [Row(name, FAILED, ended.why_failed())]
        if passed == 0:
            return [Row(name, FAILED, f"no test ran, {skipped} skipped")]
        return [Row(name, PASSED, f"{passed} passed, {skipped} skipped")]
    return judge


def sanitizers(place, work, _):
    """One worker's tuning of a tiny model; rank 0 touches no GPU. mpirun's exit code says little of a rank's: the
    summary decides."""
    tool_path = shutil.which("compute-sanitizer") or next(
        iter(sorted(glob.glob("/usr/local/cuda*/bin/compute-sanitizer"), reverse=True)), None)
    if not tool_path and not place.is_pretended:
        yield Check("compute-sanitizer", reason="it is not installed")
        return
    wrapper = ["sh", "-c", STAND_IN, "pretended"] if place.is_pretended else [tool_path]
    for tool in ("memcheck", "racecheck", "synccheck"):
        command = tuning(place, work, 1, work / tool)
        worker = [*command[:3], *wrapper, "--tool", tool, *command[3:]][1:]
        yield Check(tool, [*command, ":", *worker], judge_of_sanitizer(tool))


def judge_of_sanitizer(tool):
    def judge(ended):
        found = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", ended.text)
        dirty = [line for line in found if "SUMMARY: 0 " not in line]
        if ended.code != 0:
            return [Row(tool, FAILED, ended.why_failed())]
        if not found or dirty:
            return [Row(tool, FAILED, dirty[0] if dirty else "no summary was printed")]
        return [Row(tool, PASSED, found[0])]
    return judge
