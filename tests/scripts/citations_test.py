"""Whoever cites a page, or a section of one, leads somewhere: sources, tests, scripts and pages."""

import functools
import os
import re
import unittest
from pathlib import Path

ROOT = Path(os.environ["DSTUNE_SOURCE_DIR"])
FOLDERS = [".ci", "bench", "cmake", "docs", "examples", "hostfiles", "scripts", "src", "tests"]
# What scripts write is no page; "PERFORMANCE.md" is another project's.
WRITTEN = {"verdict.md", "report.md", "table.md", "PERFORMANCE.md"}

PAGE = r"[\w./-]*[\w-]+\.md\b"
COMMENT = re.compile(r"\n[ \t]*(?:///?|#|\*)[ \t]*")
# docs/page.md, "One", "Two" and "Three"
SECTIONS = re.compile(rf'({PAGE})(?:,|( [a-z]+){{1,3}}) ("\w[^"\n]*"(?:(?:, | and | to )"\w[^"\n]*")*)')
LINK = re.compile(r"\]\(([^)\s]+)\)")


def files():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "data" not in path.parts and path != Path(__file__).resolve():
                yield path
    yield from (path for path in sorted(ROOT.iterdir()) if path.suffix in {".md", ".txt", ".json"})


@functools.cache
def headings(page):
    outside = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    return [line.lstrip("#").strip().replace("`", "") for line in outside.splitlines() if line.startswith("#")]


@functools.cache
def anchors(page):
    """As GitHub makes them, and those that the page has of its own."""
    plain = [re.sub(r"\]\([^)]*\)", "", heading).lower() for heading in headings(page)]
    made = [re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in plain]
    return made + re.findall(r'<a id="([^"]+)">', page.read_text())


def find(name, beside):
    """The page that `name` means in a file of the folder `beside`."""
    for start in (beside, ROOT, ROOT / "docs", ROOT / "docs/decisions"):
        if (start / name).is_file():
            return start / name
    return None


def faults_of(text, path):
    """What `text`, which stands in `path`, cites in vain."""
    text = COMMENT.sub(" ", text) if path.suffix != ".md" else text.replace("\n", " ")
    for name in set(re.findall(PAGE, text)):
        if Path(name).name not in WRITTEN and find(name, path.parent) is None:
            yield f"no page {name}"
    for name, _, sections in SECTIONS.findall(text):
        page = find(name, path.parent)
        for section in re.findall(r'"([^"]+)"', sections):
            if page is not None and section not in headings(page):
                yield f'no section "{section}" in {name}'
    if path.suffix != ".md":
        return
    for target in LINK.findall(text):
        if re.match(r"https?:", target):
            continue
        name, _, part = target.partition("#")
        page = path.parent / name if name else path
        if not page.exists():
            yield f"no {name}"
        elif part and part not in anchors(page):
            yield f"no {target}"


class Citations(unittest.TestCase):
    def test_lead_somewhere(self):
        count = 0
        for path in files():
            try:
                text = path.read_text()
            except UnicodeDecodeError:
                continue
            if ".md" not in text and path.suffix != ".md":
                continue
            count += text.count(".md")
            with self.subTest(path=str(path.relative_to(ROOT))):
                self.assertEqual(list(faults_of(text, path)), [])
        self.assertGreater(count, 200)

    def faults(self, text, name="src/core/x.hpp"):
        return list(faults_of(text, ROOT / name))

    def test_of_pages_and_sections_that_exist_are_none(self):
        text = '/// Greedy packing (docs/deepspeed-step.md, "Buckets" and "What\n/// is sent").'
        self.assertEqual(self.faults(text), [])
        self.assertEqual(self.faults("[x](memory.md), [y](deepspeed-step.md#what-is-sent)", "docs/x.md"), [])

    def test_of_others_are_found(self):
        self.assertEqual(self.faults("// see nowhere.md 3.2"), ["no page nowhere.md"])
        self.assertEqual(self.faults('// docs/deepspeed-step.md, "Buckets"\n// and "Pails"'),
                         ['no section "Pails" in docs/deepspeed-step.md'])
        self.assertEqual(self.faults('# docs/memory.md lists in "No such"', "scripts/x.py"),
                         ['no section "No such" in docs/memory.md'])
        self.assertEqual(self.faults("[x](#no-such)", "docs/memory.md"), ["no #no-such"])
        self.assertEqual(self.faults("[x](data.json)", "docs/memory.md"), ["no data.json"])


if __name__ == "__main__":
    unittest.main()
