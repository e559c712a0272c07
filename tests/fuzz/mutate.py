#!/usr/bin/env python3
"""Plans with broken copies of real configurations and counts how the program ends.

usage: tests/fuzz/mutate.py PROGRAM COUNT FILE...

Every copy is planned by `PROGRAM --plan --world-size N` and must end by 0, 2 or 3 within 10 s and
500 MB: ends with code 1 otherwise. The copies that did not are kept in build/mutate.
"""
import collections
import json
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile
import time

SECONDS, BYTES = 10, 500 << 20
VALUES = ["0", "-1", "1", "2", "1e9", "1e18", "1e308", "-0.0", "0.5", "true", "false", "null", '""',
          '"auto"', '"true"', '"5e8"', "[]", "{}", "[1,2,3]", '[[[[]]]]', '{"a":{"b":1}}', '"\\u0000"',
          "9223372036854775807", "18446744073709551616", "1e-320", '"' + "x" * 5000 + '"']
BYTES_OF_INTEREST = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\0", b"\xff", b"\xef\xbb\xbf", b"/*", b"//",
                     b"\n", b"NaN", b"1e999", b"-"]


def walk(value):
    """Every container of `value` with each of its keys."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(items):
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from walk(inner)


def break_value(text, rng):
    """One to three values of a JSON text replaced, removed, renamed or moved."""
    tree = json.loads(text)
    for _ in range(rng.randint(1, 3)):
        places = list(walk(tree)) if isinstance(tree, (dict, list)) else []
        if not places:
            break
        where, key = rng.choice(places)
        action = rng.randrange(5)
        if action == 0:
            del where[key]
        elif action == 1 and isinstance(where, dict):
            where[key + rng.choice("_sxX")] = where.pop(key)
        elif action == 2:
            other, other_key = rng.choice(places)
            where[key] = json.loads(json.dumps(other[other_key])) if contains(other, other_key) else 1
        else:
            where[key] = json.loads(rng.choice(VALUES))
    return json.dumps(tree).encode()


def contains(container, key):
    return key in container if isinstance(container, dict) else key < len(container)


def break_bytes(data, rng):
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        action = rng.randrange(5)
        if action == 0:
            del data[at:at + rng.randint(1, 20)]
        elif action == 1:
            data[at:at] = rng.choice(BYTES_OF_INTEREST)
        elif action == 2:
            begin = rng.randrange(len(data) + 1)
            data[at:at] = data[begin:begin + rng.randint(1, 200)]
        elif action == 3 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        else:
            del data[at:]
    return bytes(data)


def without_comments(text):
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r",(\s*[}\]])", r"\1", text)


def mutate(path, rng):
    data = path.read_bytes()
    if rng.random() < 0.7:
        try:
            return break_value(without_comments(data.decode()), rng)
        except (ValueError, RecursionError):
            pass
    return break_bytes(data, rng)


def run(program, config, folder, rng):
    """Code (negative: a signal; None: too long), seconds, bytes."""
    ranks = rng.choice([1, 2, 8, 64, 1000, 100000])
    command = [program, "--plan", "--world-size", str(ranks)]
    if rng.random() < 0.5:
        command += ["--model", "gpt2"]
    if rng.random() < 0.5:
        command += ["--memory-limit", rng.choice(["1GiB", "16GiB", "80GiB"])]
    begin = time.monotonic()
    process = subprocess.Popen(command + [config], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS)))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    code = process.returncode
    return code, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, time.monotonic() - begin


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    program, count = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    files = [pathlib.Path(name) for name in sys.argv[3:]]
    faults = pathlib.Path(__file__).parent.parent.parent / "build" / "mutate"
    codes, longest, most, wrong = collections.Counter(), 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "config.json")
        for seed in range(count):
            rng = random.Random(seed)
            data = mutate(rng.choice(files), rng)
            pathlib.Path(config).write_bytes(data)
            code, seconds, size, _ = run(program, config, folder, rng)
            codes[code] += 1
            longest, most = max(longest, seconds), max(most, size)
            if code not in (0, 2, 3) or size > BYTES:
                wrong += 1
                faults.mkdir(parents=True, exist_ok=True)
                (faults / f"{seed}.json").write_bytes(data)
                print(f"seed {seed}: code {code}, {seconds:.1f} s, {size >> 20} MiB", flush=True)
    print(f"{count} inputs by exit code {dict(sorted(codes.items()))}; "
          f"at most {longest:.2f} s and {most >> 20} MiB; {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
