"""Under the thread sanitizer each missing order is a reported data race, and without one there is no report."""

import os
import subprocess
import sys
import unittest

CASES = ["between_streams", "after_the_event", "from_host", "to_host", "after_enqueueing"]
PROGRAM, SANITIZED = sys.argv[1], "thread" in sys.argv[2].split(",")


def run(case, order):
    environment = dict(os.environ, TSAN_OPTIONS="exitcode=66")
    return subprocess.run([PROGRAM, case, order], env=environment, capture_output=True, text=True)


class PlantedRace(unittest.TestCase):
    def test_what_is_ordered_is_not_reported(self):
        for case in CASES:
            with self.subTest(case):
                result = run(case, "ordered")
                self.assertEqual((result.returncode, result.stdout), (0, "done\n"), result.stderr)

    @unittest.skipUnless(SANITIZED, "only the thread sanitizer sees a race")
    def test_a_missing_order_is_reported(self):
        for case in CASES:
            with self.subTest(case):
                result = run(case, "missing")
                self.assertEqual(result.returncode, 66, result.stderr)
                self.assertIn("data race", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
