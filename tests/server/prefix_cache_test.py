"""Prompts that sluice serve remembers: across restarts and kills, between servers, and what it says about them."""

import json
import pathlib
import random
import subprocess
import tempfile
import time
import unittest

from served import SECONDS, SLUICE, Server

STORY = "Once upon a time there was a little dragon who lived in a cave near the village. " * 12


class Remembering(Server):
    def __init__(self, folder, *arguments):
        super().__init__("--parallel", 2, "--cache-disk", f"{folder}:50MB", *arguments)
        self.errors = None

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """What it said on the standard error."""
        if self.errors is None:
            self.process.terminate()
            self.errors = self.process.communicate(timeout=SECONDS)[1]
        return self.errors

    def ask(self, method, path, body=None, headers=None):
        status, answer_headers, text = self.request(method, path, body, headers)
        return status, answer_headers, json.loads(text)

    def complete(self, prompt, headers=None, **fields):
        """The text, how many tokens were remembered, and the request's id."""
        body = {"prompt": prompt, "max_tokens": 6, "temperature": 0} | fields
        status, answer_headers, answer = self.ask("POST", "/v1/completions", body, headers)
        assert status == 200, answer
        cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
        assert answer_headers["X-Sluice-Cache"].startswith(f"cached={cached};"), answer_headers["X-Sluice-Cache"]
        return answer["choices"][0]["text"], cached, answer_headers["X-Request-Id"]


def wait_for_files(folder, count):
    end = time.monotonic() + SECONDS
    while len(list(pathlib.Path(folder).glob("*.prefix"))) < count:
        assert time.monotonic() < end, list(pathlib.Path(folder).iterdir())
        time.sleep(0.01)


class PrefixCache(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name) / "prompts"

    def test_a_killed_server_starts_again_and_hits(self):
        with Remembering(self.folder) as server:
            text, cached, _ = server.complete(STORY)
            self.assertEqual(cached, 0)
            wait_for_files(self.folder, 2)  # rows and a state
            server.process.kill()
        with Remembering(self.folder) as server:
            again, cached, request = server.complete(STORY)
            self.assertEqual(again, text)
            self.assertGreaterEqual(cached, 128)
            report = server.ask("GET", f"/v1/sluice/cache?request={request}")[2]
            self.assertEqual(report["from_disk"], cached)
            self.assertNotIn("removed", server.stop())

    def test_kills_at_any_time_change_no_answer(self):
        answers = {}
        for round in range(4):
            with Remembering(self.folder) as server:
                for turn in range(random.randrange(1, 4)):
                    prompt = STORY + f"Chapter {turn}. " * 9
                    text, _, _ = server.complete(prompt)
                    self.assertEqual(answers.setdefault(prompt, text), text)
                time.sleep(random.random() / 50)
                server.process.kill()
        with Remembering(self.folder) as server:
            for prompt, text in answers.items():
                self.assertEqual(server.complete(prompt)[0], text)
        self.assertEqual(list(self.folder.glob("*.tmp")), [])  # what was half written is gone

    def test_two_servers_share_a_folder(self):
        with Remembering(self.folder) as first, Remembering(self.folder) as second:
            text = first.complete(STORY)[0]
            wait_for_files(self.folder, 2)
            end = time.monotonic() + SECONDS
            while second.ask("GET", "/v1/sluice/cache")[2]["disk_bytes"] == 0 and time.monotonic() < end:
                time.sleep(0.5)
                second.complete("Short")  # requests make it look around
            again, cached, request = second.complete(STORY)
            self.assertEqual(again, text)
            self.assertGreater(cached, 0)
            self.assertEqual(second.ask("GET", f"/v1/sluice/cache?request={request}")[2]["from_disk"], cached)

    def test_damaged_files_are_dropped_with_one_line(self):
        with Remembering(self.folder) as server:
            text = server.complete(STORY)[0]
        files = sorted(self.folder.glob("*.prefix"))
        for file in files:
            content = bytearray(file.read_bytes())
            content[random.randrange(len(content))] ^= 1 << random.randrange(8)
            file.write_bytes(content)
        with Remembering(self.folder) as server:
            again, cached, _ = server.complete(STORY)
            self.assertEqual((again, cached), (text, 0))
            self.assertIn("removed", server.stop())

    def test_salts_and_keys_share_nothing(self):
        with Remembering(self.folder, "--cache-per-key", "--api-key", "one", "--api-key", "two") as server:
            def ask(key, **fields):
                return server.complete(STORY, {"Authorization": f"Bearer {key}"}, **fields)[1]
            self.assertEqual(ask("one"), 0)
            self.assertGreater(ask("one"), 0)
            self.assertEqual(ask("two"), 0)
            self.assertEqual(ask("one", cache_salt="mine"), 0)
            self.assertGreater(ask("two"), 0)
            self.assertGreater(ask("one", cache_salt="mine"), 0)

    def test_it_says_why(self):
        with Remembering(self.folder) as server:
            date = "It is 2026-08-{:02}. " + STORY
            server.complete(date.format(1))
            _, cached, request = server.complete(date.format(2))
            self.assertEqual(cached, 0)
            report = server.ask("GET", f"/v1/sluice/cache?request={request}")[2]
            self.assertEqual((report["reason"], report["volatile"]), ("differs", "a date"))
            self.assertLess(report["agreeing_tokens"], 30)
            said = subprocess.run([SLUICE, "cache", "why", "--server", server.url, "--request", request], text=True,
                                  capture_output=True, timeout=SECONDS, check=True).stdout
            self.assertIn("a date", said)
            self.assertEqual(server.ask("GET", "/v1/sluice/cache?request=other")[0], 404)
            state = server.ask("DELETE", "/v1/sluice/cache")[2]
            self.assertEqual((state["remembered_tokens"], state["disk_bytes"]), (0, 0))
            self.assertEqual(server.complete(date.format(2))[1], 0)

    def test_the_command_lists_and_clears(self):
        with Remembering(self.folder) as server:
            server.complete(STORY)

        def listed():
            return json.loads(subprocess.run([SLUICE, "cache", "list", self.folder, "--json"], text=True,
                                             capture_output=True, timeout=SECONDS, check=True).stdout)
        self.assertEqual({row["kind"] for row in listed()}, {"rows", "state"})
        self.assertEqual(sum(row["bytes"] for row in listed()), sum(f.stat().st_size for f in self.folder.iterdir()))
        subprocess.run([SLUICE, "cache", "clear", self.folder], timeout=SECONDS, check=True)
        self.assertEqual(listed(), [])


if __name__ == "__main__":
    unittest.main()
