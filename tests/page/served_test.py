#!/usr/bin/env python3
"""The page of `sluice serve` in a real browser with a real model.

    served_test.py PROGRAM [--picture FILE]    also leaves a screenshot there
"""

import argparse
import os
import subprocess
import sys
import tempfile
import unittest

import browser
from browser import ENTER

PROGRAM = PICTURE = None
LAST = "article.assistant:last-child "


class Served:
    def __init__(self, *options):
        self.process = subprocess.Popen([PROGRAM, "serve", "--port", "0", *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().removeprefix("listening on ").strip() + "/"

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class ServedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def serve(self, *options):
        server = Served(*options)
        self.addCleanup(server.stop)
        self.browser.open(server.url)
        return server

    def ask(self, text):
        self.browser.type("#message", text + ENTER)
        self.browser.wait(lambda: self.browser.visible("#send"), "the answer ends", 60)
        return self.browser.text(LAST + ".markdown")

    def begun(self):
        self.browser.wait(lambda: self.browser.text("#place"), "the page begins")

    def tearDown(self):
        self.assertEqual([entry["message"] for entry in self.browser.console() if "Content Security Policy" in entry["message"]], [])

    def test_conversation(self):
        b = self.browser
        server = self.serve()
        self.begun()
        self.assertIn("delta-story", b.text("#model"))
        b.run("settings.temperature = '0'; settings.max_tokens = '60';")
        story = self.ask("Tell me a story about a cat.")
        self.assertGreater(len(story), 40)
        self.assertRegex(b.text("#status"), r"\d+\stokens\s· [\d.]+\stok/s\s· first\stoken\s[\d.]+\ss\s· .*context\s\d+\sof\s\d+")
        b.click(LAST + 'button[aria-label="Answer again in a new branch"]')
        b.wait(lambda: "2/2" in b.text(LAST), "a second branch", 30)
        b.wait(lambda: b.visible("#send"), "the answer ends", 30)
        self.assertEqual(b.text(LAST + ".markdown"), story)  # the same greedy answer again
        b.click(LAST + 'button[aria-label="Continue this answer"]')
        b.wait(lambda: len(b.text(LAST + ".markdown")) > len(story), "it goes on", 30)
        b.wait(lambda: b.visible("#send"), "the answer ends", 30)
        self.assertTrue(b.text(LAST + ".markdown").startswith(story))
        if PICTURE:
            b.run("settings.max_tokens = '120';")
            self.ask("And what did the dog do?")
            b.picture(PICTURE)
        server.stop()
        self.ask("Are you there?")
        self.assertEqual(b.text(LAST + ".error"), "The server cannot be reached.")

    def test_remembered_prompts(self):
        b = self.browser
        self.serve("--api-key", "sesame")
        b.wait(lambda: b.visible("#key"), "the key is asked for")
        b.type("#key", "sesame" + ENTER)
        self.begun()
        b.run("settings.max_tokens = '8'; current.system = 'You tell stories. '.repeat(30);")
        for question in ("Tell me about a dragon.", "And what did the dragon do then, on the next day?"):
            self.ask(question)
        b.click("#open-settings")
        b.click("#open-memory")
        b.wait(lambda: b.count("#memory-tree tbody tr") > 0, "the tree")
        tree = b.text("#memory-tree")
        for part in ("You tell stories", "device", "64"):
            self.assertIn(part, tree)
        if PICTURE:
            b.picture(PICTURE.replace(".png", "-remembered.png"))

    def test_stop(self):
        b = self.browser
        self.serve()
        self.begun()
        b.run("settings.max_tokens = '1200'; settings.temperature = '1';")
        b.type("#message", "Tell me a long story." + ENTER)
        b.wait(lambda: len(b.text(LAST + ".markdown")) > 10, "the answer streams", 30)
        b.click("#stop")
        b.wait(lambda: b.visible("#send"), "it stops")

    def test_kept_on_the_server_behind_a_key(self):
        b = self.browser
        with tempfile.TemporaryDirectory() as folder:
            self.serve("--data", folder, "--api-key", "sesame")
            b.wait(lambda: b.visible("#key"), "the key is asked for")
            b.type("#key", "sesame" + ENTER)
            b.wait(lambda: b.text("#place") == "Kept on the server", "the server keeps conversations")
            b.run("settings.max_tokens = '10';")
            said = self.ask("Keep this.")
            b.wait(lambda: os.listdir(folder), "a file on the disk")
            b.run("localStorage.removeItem('sluice.open')")
            b.reload()
            b.wait(lambda: b.count("#conversations li") == 1, "it is listed")
            b.click('[aria-label="Open Keep this."]')
            b.wait(lambda: b.text(LAST + ".markdown") == said, "it is read again")
            b.click('[aria-label="Delete Keep this."]')
            b.say_yes()
            b.wait(lambda: b.count("#conversations li") == 0, "it is gone")


def main():
    global PROGRAM, PICTURE
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--picture")
    options, rest = parser.parse_known_args()
    PROGRAM, PICTURE = options.program, options.picture
    if not browser.installed():
        print("skipped: chromium and chromedriver are not installed (tools/install-packages chromium chromium-driver)")
        return 77
    return 0 if unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
