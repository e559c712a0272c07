"""scripts/terminal_pictures.py: when a screen is one to take, and the page that is made of the pictures."""

import importlib.util
import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ["DSTUNE_SOURCE_DIR"])


def load():
    spec = importlib.util.spec_from_file_location("terminal_pictures", SOURCE / "scripts" / "terminal_pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


terminal = load()

BEGUN = """$ scripts/tune.sh examples/tiny.json -n 3
dstune-mpi: tuning examples/tiny.json (gpt2, 0.9 M parameters) on 2 workers
first: z0_gas1_tmbspg1, of a number that is not known yet; predicted: 1 s each"""
RUNS = "\n[0 1s] z0_gas1_tmbspg1 since 1 s"
DONE = "".join(f"\n[{i}/~12 {i}s] z0_gas1_tmbspg{i} -> 12.1 ms, 165.0 samples/s, 20.00 MiB  (best so far)" for i in (1, 2, 3))
LATER = "\n[3/~12 4s] z1_gas1_tmbspg1 since 1 s; about 9 s left; best 12.1 ms, 165.0 samples/s"
RESULT = "\n|   # | experiment      |\n| --: | --------------- |\n|  *1 | z0_gas1_tmbspg3 |\nbest: z0_gas1_tmbspg3"
SCREENS = [BEGUN + RUNS, BEGUN + DONE + LATER, BEGUN + DONE + RESULT + "\n$"]
LINE = re.compile(r"    (.*)$")


class Moments(unittest.TestCase):
    def moments_of(self, screen):
        return [moment for moment, shows, _ in terminal.MOMENTS if shows(screen)]

    def test_each_screen_shows_its_own(self):
        self.assertEqual([self.moments_of(screen)[-1] for screen in SCREENS],
                         [moment for moment, _, _ in terminal.MOMENTS])

    def test_none_is_shown_while_the_line_that_is_rewritten_is_away(self):
        self.assertEqual(self.moments_of(BEGUN), [])
        self.assertEqual(self.moments_of(BEGUN + DONE), [])
        self.assertEqual(self.moments_of(BEGUN + DONE + RESULT), [])

    def test_a_picture_of_the_end_has_the_result_and_what_is_above_it(self):
        many = BEGUN + 10 * DONE + RESULT + "\n$"

        self.assertEqual(terminal.shown_of_end(many, lines=8).splitlines(), many.splitlines()[-8:])
        self.assertTrue(terminal.shown_of_end(many, lines=3).startswith("|   # | experiment"), "the whole result")


class Page(unittest.TestCase):
    def test_has_a_block_for_each_picture(self):
        text = terminal.page("scripts/tune.sh a.json -n 3", {80: SCREENS, 120: SCREENS})

        self.assertEqual(text.count("\n<!-- text -->\n\n    $ scripts/tune.sh"), 6)
        self.assertEqual(re.findall(r"(?m)^## (.*)$", text), ["80 columns", "120 columns"])

    def test_the_one_in_docs_shows_no_wider_line_than_its_terminal(self):
        text = (SOURCE / "docs" / "terminal.md").read_text(encoding="utf-8")
        sections = re.split(r"(?m)^## (\d+) columns$", text)[1:]

        self.assertEqual(sections[::2], [str(width) for width in terminal.WIDTHS])
        for width, section in zip(terminal.WIDTHS, sections[1::2]):
            lines = [found.group(1) for line in section.splitlines() if (found := LINE.match(line))]
            self.assertGreater(len(lines), 30)
            self.assertLessEqual(max(map(len, lines)), width)
            self.assertIn("|  *1 | ", section)


if __name__ == "__main__":
    unittest.main()
