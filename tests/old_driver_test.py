#!/usr/bin/env python3
"""Messages of the commands if the NVIDIA driver is older than the build requires.

    old_driver_test.py SLUICE FOLDER_OF_LIBCUDA
"""

import json
import os
import subprocess
import sys
import unittest

DRIVER = sys.argv.pop(2)
SLUICE = sys.argv.pop(1)
RUN = ["run", "--json", "-n", "4", "--seed", "5", "Once upon a time"]


def sluice(*arguments):
    environment = dict(os.environ, LD_LIBRARY_PATH=DRIVER)
    return subprocess.run([SLUICE, *arguments], capture_output=True, text=True, timeout=120, env=environment)


class OldDriver(unittest.TestCase):
    def test_one_sentence_names_both_versions(self):
        for command in [RUN, ["verify", "--op", "add"], ["bench", "--ops", "--op", "add"]]:
            with self.subTest(command):
                got = sluice(*command, "--backend", "cuda")
                self.assertEqual((got.returncode, got.stdout), (1, ""))
                self.assertEqual(got.stderr.count("\n"), 1, got.stderr)
                self.assertRegex(got.stderr, r"driver supports CUDA 11\.4, this build needs 1\d\.0 or later")

    def test_auto_goes_on_with_the_cpu(self):
        got = sluice(*RUN, "--backend", "auto")
        self.assertEqual(got.returncode, 0, got.stderr)
        by_cpu = sluice(*RUN, "--backend", "cpu")
        self.assertEqual(json.loads(got.stdout)["text"], json.loads(by_cpu.stdout)["text"])


if __name__ == "__main__":
    unittest.main()
