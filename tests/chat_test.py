#!/usr/bin/env python3
"""Tests of sluice chat on a pseudo-terminal.

    chat_test.py SLUICE

Keys are sent as by a terminal, and the program's output is read without colours and cursor movements.
"""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

SLUICE = sys.argv.pop(1)
SECONDS = 120  # for anything: generous, because sanitized builds on busy machines are slow
PROMPT = "> "
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]|[\x01\x07]")
HOME = tempfile.mkdtemp()
SUPPRESSIONS = pathlib.Path(__file__).with_name("lsan.supp")  # for sanitized builds


class Chat:
    def __init__(self, *options, width=80):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            environment = {**os.environ, "TERM": "xterm", "HOME": HOME, "NO_COLOR": "1",
                           "LSAN_OPTIONS": f"suppressions={SUPPRESSIONS}:print_suppressions=0"}
            environment.pop("XDG_STATE_HOME", None)
            os.execve(SLUICE, [SLUICE, "chat", "--threads", "1", "--seed", "1", *options], environment)
        self.resize(width)
        self.screen = ""
        self.raw = b""
        self.status = None

    def resize(self, width):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        time.sleep(0.05)

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
            part = os.read(self.terminal, 65536)
        except OSError:  # on Linux when the other side is closed
            part = b""
        self.raw += part
        if not self.raw.endswith(b"\x1b") and not re.search(rb"\x1b\[[0-9;?]*$", self.raw):
            self.screen += ESCAPES.sub("", self.raw.decode(errors="replace")).replace("\r\n", "\n").replace("\r", "")
            self.raw = b""
        return part

    def read_until(self, text):
        """Reads up to `text`; returns what came before it."""
        deadline = time.monotonic() + SECONDS
        while text not in self.screen:
            if not self.read_some(deadline):
                raise EOFError(f"ended after: {self.screen!r}")
        before, _, self.screen = self.screen.partition(text)
        return before

    def type(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        while data:
            data = data[os.write(self.terminal, data[:512]) :]
            time.sleep(0.002)

    def ask(self, message):
        """Sends a message; returns the answer and its statistics."""
        self.type(message + "\r")
        self.read_until("\n")  # the rest of the typed line
        return self.read_until("\n" + PROMPT)

    def exit_status(self):
        deadline = time.monotonic() + SECONDS
        while self.read_some(deadline):
            pass
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

    def leave(self):
        self.type("\x04")
        return self.exit_status()


class ChatTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def saved(self, chat, name="saved.json"):
        """The saved conversation."""
        file = self.folder / name
        chat.ask(f"/save {file}")
        return json.loads(file.read_text())["messages"]

    def test_control_c_stops_the_answer_and_not_the_program(self):
        # The reference backend needs half a minute for a complete answer: if it ends sooner, it was stopped.
        with Chat("--backend", "reference") as chat:
            for message in ("Tell me a story.", "Tell me another one."):
                chat.type(message + "\r")
                chat.read_until("\n")
                while not chat.screen.strip():
                    chat.read_some(time.monotonic() + SECONDS)
                chat.type("\x03")
                self.assertLess(len(chat.read_until("\n" + PROMPT)), 150)
            self.assertEqual(chat.leave(), 0)

    def test_control_c_at_an_empty_prompt_hints_and_then_leaves(self):
        with Chat("-n", "4") as chat:
            chat.type("\x03")
            self.assertIn("Ctrl-D", chat.read_until("\n" + PROMPT))
            self.assertTrue(chat.ask("Tell me a story.").strip())
            chat.type("half a line\x03")
            chat.read_until("\n" + PROMPT)
            chat.type("\x03")
            self.assertIn("Ctrl-D", chat.read_until("\n" + PROMPT))
            chat.type("\x03")
            self.assertEqual(chat.exit_status(), 0)

    def test_a_second_message_continues_the_first(self):
        with Chat("-n", "12", "--stats") as chat:
            prompts = []
            for message in ("Tell me a story.", "Tell me a story."):
                stats = chat.ask(message).replace("\n", " ")
                prompts.append(tuple(map(int, re.search(r"prompt (\d+) tokens after (\d+) kept", stats).groups())))
            self.assertEqual(chat.leave(), 0)
        (first, nothing), (second, kept) = prompts
        self.assertEqual(nothing, 0)
        self.assertGreaterEqual(kept, first + 12)  # the first message and its answer were kept
        self.assertLessEqual(second, first + 3)  # only the new message was computed, and the end of the previous answer

    def test_input_from_a_file_ends_it_too(self):
        done = subprocess.run([SLUICE, "chat", "--threads", "1", "-n", "3"], input="Tell me a story.\n",
                              capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.strip())

    def test_bytes_that_are_not_utf_8_are_no_end(self):
        done = subprocess.run([SLUICE, "chat", "--threads", "1", "-n", "3"], input=b"caf\xe9 \xff\xfe\nTell me a story.\n",
                              capture_output=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(b"json", done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 2, done.stdout)
        with Chat("-n", "3") as chat:
            chat.type(b"caf\xe9 \xff\r")
            chat.read_until("\n" + PROMPT)
            self.assertEqual(self.saved(chat)[0]["content"], "caf ")
            self.assertEqual(chat.leave(), 0)

    def test_lines_are_edited_and_remembered(self):
        with Chat("-n", "2") as chat:
            chat.ask("tell me x\x7fa stry.\x1b[D\x1b[D\x1b[Do\x01\x1b[3~T\x05")
            chat.ask("\x1b[A")  # the previous line
            chat.ask("\x1b[A and more")
            said = [message["content"] for message in self.saved(chat) if message["role"] == "user"]
            self.assertEqual(said, ["Tell me a story."] * 2 + ["Tell me a story. and more"])
            self.assertEqual(chat.leave(), 0)
        with Chat("-n", "2") as chat:  # a new process
            chat.ask("\x1b[A\x1b[A")
            self.assertIn("and more", self.saved(chat)[0]["content"])
            self.assertEqual(chat.leave(), 0)
        history = pathlib.Path(HOME) / ".local/state/sluice/history"
        self.assertEqual(history.stat().st_mode & 0o777, 0o600)

    def test_several_lines_make_one_message(self):
        long = "word " * 1200  # more than a terminal's 4,095 bytes per line
        for typed, said in (
            ("\x1b[200~one\rtwo\r\rthree\r\x1b[201~", "one\ntwo\n\nthree"),
            ("\x1b[200~" + long + "\x1b[201~", long),
            ("one\x1b\rtwo", "one\ntwo"),
            ("one\\\rtwo", "one\ntwo"),
            ('"""one\rtwo"""', "one\ntwo"),
        ):
            with self.subTest(said[:20]), Chat("-n", "1") as chat:
                chat.type(typed + "\r")
                if "\\\r" in typed or '"""' in typed:
                    chat.read_until("\n. ")
                chat.read_until("\n" + PROMPT)
                self.assertEqual(self.saved(chat)[0], {"role": "user", "content": said})
                self.assertEqual(chat.leave(), 0)

    def test_slash_commands(self):
        with Chat("-n", "24", "--temperature", "2", "--system", "Be brief.") as chat:
            self.assertIn("/undo", chat.ask("/help"))
            chat.ask("Tell me a story.")
            first = self.saved(chat)
            self.assertEqual([message["role"] for message in first], ["system", "user", "assistant"])
            chat.ask("/retry")
            again = self.saved(chat)
            self.assertEqual(again[:2], first[:2])
            self.assertNotEqual(again[2], first[2])
            self.assertRegex(chat.ask("/stats"), r"tok/s, context \d+ of \d+")
            chat.ask("/undo")
            self.assertEqual(self.saved(chat), first[:1])
            self.assertIn("nothing", chat.ask("/undo"))
            chat.ask("/system Speak slowly.")
            self.assertIn("Speak slowly.", chat.ask("/system"))
            chat.ask(f"/load {self.folder / 'saved.json'}")
            chat.ask("Tell me a story.")
            chat.ask("/clear")
            self.assertEqual([message["role"] for message in self.saved(chat)], ["system"])
            self.assertIn("did you mean /clear", chat.ask("/clera"))
            self.assertIn("no-such-file", chat.ask("/load /no-such-file"))
            self.assertIn("/undo", chat.ask("/he\t"))
            chat.type("/exit\r")
            self.assertEqual(chat.exit_status(), 0)

    def test_a_conversation_is_resumed(self):
        file = self.folder / "talk.json"
        for count in (2, 4):
            with Chat("-n", "3", "--resume", str(file)) as chat:
                chat.ask("Tell me a story.")
                self.assertEqual(chat.leave(), 0)
            self.assertEqual(len(json.loads(file.read_text())["messages"]), count)

    def test_the_next_program_has_read_it_before(self):
        file = self.folder / "talk.json"
        kept = []
        for _ in range(2):
            with Chat("-n", "8", "--resume", str(file), "--cache-disk", str(self.folder / "prompts"), "--stats") as chat:
                for message in ("Tell me a story of a dragon. " * 8, "Go on."):
                    stats = chat.ask(message).replace("\n", " ")
                    prompt, before = map(int, re.search(r"prompt (\d+) tokens after (\d+) kept", stats).groups())
                    kept.append(before)
                    self.assertGreater(prompt, 0)
                self.assertEqual(chat.leave(), 0)
        self.assertEqual(kept[0], 0)
        self.assertGreaterEqual(kept[1], 64)  # the complete blocks of the first message
        self.assertGreaterEqual(kept[2], kept[1])  # and so does the next process
        self.assertGreaterEqual(kept[3], 128)

    def test_a_full_context_shifts(self):
        with Chat("-n", "40", "--ctx", "128") as chat:
            shifted = [message for message in range(8) if "forgotten" in chat.ask("Tell me a long story about a dog.")]
            self.assertTrue(shifted)
            self.assertEqual(chat.leave(), 0)

    def test_a_full_context_stops(self):
        with Chat("-n", "40", "--ctx", "128", "--when-full", "stop") as chat:
            answers = [chat.ask("Tell me a long story about a dog.") for _ in range(8)]
            self.assertIn("the context is full", answers[-1].replace("\n", " "))
            self.assertIn("/clear", answers[-1])
            chat.ask("/clear")
            self.assertNotIn("full", chat.ask("Tell me a story."))
            self.assertEqual(chat.leave(), 0)

    def test_a_message_longer_than_the_context(self):
        with Chat("-n", "4", "--ctx", "64") as chat:
            self.assertIn("this message alone", chat.ask("word " * 100).replace("\n", " "))
            self.assertTrue(chat.ask("Hello.").strip())
            self.assertEqual(chat.leave(), 0)

    def test_the_width_follows_the_terminal(self):
        with Chat("-n", "120") as chat:
            chat.type("x" * 60)
            chat.read_until("x" * 60)  # on one line
            chat.type("\x03")
            chat.read_until("\n" + PROMPT)
            for width in (70, 60, 40):  # at the prompt
                chat.resize(width)
            chat.type("y" * 60 + "\x15")
            chat.type("Tell me a story.\r")
            typed = chat.read_until("Tell me a story.")
            self.assertEqual(typed.count("y"), 60 + typed.count("y\b"), typed)
            self.assertNotIn("y" * 41, typed)
            chat.read_until("\n")
            lines = chat.read_until("\n" + PROMPT).split("\n")
            self.assertLess(max(map(len, [line for line in lines if not line.startswith("[")])), 40)
            chat.type("Tell me a story.\r")
            chat.read_until("\n")
            while not chat.screen.strip():
                chat.read_some(time.monotonic() + SECONDS)
            chat.resize(20)  # while it answers
            lines = chat.read_until("\n" + PROMPT).split("\n")
            self.assertLess(max(map(len, [line for line in lines[-5:] if not line.startswith("[")])), 20)
            self.assertEqual([message["content"] for message in self.saved(chat)][::2], ["Tell me a story."] * 2)
            self.assertEqual(chat.leave(), 0)

    def test_words_wrap_and_a_cut_answer_is_marked(self):
        with Chat("-n", "120", width=40) as chat:
            lines = chat.ask("Tell me a story.").split("\n")
            self.assertGreater(len(lines), 3)
            self.assertLess(max(map(len, [line for line in lines if not line.startswith("[")])), 40)
            self.assertEqual(chat.leave(), 0)
        with Chat("-n", "5") as chat:
            self.assertIn("[cut off after 5 tokens", chat.ask("Tell me a story."))
            self.assertEqual(chat.leave(), 0)


if __name__ == "__main__":
    try:
        unittest.main()
    finally:
        shutil.rmtree(HOME, ignore_errors=True)
