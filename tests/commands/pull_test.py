#!/usr/bin/env python3
"""sluice pull against a local hub that can break off, send wrong data and lose files.

    pull_test.py SLUICE FOLDER_OF_TINY_MODELS
"""

import hashlib
import json
import pathlib
import signal
import subprocess
import threading
import time
import unittest

from harness import MODELS, SECONDS, SLUICE, CommandTest, environment
from hub_server import COMMIT, Hub

NAME = "Owner/Tiny-1.0"
OTHERS = ("README.md", "pytorch_model.bin", "onnx/model.onnx", "original/config.json", "consolidated.safetensors",
          "../evil.json", ".hidden.json", "/etc/evil.json", "model.gguf")


class Pull(CommandTest):
    def setUp(self):
        super().setUp()
        model = MODELS / "qwen3_moe"
        self.files = {path.name: path.read_bytes() for path in model.iterdir() if path.name != "expect.safetensors"}
        self.files["empty.txt"] = b""
        self.hub = Hub(NAME, self.files | {name: b"not wanted" for name in OTHERS})
        self.addCleanup(self.hub.close)
        self.home = self.folder / "home"
        self.own = self.home / ".local/share/sluice/models"
        self.environment = environment(HOME=str(self.home), HF_ENDPOINT=self.hub.url + "/", no_proxy="*")
        for name in ("XDG_DATA_HOME", "HF_HOME", "HF_HUB_CACHE", "HF_TOKEN", "SLUICE_MODELS"):
            self.environment.pop(name, None)
        self.weights = len(self.files["model.safetensors"])

    def pull(self, *options):
        return json.loads(self.run_well("pull", NAME, "--json", *options, env=self.environment))

    def refuse(self, *options, says, name=NAME, status=1):
        run = self.expect_error("pull", name, *options, env=self.environment, says=says, status=status)
        self.assertFalse((self.own / NAME).exists())
        return run

    def check(self):
        """Exactly the wanted files are present, byte for byte."""
        found = {path.name: path.read_bytes() for path in (self.own / NAME).iterdir()}
        self.assertEqual(found, self.files)
        self.assertEqual([path.name for path in (self.own / "Owner").iterdir()], ["Tiny-1.0"])

    def ranges(self):
        return [asked for path, asked, _ in self.hub.requests if path.startswith("/store/")]

    def test_a_model_comes_whole_and_runs(self):
        got = self.pull()
        self.check()
        bytes_ = sum(map(len, self.files.values()))
        self.assertEqual(got, {"name": NAME, "path": str(self.own / NAME), "commit": COMMIT, "files": len(self.files),
                               "bytes": bytes_, "bytes_received": bytes_})
        self.assertIn(NAME, self.run_well("list", "--names", env=self.environment).split("\n"))
        self.run_well("run", "-m", NAME, "--threads", "1", "-n", "1", "--prompt-tokens", "1,2", env=self.environment)
        self.assertEqual(self.pull()["bytes_received"], 0)
        (self.own / NAME / "config.json").write_text("{}")
        self.expect_error("pull", NAME, env=self.environment, says=["differs", f"sluice rm {NAME}"])
        self.run_well("rm", NAME, env=self.environment)
        self.assertIn("pulled", self.run_well("pull", NAME, env=self.environment))
        self.check()

    def test_a_broken_connection_is_gone_on_with(self):
        self.hub.cuts = [1000, 2000, 0]
        self.pull()
        self.check()
        self.assertEqual(self.ranges(), [None, "bytes=1000-", "bytes=3000-", "bytes=3000-"])

    def test_a_server_without_ranges(self):
        self.hub.ranges, self.hub.cuts = False, [1000]
        self.pull()
        self.check()

    def test_a_connection_that_stays_broken(self):
        self.hub.cuts = [0] * 100
        self.refuse(says=["model.safetensors"])
        self.assertLess(len(self.ranges()), 10)

    def started(self):
        """Starts a pull that waits in the middle of the weights."""
        self.hub.pause = threading.Event()
        self.addCleanup(self.hub.pause.set)
        run = subprocess.Popen([SLUICE, "pull", NAME], env=self.environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + SECONDS
        while self.hub.sent < self.weights // 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        return run

    def end_midway(self, sent):
        """Ends a pull by a signal in the middle of the weights; returns its output."""
        run = self.started()
        unfinished = self.own / "Owner" / f".{pathlib.Path(NAME).name}.pull"
        while not list(unfinished.glob("model.safetensors.*.part")):
            time.sleep(0.01)
        self.expect_error("pull", NAME, env=self.environment, says=["another program"])
        time.sleep(0.2)  # until what was sent is written
        run.send_signal(sent)
        _, error = run.communicate(timeout=SECONDS)
        self.assertEqual(run.returncode, -sent)
        self.hub.pause.set()
        self.hub.pause, self.hub.sent = None, 0
        self.assertNotIn(NAME, self.run_well("list", env=self.environment))
        return error

    def test_killed_and_interrupted_pulls_are_gone_on_with(self):
        for sent in (signal.SIGKILL, signal.SIGINT):
            with self.subTest(sent):
                error = self.end_midway(sent)
                if sent == signal.SIGINT:
                    self.assertEqual(error, f"sluice: interrupted; 'sluice pull {NAME}' continues from here\n")
                self.hub.requests.clear()
                got = self.pull()
                self.check()
                self.assertIsNotNone(self.ranges()[-1])
                self.assertLess(got["bytes_received"], self.weights)
                self.run_well("rm", NAME, env=self.environment)
                self.hub.sent = 0

    def test_what_a_pull_left_is_removed_too(self):
        self.end_midway(signal.SIGKILL)
        self.run_well("rm", NAME, env=self.environment)
        self.assertEqual(list(self.own.iterdir()), [])
        self.expect_error("rm", NAME, env=self.environment, says=[NAME])

    def test_bytes_that_are_not_what_was_promised(self):
        self.hub.damage = True
        self.refuse(says=["model.safetensors", "checksum"])
        self.hub.damage = False
        self.hub.claimed["model.safetensors"] = 100
        self.refuse(says=["more bytes"])
        self.hub.claimed["model.safetensors"] = 10**18
        self.refuse(says=["GB free", NAME])

    def test_a_part_that_an_earlier_pull_left_damaged(self):
        unfinished = self.own / "Owner/.Tiny-1.0.pull"
        unfinished.mkdir(parents=True)
        sha = hashlib.sha256(self.files["model.safetensors"]).hexdigest()
        (unfinished / f"model.safetensors.{sha[:16]}.part").write_bytes(b"x" * 1000)
        (unfinished / "model.safetensors.0123456789abcdef.part").write_bytes(b"of another version")
        (unfinished / "config.json").write_bytes(b"x" * len(self.files["config.json"]))
        self.pull()
        self.check()
        self.assertEqual(self.ranges(), ["bytes=1000-", None])

    def test_a_token_is_for_the_hub_alone(self):
        self.hub.token = "hf_secret"
        self.refuse(says=["HF_TOKEN"])
        self.environment["HF_TOKEN"] = "hf_secret"
        self.pull()
        self.check()
        for path, _, token in self.hub.requests[-len(self.files) :]:
            self.assertEqual(token, None if path.startswith("/store/") else "Bearer hf_secret")

    def test_what_is_not_there(self):
        self.refuse(name="Owner/Other", says=["Owner/Other"])
        self.refuse("--revision", "no/such branch", says=["no/such branch"])
        for name in ("../evil", "a/b/c", "/etc", "", "a b", "a/..", "-x"):
            self.refuse("--", name=name, says=["expected"] if name[:1] != "-" else [], status=2)
        del self.hub.files["config.json"]
        self.refuse(says=["config.json"])
        self.hub.listing = lambda: ["not", "a", "model"]
        self.refuse(says=["hub of models"])
        self.environment["HF_ENDPOINT"] = "http://127.0.0.1:9"
        self.refuse(says=["http://127.0.0.1:9"])
        self.environment["HF_ENDPOINT"] = "file:///etc"
        self.refuse(says=["file:///etc"])


if __name__ == "__main__":
    unittest.main()
