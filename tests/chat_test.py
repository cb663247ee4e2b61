#!/usr/bin/env python3
"""sluice chat as a person meets it, on a pseudo-terminal.

    chat_test.py SLUICE

Ctrl-C stops the answer and not the program, a second message finds the first one's state, and the end of input ends the
program with status 0.
"""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import unittest

SLUICE = sys.argv.pop(1)
SECONDS = 120  # for anything: generous, since a sanitized build on a busy machine is slow
PROMPT = "\n> "


class Chat:
    def __init__(self, *options):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execv(SLUICE, [SLUICE, "chat", "--threads", "1", "--seed", "1", *options])
        self.screen = ""
        self.status = None

    def __enter__(self):
        self.read_until(PROMPT)
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.terminal)

    def read_some(self, deadline):
        ready, _, _ = select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError(f"nothing more after: {self.screen!r}")
        try:
            part = os.read(self.terminal, 4096)
        except OSError:  # what Linux says when the other side is closed
            part = b""
        self.screen += part.decode(errors="replace").replace("\r\n", "\n")
        return part

    def read_until(self, text):
        """Reads on to `text`; returns what came before it."""
        deadline = time.monotonic() + SECONDS
        while text not in self.screen:
            if not self.read_some(deadline):
                raise EOFError(f"ended after: {self.screen!r}")
        before, _, self.screen = self.screen.partition(text)
        return before

    def type(self, text):
        os.write(self.terminal, text.encode())

    def ask(self, message):
        self.type(message + "\n")
        self.read_until(message + "\n")  # the terminal's echo

    def exit_status(self):
        deadline = time.monotonic() + SECONDS
        while self.read_some(deadline):
            pass
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status


class ChatTest(unittest.TestCase):
    def test_control_c_stops_the_answer_and_not_the_program(self):
        # The reference backend needs half a minute for a whole answer: what ends sooner was stopped.
        with Chat("--backend", "reference") as chat:
            for message in ("Tell me a story.", "Tell me another one."):
                chat.ask(message)
                chat.read_some(time.monotonic() + SECONDS)
                chat.type("\x03")
                self.assertLess(len(chat.read_until(PROMPT)), 100)
            chat.type("\x04")
            self.assertEqual(chat.exit_status(), 0)

    def test_control_c_at_the_prompt_does_not_end_the_program(self):
        with Chat("-n", "4") as chat:
            chat.type("\x03")
            time.sleep(0.2)
            chat.ask("Tell me a story.")
            self.assertTrue(chat.read_until(PROMPT).strip())
            chat.type("\x04")
            self.assertEqual(chat.exit_status(), 0)

    def test_a_second_message_continues_the_first(self):
        with Chat("-n", "12", "--stats") as chat:
            prompts = []
            for message in ("Tell me a story.", "Tell me a story."):
                chat.ask(message)
                stats = chat.read_until(PROMPT)
                prompts.append(tuple(map(int, re.search(r"prompt (\d+) tokens after (\d+) kept", stats).groups())))
            chat.type("\x04")
            self.assertEqual(chat.exit_status(), 0)
        (first, nothing), (second, kept) = prompts
        self.assertEqual(nothing, 0)
        self.assertGreaterEqual(kept, first + 12)  # the first message and its answer stayed
        self.assertLessEqual(second, first + 3)  # only the new message ran, and the end of the answer before

    def test_input_from_a_file_ends_it_too(self):
        done = subprocess.run([SLUICE, "chat", "--threads", "1", "-n", "3"], input="Tell me a story.\n",
                              capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.strip())


if __name__ == "__main__":
    unittest.main()
