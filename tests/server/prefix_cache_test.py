"""The prefix cache of sluice serve: across restarts and kills, between servers, and its reports."""

import concurrent.futures
import errno
import json
import os
import pathlib
import random
import subprocess
import tempfile
import time
import unittest
from unittest import mock

from served import PRELOAD, SECONDS, SLUICE, Server

STORY = "Once upon a time there was a little dragon who lived in a cave near the village. " * 12


class Remembering(Server):
    def __init__(self, folder, *arguments):
        super().__init__("--parallel", 2, "--cache-disk", f"{folder}:50MB", *arguments)
        self.errors = None

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Its output on standard error."""
        if self.errors is None:
            self.process.terminate()
            self.errors = self.process.communicate(timeout=SECONDS)[1]
        return self.errors

    def ask(self, method, path, body=None, headers=None):
        status, answer_headers, text = self.request(method, path, body, headers)
        return status, answer_headers, json.loads(text)

    def complete(self, prompt, headers=None, **fields):
        """The text, the number of cached tokens, and the request's id."""
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
        self.assertEqual(list(self.folder.glob("*.tmp")), [])  # partially written files are gone

    def test_two_servers_share_a_folder(self):
        with Remembering(self.folder) as first, Remembering(self.folder) as second:
            text = first.complete(STORY)[0]
            wait_for_files(self.folder, 2)
            end = time.monotonic() + SECONDS
            while second.ask("GET", "/v1/sluice/cache")[2]["disk_bytes"] == 0 and time.monotonic() < end:
                time.sleep(0.5)
                second.complete("Short")  # requests make it scan the folder
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

    @unittest.skipIf(not PRELOAD, "no library to make reads fail")
    def test_files_that_cannot_be_read_are_computed_and_stay(self):
        with Remembering(self.folder) as server:
            text, _, _ = server.complete(STORY)
        files = {file.name for file in self.folder.iterdir()}
        lines = 0
        for reads in (0, 2, 3 * len(files), 3 * len(files) + 3, 3 * len(files) + 5):  # of heads, then of the rest
            with mock.patch.dict(os.environ, LD_PRELOAD=PRELOAD, SLUICE_READS=str(reads)):
                with Remembering(self.folder) as server:
                    self.assertEqual(server.complete(STORY)[0], text, reads)
                    self.assertEqual(server.complete(STORY)[0], text, reads)
                    lines += server.stop().count("Input/output error")
            self.assertLessEqual(files, {file.name for file in self.folder.iterdir()}, reads)
        self.assertGreater(lines, 0)
        with Remembering(self.folder) as server:
            again, cached, _ = server.complete(STORY)
            self.assertEqual(again, text)
            self.assertGreater(cached, 0)

    @unittest.skipIf(not PRELOAD, "no library to make writes fail")
    def test_a_disk_that_takes_nothing_is_told_of_once_and_tried_again(self):
        faults = [(errno.EIO, 0), (errno.ENOSPC, 3), (errno.EIO, 4), (errno.EIO, 5)]  # a file takes four writes and two syncs
        for number, (error, first) in enumerate(faults):
            folder = self.folder / str(number)
            fault = {"SLUICE_WRITES": str(first), "SLUICE_WRITES_FAIL": "6", "SLUICE_WRITE_ERROR": str(error)}
            with self.subTest(fault), mock.patch.dict(os.environ, fault, LD_PRELOAD=PRELOAD):
                with Remembering(folder) as server:
                    text, _, _ = server.complete(STORY)
                    again, cached, _ = server.complete(STORY)
                    self.assertEqual(again, text)
                    self.assertGreater(cached, 0)  # it is in memory
                    for chapter in range(6):  # until writing works again
                        server.complete(f"Chapter {chapter}. " + STORY)
                    said = server.stop()
                self.assertEqual(said.count(os.strerror(error)), 1, said)
                self.assertEqual([file.name for file in folder.iterdir() if file.suffix != ".prefix"], [])
            with self.subTest(fault), Remembering(folder) as server:
                self.assertEqual(server.complete(STORY)[0], text)
                _, cached, request = server.complete("Chapter 5. " + STORY)
                self.assertEqual(server.ask("GET", f"/v1/sluice/cache?request={request}")[2]["from_disk"], cached)
                self.assertGreater(cached, 0)
                self.assertNotIn("removed", server.stop())

    @unittest.skipIf(not PRELOAD, "no library to make a disk slow")
    def test_others_go_on_while_a_slow_disk_writes_and_reads(self):
        def five_more_tokens():
            before = server.metric("sluice_generated_tokens_total")
            server.wait_for("sluice_generated_tokens_total", lambda count: count > before + 5)

        with mock.patch.dict(os.environ, LD_PRELOAD=PRELOAD, SLUICE_SLOW_DISK="2000"):
            with Remembering(self.folder) as server:
                other = server.stream()
                server.wait_for("sluice_requests_decoding", 1)
                text = server.complete(STORY, max_tokens=1)[0]
                five_more_tokens()
                self.assertLess(len(list(self.folder.glob("*.prefix"))), 2)  # two are synced four times
                other.close()
            with Remembering(self.folder) as server, concurrent.futures.ThreadPoolExecutor() as pool:
                other = server.stream()
                server.wait_for("sluice_requests_decoding", 1)
                waiting = pool.submit(server.complete, STORY, max_tokens=1)
                time.sleep(0.5)  # by now it waits for its rows and states
                five_more_tokens()
                self.assertFalse(waiting.done())
                again, cached, _ = waiting.result()
                self.assertEqual(again, text)
                self.assertGreater(cached, 0)
                other.close()

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

    def why(self, server, request):
        """The report, and the command's description of it."""
        said = subprocess.run([SLUICE, "cache", "why", "--server", server.url, "--request", request], text=True,
                              capture_output=True, timeout=SECONDS, check=True).stdout
        return server.ask("GET", f"/v1/sluice/cache?request={request}")[2], said

    def test_it_says_that_a_prompt_was_found_or_differs(self):
        with Remembering(self.folder) as server:
            server.complete(STORY + "The dragon ate an apple.")
            report, _ = self.why(server, server.complete(STORY + "The dragon ate an apple.")[2])
            self.assertEqual(report["reason"], "end")
            self.assertEqual(report["cached_tokens"] + report["recomputed_tokens"], report["prompt_tokens"])
            server.complete(STORY + "The dragon ate a house. " * 30)  # saves a state where it diverges
            report, said = self.why(server, server.complete(STORY + "The dragon ate the clouds. " * 30)[2])
            self.assertEqual(report["reason"], "differs")
            self.assertEqual(report["cached_tokens"], report["agreeing_tokens"] // 64 * 64)
            self.assertIn("dragon", report["parts_behind"])
            self.assertIn("cl", report["parts_with"])
            self.assertIn("a", report["instead_of"])
            self.assertIn("one of them continued with", said)

    def test_it_says_that_nothing_was_saved_or_that_it_was_evicted(self):
        with Server("--parallel", 1, "--cache-memory", "0") as server:
            ask = lambda prompt: json.loads(server.request("POST", "/v1/completions", {"prompt": prompt, "max_tokens": 1})[2])
            why = lambda: json.loads(server.request("GET", "/v1/sluice/cache")[2])["requests"][0]
            ask(STORY)
            ask(STORY[:len(STORY) // 2] + "And so on. " * 20)  # between the states at the beginning and at the end
            self.assertEqual(why()["reason"], "unsaved")
            for n in range(8):  # more than there are places for, without host memory
                ask(f"Number {n}. " + STORY)
            ask(STORY)
            self.assertEqual(why()["reason"], "evicted")

    def test_it_says_that_salts_differ(self):
        with Remembering(self.folder) as server:
            server.complete(STORY)
            report, said = self.why(server, server.complete(STORY, cache_salt="mine")[2])
            self.assertEqual((report["cached_tokens"], report["other_salt"]), (0, True))
            self.assertIn("another cache_salt", said)
            report, _ = self.why(server, server.complete(STORY, cache_salt="mine")[2])
            self.assertNotIn("other_salt", report)

    def test_it_says_that_options_differ(self):
        with Remembering(self.folder) as server:
            server.complete(STORY)
        with Remembering(self.folder, "--kv-bits", "8") as server:
            report, said = self.why(server, server.complete(STORY)[2])
            self.assertEqual((report["cached_tokens"], report["other_options"]), (0, True))
            self.assertIn("other options", said)

    def test_it_names_what_is_volatile(self):
        for number, (first, second, meaning) in enumerate([
                ("x-anthropic-billing-header: cc_version=2; cch=1f3a2;", "x-anthropic-billing-header: cc_version=2; cch=9bb01;",
                 "a client's billing header"),
                ("Today is Aug 3.", "Today is Sep 9.", "a date"), ("It is 10:15:00 now.", "It is 23:47:31 now.", "a time of day")]):
            with self.subTest(meaning), Remembering(self.folder / str(number)) as server:
                server.complete(first + STORY)
                report, said = self.why(server, server.complete(second + STORY)[2])
                self.assertEqual(report["volatile"], meaning)
                self.assertIn(meaning, said)

    def test_keys_learn_nothing_of_each_other(self):
        with Remembering(self.folder, "--cache-per-key", "--api-key", "one", "--api-key", "two") as server:
            one, two = ({"Authorization": f"Bearer {key}"} for key in ("one", "two"))
            request = server.complete(STORY, one)[2]
            self.assertEqual(server.ask("GET", f"/v1/sluice/cache?request={request}", headers=two)[0], 404)
            self.assertEqual(server.ask("GET", "/v1/sluice/cache", headers=two)[2], {"requests": []})
            self.assertEqual(len(server.ask("GET", "/v1/sluice/cache", headers=one)[2]["requests"]), 1)
            self.assertEqual(server.ask("GET", "/v1/sluice/cache?tree", headers=two)[2], {"nodes": []})
            nodes = server.ask("GET", "/v1/sluice/cache?tree", headers=one)[2]["nodes"]
            self.assertIn("little dragon", nodes[0]["text"])
            self.assertEqual(server.ask("DELETE", "/v1/sluice/cache", headers=two)[0], 400)
            report = server.ask("GET", f"/v1/sluice/cache?request={server.complete(STORY, two)[2]}", headers=two)[2]
            self.assertEqual((report["agreeing_tokens"], report["reason"]), (0, "differs"))
            self.assertNotIn("other_salt", report)
            self.assertGreater(server.complete(STORY, one)[1], 0)

    def test_the_tree_has_no_texts_where_several_share_it(self):
        with Remembering(self.folder, "--api-key", "one", "--api-key", "two") as server:
            one, two = ({"Authorization": f"Bearer {key}"} for key in ("one", "two"))
            server.complete(STORY, one)
            nodes = server.ask("GET", "/v1/sluice/cache?tree", headers=two)[2]["nodes"]
            self.assertGreater(len(nodes), 0)
            for node in nodes:
                self.assertNotIn("text", node)

    def test_clocks_play_no_part(self):
        with Remembering(self.folder) as server:
            text = server.complete(STORY)[0]
        for moment in (0, 2**32):  # as if the clock had been set back or forward since they were written
            for file in self.folder.iterdir():
                os.utime(file, (moment, moment))
            with Remembering(self.folder) as server:
                again, cached, _ = server.complete(STORY)
                self.assertEqual(again, text)
                self.assertGreater(cached, 0)

    @unittest.skipIf(not PRELOAD, "no library to set the clock back")
    def test_a_clock_that_goes_back_plays_no_part(self):
        with mock.patch.dict(os.environ, LD_PRELOAD=PRELOAD, SLUICE_CLOCK_BACK="1"):
            with Remembering(self.folder) as server:
                text, _, _ = server.complete(STORY)
                again, cached, _ = server.complete(STORY)
                self.assertEqual(again, text)
                self.assertGreater(cached, 0)
                times = [server.ask("POST", "/v1/completions", {"prompt": "A", "max_tokens": 1})[2]["created"] for _ in range(2)]
                self.assertGreater(times[0], times[1])  # it was set back
            with Remembering(self.folder) as server:
                again, cached, request = server.complete(STORY)
                self.assertEqual(again, text)
                self.assertEqual(server.ask("GET", f"/v1/sluice/cache?request={request}")[2]["from_disk"], cached)
                self.assertGreater(cached, 0)

    def test_keys_of_prompts_and_answers_that_are_gone_on_from(self):
        with Remembering(self.folder, "--reuse-decoded") as server:
            text, _, _ = server.complete(STORY, max_tokens=140, ignore_eos=True, prompt_cache_key="stories")
            said = server.complete(STORY + text + " Then", prompt_cache_key="stories")
            report, why = self.why(server, said[2])
            self.assertGreater(report["decoded_tokens"], 0)
            self.assertIn("rounded differently", why)
            self.assertEqual(server.ask("POST", "/v1/completions", {"prompt": STORY, "prompt_cache_key": 7})[0], 400)
            for path, body in (("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hello"}]}),
                               ("/v1/responses", {"input": "Hello"})):
                status, _, answer = server.ask("POST", path, body | {"prompt_cache_key": "chats", "max_output_tokens"
                                                                     if "input" in body else "max_tokens": 2})
                self.assertEqual(status, 200, answer)

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
