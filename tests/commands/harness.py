"""Shared by the tests of the commands: runs sluice as scripts do.

    SOME_test.py SLUICE FOLDER_OF_TINY_MODELS
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

MODELS = pathlib.Path(sys.argv.pop(2))
SLUICE = sys.argv.pop(1)
STORY = pathlib.Path(__file__).parents[2] / "models/delta-story"
SECONDS = 120  # for anything: sanitized builds on busy machines are slow


def start(*arguments, **options):
    """Runs a command without input and returns its result."""
    options = {"stdin": subprocess.DEVNULL} | options if "input" not in options else options
    return subprocess.run([SLUICE, *map(str, arguments)], text=True, timeout=SECONDS,
                          **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options)


def sanitized():
    """Whether the program is built with a sanitizer, which takes additional memory and time."""
    return b"__asan_init" in pathlib.Path(SLUICE).read_bytes()


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def run_well(self, *arguments, **options):
        """Runs a command that must succeed; returns its output."""
        run = start(*arguments, **options)
        self.assertEqual(run.returncode, 0, f"{arguments}: {run.stderr}")
        return run.stdout

    def expect_error(self, *arguments, says=(), status=1, **options):
        """Expects one line that says what is wrong, and no other output."""
        run = start(*arguments, **options)
        self.assertEqual(run.returncode, status, f"{arguments}: {run.stderr}")
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        self.assertTrue(run.stderr.startswith("sluice: "), run.stderr)
        for word in says:
            self.assertIn(word, run.stderr)
        return run

    def copy(self, model, name="copy"):
        return pathlib.Path(shutil.copytree(model, self.folder / name))


def limited(bytes_):
    """For preexec_fn: files may not grow beyond this."""
    import resource

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, bytes_))

    return limit


def environment(**changes):
    return {**os.environ, **changes}
