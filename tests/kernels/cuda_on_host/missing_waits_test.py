"""The order of the engine's streams: without the waits of any one stream the thread sanitizer reports a data race,
and with all of them it reports nothing."""

import os
import subprocess
import sys
import unittest

STREAMS = {"compute": 0, "reduction": 1, "gather": 2, "communication": 3}
PROGRAM, SANITIZED = sys.argv[1], "thread" in sys.argv[2].split(",")


def run(stream, stage):
    environment = dict(os.environ, TSAN_OPTIONS="exitcode=66")
    return subprocess.run([PROGRAM, str(stream), str(stage)], env=environment, capture_output=True, text=True)


class MissingWaits(unittest.TestCase):
    def test_nothing_races_with_all_waits(self):
        for stage in (2, 3):
            with self.subTest(stage=stage):
                result = run(-1, stage)
                self.assertEqual((result.returncode, result.stdout), (0, "done\n"), result.stderr[:4000])

    @unittest.skipUnless(SANITIZED, "only the thread sanitizer sees a race")
    def test_the_waits_of_each_stream_are_needed(self):
        for stream, number in STREAMS.items():
            with self.subTest(stream):
                result = run(number, 3)
                self.assertEqual(result.returncode, 66, result.stderr[:4000])
                self.assertIn("data race", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
