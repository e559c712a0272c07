"""One file to send: what a verdict stands on, without names of hosts and users, addresses and paths."""
import getpass
import json
import os
import pathlib
import re
import socket

from calibration.processors import processor
from verify import tuned
from verify.launch import read_events

HOST_KEYS = ("host", "hosts", "hostname", "node", "nodes")
DROPPED_SECTIONS = ("tensorboard", "wandb", "comet", "csv_monitor")  # of DeepSpeed: keys, teams and names of jobs
NAME = r"([A-Za-z](?:[\w.-]*\w)?)"
HOSTS_IN_TEXT = re.compile(
    rf"\b(?:rank \d+|ranks \d+(?:(?:, and|,| and| to|-) ?\d+)*) on {NAME}"
    rf"|\bon (?:host|node) {NAME}"
    rf"|\bmeasured on {NAME}(?= \(|,|[.;:]?$)"  # not "measured on no GPU", which earlier versions say
    rf"|[\w.-]@{NAME}|\[{NAME}\]:\d"
    rf"|(?<![\w./-]){NAME}:\d{{4,5}}(?![\w.])|(?<![\w./-])([A-Za-z][\w.-]*\d):\d{{1,5}}(?![\w.])")  # ports, slots
NOT_HOSTS = re.compile(r"(?i)\d[\d.]*|[\da-f]*:[\da-f:]*|a|an|the|no|each|this|cuda|cpu|gpus?|hosts?|nodes?|ranks?"
                       r"|.*\.(?:py|cpp|hpp|json|sh)")
USERS_IN_TEXT = re.compile(r"/(?:home|Users)/([^/\s\"']+)|\b([\w.-]+)@[\w-]+")
URL = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>]+")
PATH = re.compile(r"(?<![\w.~/<-])(?:~[\w.-]*|\.{1,2})?(?:/[\w.@+~=,-]+)+/?"  # /a/b, ~/a, ../a
                  r"|(?<![\w/.@+-])[\w.@+-]+(?:/[\w.@+~=-]+)+/?")             # a/b
UNIT = r"(?:\d[\d.]*|[kMGTP]?(?:i?B|FLOPS?)|samples?|tokens?|steps?|bytes|elements|calls|ranks?|GPUs?|ms|s|n|a)"
RATE = re.compile(rf"{UNIT}(?:/{UNIT})+\.?")  # GB/s: no path
ADDRESS = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)|\b(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}\b")
SERIAL = re.compile(r"\bGPU-[0-9a-f-]{8,}")
OF_RECORDS = ("type", "at_s", "identity", "experiment", "outcome", "ranks", "started_s", "finished_s")


def texts_of(tree):
    """All texts and keys of it."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        yield from tree
    for value in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from texts_of(value)


def named_hosts(tree):
    """Texts under a key of hosts, in a list there, or as "name" of an object in that list."""
    for key, value in tree.items() if isinstance(tree, dict) else ():
        if key in HOST_KEYS:
            for each in value if isinstance(value, list) else [value]:
                name = each.get("name") if isinstance(each, dict) else each
                if isinstance(name, str):
                    yield name
    for value in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from named_hosts(value)


def preflight_hosts(tree):
    """The journal names the hosts of a preflight as "node1: 2"."""
    return [text.rpartition(":")[0] for found in values_at(tree, "dstune_preflight") for text in texts_of(found)]


def values_at(tree, key):
    if isinstance(tree, dict) and key in tree:
        yield tree[key]
    for value in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from values_at(value, key)


def keys_of(tree):
    if isinstance(tree, dict):
        yield from tree
    for value in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from keys_of(value)


def hosts_of(tree):
    in_texts = {host for text in texts_of(tree) for found in HOSTS_IN_TEXT.findall(URL.sub("", text)) for host in found}
    found = {host for host in {*named_hosts(tree), *preflight_hosts(tree), *in_texts}
             if host and not NOT_HOSTS.fullmatch(host)}
    return {part for host in found for part in (host, host.split(".")[0])}


def users_of(tree):
    return {user for text in texts_of(tree) for found in USERS_IN_TEXT.findall(text) for user in found if user}


def of_this_machine():
    """(hosts, users, folders)"""
    host, home = socket.gethostname(), str(pathlib.Path.home())
    try:
        users = {getpass.getuser()}
    except (KeyError, OSError):
        users = set()
    return {host, host.split(".")[0]}, users | {pathlib.Path(home).name}, {home, os.getcwd()}


class Cleaner:
    def __init__(self, tree, paths, machine=None):
        """paths: those that are known, which may have spaces."""
        hosts, users, folders = machine or of_this_machine()
        self.paths = sorted({str(each) for each in (*paths, *folders)} - {"", ".", "/"}, key=len, reverse=True)
        known = (hosts | hosts_of(tree), "HOST"), (users | users_of(tree), "USER")
        # Numbered, so that two hosts stay two.
        self.names = [(name, f"{word}{place}") for names, word in known
                      for place, name in enumerate(sorted(names - {""}, key=lambda each: (-len(each), each)))]
        self.sections = set(keys_of(tree))

    def text(self, text):
        if self.is_pointer(text):
            return text
        if re.match(r"~|\.{0,2}/", text):
            return "PATH"
        text = URL.sub("URL", text)
        for path in self.paths:
            text = re.sub(rf"(?<![\w]){re.escape(path)}(?:/[^\s:,;\"']*)?(?![\w])", "PATH", text)
        text = PATH.sub(lambda found: found[0] if self.is_pointer(found[0]) or RATE.fullmatch(found[0]) else "PATH",
                        text)
        text = SERIAL.sub("GPU", ADDRESS.sub("ADDRESS", text))
        for name, word in self.names:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", word, text)
        return text

    def is_pointer(self, text):
        """Whether it is a JSON pointer to a key of these files, and no path."""
        parts = text.split("/")
        return len(parts) > 1 and not parts[0] and all(part in self.sections for part in parts[1:])

    def clean(self, tree):
        if isinstance(tree, dict):
            return {self.text(key): self.clean(value) for key, value in tree.items() if key not in DROPPED_SECTIONS}
        if isinstance(tree, list):
            return [self.clean(value) for value in tree]
        return self.text(tree) if isinstance(tree, str) else tree


def read_json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def bundle(results, runs, verdict):
    """(what is sent, what tells names that must not be); of the results' folder, that of the runs and verdict.json."""
    journal = read_events(results / "journal.jsonl")
    plan = read_json(runs / "plan.json")
    summary = results / "summary.txt"
    return {
        "made_by": "verify_against_deepspeed.py",
        "versions": dict(verdict["about"]["versions"],
                         dstune_mpi=sorted({record["identity"].get("program", "unknown") for record in journal
                                            if "identity" in record})),
        "machine": {"processor": processor(), "cores": os.cpu_count(), "tuned": sorted(
            {str(record["identity"].get("machine")) for record in journal if "identity" in record})},
        "profile": {"file": read_json(tuned.profile_of(results)), "used": verdict["about"]["host_overhead_s"]},
        "verdict": verdict, "plan": plan, "runs": read_events(runs / "events.jsonl"),
        "summary": summary.read_text(encoding="utf-8").splitlines() if summary.is_file() else [],
        "journal": [{key: record[key] for key in OF_RECORDS if key in record} for record in journal]}, journal


def write(path, results, runs, verdict, known_paths, machine=None):
    tree, journal = bundle(results, runs, verdict)
    cleaner = Cleaner([tree, journal], [*known_paths, results, runs], machine)
    path.write_text(json.dumps(cleaner.clean(tree), indent=1) + "\n", encoding="utf-8")
