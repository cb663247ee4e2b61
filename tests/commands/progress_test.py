#!/usr/bin/env python3
"""Anything that takes over a second shows its progress on a terminal, and leaves no trace there.

    progress_test.py SLUICE FOLDER_OF_TINY_MODELS

The speed of the machine is not known, so commands are stopped in the middle for more than a second.
"""

import os
import pty
import select
import signal
import time
import unittest

from harness import SECONDS, SLUICE, STORY, CommandTest

TRIES = 20  # to stop a command that may be done too soon


def works(pid):
    """A second thread has started: the one that draws the seconds, or one that computes meanwhile."""
    return len(os.listdir(f"/proc/{pid}/task")) > 1


def computes(pid):
    """The thread that computes has started, too."""
    return len(os.listdir(f"/proc/{pid}/task")) > 2


class Progress(CommandTest):
    def screen(self, arguments, underway):
        """The terminal output of a command that was stopped for more than a second once `underway` was true."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(SLUICE, [SLUICE, *map(str, arguments)])
        try:
            ended = self.stop_for_a_second(pid, underway)
            shown = self.read(terminal)
        finally:
            os.close(terminal)
        status = ended if ended is not None else os.waitpid(pid, 0)[1]
        self.assertEqual(os.waitstatus_to_exitcode(status), 0, shown)
        return shown

    def stop_for_a_second(self, pid, underway):
        """Returns the command's result if it ended before."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return status
            if underway(pid):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(1.3)
                os.kill(pid, signal.SIGCONT)
                return None
        raise TimeoutError("the command neither began nor ended")

    def read(self, terminal):
        shown = b""
        while select.select([terminal], [], [], SECONDS)[0]:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # on Linux when the other side is closed
                part = b""
            if not part:
                return shown.decode()
            shown += part
        raise TimeoutError(shown)

    def expect_progress(self, label, arguments, underway):
        for _ in range(TRIES):
            shown = self.screen(arguments, underway)
            if label in shown:
                # The line is cleared before anything else is written.
                self.assertIn("\r\x1b[K", shown[shown.rindex(label):])
                return
        self.fail(f"no '{label}' in {TRIES} tries, the last of which showed {shown!r}")

    def test_a_plan_measures(self):
        self.expect_progress("measuring this machine (", ["plan", STORY], works)

    def test_a_benchmark_measures(self):
        self.expect_progress("measuring (", ["bench", STORY, "-p", "64", "-n", "32", "-r", "1", "--threads", "1"], computes)

    def test_a_prompt_is_read(self):
        """Includes reading a large model's mapped weights."""
        text = self.folder / "prompt"
        text.write_text("Once upon a time there was a little dog. " * 100)
        self.expect_progress("reading the prompt (", ["run", "--raw", "-f", text, "-n", "1", "--threads", "1"], computes)

    def test_nothing_is_drawn_where_nobody_looks(self):
        self.assertNotIn("\x1b", self.run_well("plan", STORY))


if __name__ == "__main__":
    unittest.main()
