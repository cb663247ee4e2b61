#!/usr/bin/env python3
"""Faults during sluice run with experts from disk.

    streaming_test.py SLUICE MODEL [PRELOAD]

For any fault of the disk, the files or the program itself: one sentence on stderr that names the place, a failure
status, no token that differs from a run without the fault, and the next run is not affected. PRELOAD is a library that
makes reads fail.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SLUICE, MODEL, *PRELOAD = sys.argv[1:]
SECONDS = 300  # generous: sanitized builds on busy machines are slow
TOKENS = 40
MOST = 1000


def command(model, tokens=TOKENS, slots=5):
    return [SLUICE, "run", "-m", model, "--threads", "1", "--seed", "1", "--expert-slots", str(slots), "-n", str(tokens),
            "Once upon a time"]


def run(model, tokens=TOKENS, **environment):
    return subprocess.run(command(model, tokens), env=dict(os.environ, **environment), capture_output=True, text=True,
                          timeout=SECONDS)


class Streaming(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.want = run(MODEL)
        assert cls.want.returncode == 0, cls.want.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def copy(self):
        model = tempfile.mkdtemp(dir=self.folder.name) + "/model"
        shutil.copytree(MODEL, model)
        return model

    def weights(self, model):
        files = [f for f in os.listdir(model) if f.endswith(".safetensors")]
        return os.path.join(model, max(files, key=lambda f: os.path.getsize(os.path.join(model, f))))

    def one_sentence(self, process, *parts):
        lines = process.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, process.stderr)
        self.assertTrue(lines[0].startswith("sluice: "), lines[0])
        for part in parts:
            self.assertIn(part, lines[0])

    def is_a_beginning(self, text):
        whole = run(MODEL, MOST).stdout.strip()
        self.assertTrue(whole.startswith(text.strip()), text)

    def next_run_is_clean(self):
        after = run(MODEL)
        self.assertEqual((after.returncode, after.stdout, after.stderr), (0, self.want.stdout, ""))

    def while_running(self, model, act):
        """Starts a long run, calls act() once the first words are printed, and returns the result."""
        process = subprocess.Popen(command(model, MOST), stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        first = process.stdout.read(64)
        act(process)
        out, err = process.communicate(timeout=SECONDS)
        return subprocess.CompletedProcess(process.args, process.returncode, (first + out).decode(), err.decode())

    @unittest.skipIf(not PRELOAD, "no library to make reads fail")
    def test_threads_serve_where_there_is_no_io_uring(self):
        got = run(MODEL, LD_PRELOAD=PRELOAD[0])
        self.assertEqual((got.returncode, got.stdout), (0, self.want.stdout))

    @unittest.skipIf(not PRELOAD, "no library to make reads fail")
    def test_a_read_error(self):
        got = run(MODEL, LD_PRELOAD=PRELOAD[0], SLUICE_READS="2500")
        self.assertEqual(got.returncode, 1)
        self.one_sentence(got, "cannot read expert", "of layer", "Input/output error")
        self.is_a_beginning(got.stdout)
        self.next_run_is_clean()

    @unittest.skipIf(not PRELOAD, "no library to make reads fail")
    def test_a_short_read(self):
        got = run(MODEL, LD_PRELOAD=PRELOAD[0], SLUICE_READS="2500", SLUICE_SHORT="1")
        self.assertEqual(got.returncode, 1)
        self.one_sentence(got, "cannot read expert", "too early")
        self.is_a_beginning(got.stdout)

    def test_a_file_that_is_replaced_is_no_concern(self):
        model = self.copy()

        def replace(_):
            other = self.weights(model) + ".new"
            shutil.copyfile(self.weights(model), other)
            with open(other, "r+b") as file:
                file.seek(os.path.getsize(other) // 2)
                file.write(bytes(1 << 16))
            os.replace(other, self.weights(model))

        got = self.while_running(model, replace)
        self.assertEqual(got.returncode, 0, got.stderr)
        self.is_a_beginning(got.stdout)

    def test_a_file_that_is_written_over(self):
        model = self.copy()

        def overwrite(_):
            with open(self.weights(model), "r+b") as file:
                size = os.path.getsize(self.weights(model))
                file.seek(1 << 20)
                while file.tell() < size - (1 << 16):
                    file.write(os.urandom(1 << 16))

        got = self.while_running(model, overwrite)
        self.assertEqual(got.returncode, 1)
        self.one_sentence(got, "cannot read expert", self.weights(model), "has changed")
        self.is_a_beginning(got.stdout)
        self.next_run_is_clean()

    def test_a_file_that_is_cut_off(self):
        model = self.copy()
        got = self.while_running(model, lambda _: os.truncate(self.weights(model), 1 << 20))
        self.assertEqual(got.returncode, 1)
        self.one_sentence(got, "cannot read expert", "too early")
        self.is_a_beginning(got.stdout)

    def test_an_interrupt(self):
        got = self.while_running(MODEL, lambda process: process.send_signal(signal.SIGINT))
        self.assertEqual(got.returncode, -signal.SIGINT)
        self.one_sentence(got, "interrupted")
        self.is_a_beginning(got.stdout)
        self.next_run_is_clean()

    def test_a_budget_that_is_too_small(self):
        got = subprocess.run([SLUICE, "run", "-m", MODEL, "--memory", "1MB"], stdin=subprocess.DEVNULL, capture_output=True,
                             text=True, timeout=SECONDS)
        self.assertEqual(got.returncode, 1)
        self.one_sentence(got, "--memory", "would do")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
