#!/usr/bin/env python3
"""The page of `sluice serve` in a real browser, against a server whose answers are scripted.

    page_test.py [--pictures FOLDER]    also leaves screenshots there
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import browser
import scripted_server
from browser import CONTROL, ENTER, ESCAPE, UP

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURES = None
LAST = "article.assistant:last-child "


def embedded():
    """The page and its policy as the build embeds them."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["cmake", f"-DOUT={folder}", "-P", ROOT / "apps/server/page/embed.cmake"], check=True)
        out = pathlib.Path(folder)
        return (out / "index.html").read_bytes(), (out / "policy.txt").read_text()


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = embedded()
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def setUp(self):
        self.server = scripted_server.Server(*self.page)  # a new port each time, so that storage is empty
        self.open()

    def tearDown(self):
        b = self.browser
        problems = [entry["message"] for entry in b.console()
                    if "Content Security Policy" in entry["message"] or "Uncaught" in entry["message"]]
        b.width(1200, 800, phone=False)
        self.server.stop()
        self.assertEqual(problems, [])

    def open(self):
        self.browser.open(self.server.url())
        self.browser.wait(lambda: self.browser.text("#place"), "the page begins")

    def say(self, text):
        self.browser.type("#message", text + ENTER)

    def idle(self):
        self.browser.wait(lambda: self.browser.visible("#send"), "the answer ends")

    def ask(self, text):
        self.say(text)
        self.idle()
        return self.browser.text(LAST + ".markdown")

    def press(self, label, within=LAST):
        self.browser.click(f'{within}button[aria-label="{label}"]')

    def picture(self, name):
        if PICTURES:
            self.browser.picture(pathlib.Path(PICTURES) / f"{name}.png")

    def test_send_and_stream(self):
        self.assertEqual(self.ask("hello you"), "You said: hello you")
        status = self.browser.text("#status").replace("\u00a0", " ")
        for part in ("tokens", "first token", "64 of 100 prompt tokens cached", "context 10", "of 4096"):
            self.assertIn(part, status)
        asked = self.server.asked[0]
        self.assertEqual(asked["messages"], [{"role": "user", "content": "hello you"}])
        self.assertEqual((asked["model"], asked["stream"]), ("scripted", True))
        self.assertEqual(self.browser.text("#title"), "hello you")
        self.assertEqual(self.browser.text("#message"), "")

    def test_prompt_progress(self):
        self.say("long prompt")
        self.browser.wait(lambda: "of 2048 tokens" in self.browser.text("#status"), "progress is shown")
        self.idle()
        self.assertIn("You said", self.browser.text(LAST))

    def test_stop_keeps_what_came_and_continue_goes_on(self):
        for stop in (lambda: self.browser.click("#stop"), lambda: self.browser.keys(ESCAPE)):
            self.say("slow answer")
            self.browser.wait(lambda: "w5" in self.browser.text(LAST), "the answer streams")
            self.assertIn("tok/s", self.browser.text("#status"))
            stop()
            self.idle()
            self.assertTrue(self.server.gone.wait(5), "the server was not told")
            self.server.gone.clear()
            self.assertIn("stopped", self.browser.text(LAST + ".actions"))
        before = self.browser.text(LAST + ".markdown")
        self.press("Continue this answer")
        self.browser.wait(lambda: "goes on." in self.browser.text(LAST), "the answer is continued")
        self.idle()
        self.assertEqual(self.browser.text(LAST + ".markdown"), before.strip() + " and this goes on.")
        self.assertEqual(self.server.asked[-1]["messages"][-1]["role"], "assistant")

    def test_regenerate_makes_a_branch(self):
        self.ask("hello")
        self.press("Answer again in a new branch")
        self.browser.wait(lambda: "2/2" in self.browser.text(LAST), "a second branch")
        self.idle()
        self.assertEqual(len(self.server.asked), 2)
        self.assertEqual(self.server.asked[0], self.server.asked[1])
        self.press("Previous branch")
        self.assertIn("1/2", self.browser.text(LAST))

    def test_edit_makes_a_branch(self):
        self.ask("first question")
        self.ask("second question")
        self.browser.type("#message", UP)  # edits the last message
        self.browser.run("document.querySelector('.editor textarea').value = 'another question'")
        self.press("Send (Ctrl+Enter)", ".editor ")
        self.idle()
        self.assertEqual(self.browser.text(LAST + ".markdown"), "You said: another question")
        self.assertEqual([m["content"] for m in self.server.asked[-1]["messages"]],
                         ["first question", "You said: first question", "another question"])
        self.press("Previous branch", "article.user:nth-of-type(3) ")
        self.assertEqual(self.browser.text(LAST + ".markdown"), "You said: second question")
        self.browser.reload()
        self.browser.wait(lambda: "second question" in self.browser.text(LAST), "the branch is remembered")

    def test_edited_answer_stands(self):
        self.ask("hello")
        self.press("Edit in a new branch")
        self.browser.run("document.querySelector('.editor textarea').value = 'My words'")
        self.press("Save (Ctrl+Enter)", ".editor ")
        self.assertEqual(self.browser.text(LAST + ".markdown"), "My words")
        self.assertEqual(len(self.server.asked), 1)

    def test_reload_and_conversations(self):
        self.ask("the first one")
        self.browser.keys(CONTROL, "\ue008", "o")
        self.browser.wait(lambda: self.browser.count("article") == 0, "a new conversation")
        self.ask("the second one")
        self.browser.reload()
        self.browser.wait(lambda: "the second one" in self.browser.text("article.user"), "the open one is shown again")
        self.assertEqual(self.browser.count("#conversations li"), 2)
        self.browser.click('[aria-label="Open the first one"]')
        self.browser.wait(lambda: "the first one" in self.browser.text("article.user"), "the other one")
        self.browser.type("#search", "second")
        self.assertEqual(self.browser.count("#conversations li"), 1)
        self.browser.click('[aria-label="Delete the second one"]')
        self.browser.say_yes()
        self.browser.wait(lambda: self.browser.count("#conversations li") == 0, "it is gone")
        self.browser.reload()
        self.browser.wait(lambda: self.browser.count("#conversations li") == 1, "and stays so")

    def test_reload_while_streaming(self):
        self.say("slow answer")
        self.browser.wait(lambda: "w120" in self.browser.text(LAST), "the answer streams")
        self.browser.reload()
        self.browser.wait(lambda: "stopped" in self.browser.text(LAST + ".actions"), "what had come is there")
        self.assertIn("w50", self.browser.text(LAST))

    def test_two_conversations_at_once(self):
        self.say("slow one")
        self.browser.wait(lambda: "w3" in self.browser.text(LAST), "the answer streams")
        self.browser.click("#new")
        self.assertEqual(self.ask("quick"), "You said: quick")
        self.browser.click('[aria-label="Open slow one"]')
        self.browser.wait(lambda: "w40" in self.browser.text(LAST), "it goes on")
        self.browser.click("#stop")
        self.idle()

    def test_thinking_is_folded(self):
        self.assertEqual(self.ask("think hard"), "Four.")
        self.assertFalse(self.browser.run(f"return document.querySelector('{LAST}.thinking').open"))
        self.browser.click(LAST + ".thinking summary")
        self.assertIn("Let me see.", self.browser.text(LAST + ".thinking"))
        self.ask("then")
        self.assertEqual(self.server.asked[-1]["messages"][1]["reasoning_content"], "Let me see. It is four.")

    def test_tool_calls_are_shown_and_answered(self):
        self.ask("call it")
        self.assertIn("weather", self.browser.text(LAST + ".call"))
        self.assertIn('"city": "<b>Bern</b>"', self.browser.text(LAST + ".call pre"))
        self.press("Give the results of the calls")
        self.browser.type(".editor textarea", "sunny")
        self.press("Send (Ctrl+Enter)", ".editor ")
        self.browser.wait(lambda: "The tool said sunny." in self.browser.text(LAST), "the answer to the result")
        self.idle()
        sent = self.server.asked[-1]["messages"]
        self.assertEqual(sent[1]["tool_calls"][0]["function"], {"name": "weather", "arguments": '{"city": "<b>Bern</b>"}'})
        self.assertEqual(sent[2], {"role": "tool", "content": "sunny", "tool_call_id": "c1"})

    def test_each_of_several_calls_gets_its_result(self):
        b = self.browser
        self.ask("markdown first, so that the page is full")
        self.ask("calls of two")
        self.assertEqual(b.count(LAST + 'button[aria-label="Copy"]'), 0)  # there is no text to copy
        self.press("Give the results of the calls")
        self.press("Give the results of the calls")  # opens it once
        self.assertEqual(b.count(".editor textarea"), 2)
        self.assertGreaterEqual(b.run("return document.getElementById('scroll').getBoundingClientRect().bottom -"
                                       "document.querySelector('.editor').getBoundingClientRect().bottom"), -1, "out of sight")
        b.type('.editor textarea[aria-label="Result of weather"]', "sunny")
        self.press("Send (Ctrl+Enter)", ".editor ")
        self.assertEqual(b.run("return document.activeElement.getAttribute('aria-label')"), "Result of time")
        b.type('.editor textarea[aria-label="Result of time"]', "noon")
        self.press("Send (Ctrl+Enter)", ".editor ")
        b.wait(lambda: "The tool said noon." in b.text(LAST), "the answer to the results")
        self.idle()
        self.assertEqual(self.server.asked[-1]["messages"][-2:],
                         [{"role": "tool", "content": "sunny", "tool_call_id": "c0"}, {"role": "tool", "content": "noon", "tool_call_id": "c1"}])

    def test_figures_are_not_torn(self):
        b = self.browser
        self.ask("one")
        text = b.run("return document.getElementById('status').textContent")
        self.assertNotIn(" ", text.replace("\u00a0· ", ""), "a line ends inside a figure")
        self.say("refuse this")
        self.idle()
        self.assertEqual(b.text("#status"), "", "an answer of which nothing came has no figures")

    def test_a_window_that_becomes_small(self):
        b = self.browser
        self.assertTrue(b.visible("#side"))
        b.width(320, 640)
        b.wait(lambda: not b.visible("#side"), "the list makes room")
        b.width(1200, 800, phone=False)
        b.wait(lambda: b.visible("#side"), "the list comes back")

    def test_a_code_block_with_a_long_name(self):
        b = self.browser
        b.width(320, 640)
        self.ask("hostile")
        lines = b.run("const e = document.querySelector('.code-head button'); return e.getClientRects()[0].height")
        self.assertLess(lines, 30, "the button is torn into lines")

    def test_markdown(self):
        self.ask("markdown please")
        b, body = self.browser, LAST + ".markdown "
        self.assertEqual(b.text(body + "h3"), "Heading one")
        self.assertEqual((b.text(body + "strong"), b.text(body + "p em"), b.text(body + "p code")), ("bold", "italic", "code"))
        self.assertEqual(b.run(f"return [...document.querySelectorAll('{body}a')].map(a => a.href)"),
                         ["https://example.org/a_(b)", "https://example.org/plain", "https://example.org/p.png"])
        self.assertEqual((b.count(body + "ol > li"), b.count(body + "ol ul > li")), (2, 2))
        self.assertEqual(b.text(body + "blockquote"), "quoted")
        self.assertEqual(b.text(body + "td.align-end"), "12")
        self.assertEqual(b.text(body + "pre"), "def f(x):\n    return x * 2")
        self.assertIn("snake_case_name stays, 2 * 3 * 4 too. A picture", b.text(body))
        b.run("document.execCommand = () => { window.copied = document.activeElement.value; };"
              "Object.defineProperty(navigator, 'clipboard', {value: undefined});")
        b.click(body + ".code button")
        self.assertEqual(b.run("return window.copied"), "def f(x):\n    return x * 2")
        self.picture("markdown")

    def test_hostile_answers_stay_text(self):
        self.ask("hostile <img src=x onerror=window.hacked=0>")
        b, body = self.browser, LAST + ".body "
        self.assertIsNone(b.run("return window.hacked === undefined ? null : window.hacked"))
        for tag in ("script", "img", "iframe", "svg", "b", "i"):
            self.assertEqual(b.count(body + tag), 0, tag)
        addresses = b.run(f"return [...document.querySelectorAll('{body}a')].map(a => a.protocol)")
        self.assertEqual(set(addresses) - {"http:", "https:"}, set())
        self.assertIn("<script>window.hacked = 1</script>", b.text(body))
        self.assertEqual(b.run(f"return [...document.querySelectorAll('{body}*')].flatMap(e => [...e.attributes])"
                               ".filter(a => a.name.startsWith('on')).length"), 0)

    def test_policy_forbids_what_the_page_does_not_contain(self):
        b = self.browser
        b.run("const s = document.createElement('script'); try { s.text = 'window.hacked = 1'; document.body.append(s); } catch {}"
              "try { document.body.innerHTML += '<img src=x onerror=\"window.hacked = 2\">'; } catch {}")
        self.assertTrue(b.run("return window.hacked === undefined"))
        b.console()  # the expected error messages

    def test_huge_and_odd_markdown_is_quick(self):
        texts = {"brackets": "[" * 100000, "stars": "*a " * 50000, "quotes": ">" * 50000, "ticks": "`a" * 50001 + "``",
                 "underscores": "_a" * 50000, "lists": "\n".join("  " * n + "- x" for n in range(400)),
                 "table": "|" * 20000 + "\n" + "|-" * 20000, "links": "[a](http://x" * 10000, "spaces": "- " + " " * 100000 + "x",
                 "fences": "```\n" * 20001}
        for name, text in texts.items():
            taken = self.browser.run("const t = performance.now(); showMarkdown(document.createElement('div'), arguments[0]);"
                                     "return performance.now() - t", text)
            self.assertLess(taken, 2000, name)

    def test_errors_are_one_sentence(self):
        for text, wanted in {"refuse": "This context is too long.", "busy": "The queue is full. Try again in 7 s.",
                             "fail now": "The device was lost.", "break off": "The answer ended before it was complete."}.items():
            self.ask(text)
            self.assertEqual(self.browser.text(LAST + ".error"), wanted)
        self.press("Answer again in a new branch")
        self.browser.wait(lambda: "2/2" in self.browser.text(LAST), "one can try again")
        self.idle()
        self.assertEqual([m["content"] for m in self.server.asked[-1]["messages"]],  # refusals are not answers
                         ["refuse", "busy", "fail now", "You said: ", "break off"])

    def test_server_gone_and_back(self):
        self.ask("hello")
        port = self.server.server_port
        self.server.stop()
        self.ask("are you there")
        self.assertEqual(self.browser.text(LAST + ".error"), "The server cannot be reached.")
        self.server = scripted_server.Server(*self.page, port)
        self.press("Answer again in a new branch")
        self.browser.wait(lambda: "You said: are you there" in self.browser.text(LAST), "it answers again")
        self.idle()

    def test_key_is_asked_for(self):
        self.server.key = "sesame"
        self.browser.reload()
        b = self.browser
        b.wait(lambda: b.visible("#key"), "the key is asked for")
        b.type("#key", "wrong" + ENTER)
        b.wait(lambda: "did not accept" in b.text("#key-note"), "a wrong one is refused")
        self.picture("key")
        b.type("#key", "sesame" + ENTER)
        b.wait(lambda: b.text("#model") == "scripted", "the right one is taken")
        self.assertEqual(self.ask("hello"), "You said: hello")
        b.reload()
        b.wait(lambda: b.text("#model") == "scripted", "and remembered")
        self.assertFalse(b.visible("#key"))

    def test_settings_reach_the_server(self):
        b = self.browser
        b.keys(CONTROL, ",")
        b.type("#system", "Be brief.")
        b.type('[data-setting="temperature"]', "0.5")
        b.type('[data-setting="max_tokens"]', "12")
        b.type('[data-setting="stop"]', "END")
        b.type('[data-setting="top_p"]', "7")  # out of range, so it is not sent
        self.picture("settings")
        b.keys(ESCAPE)
        self.ask("hello")
        asked = self.server.asked[-1]
        self.assertEqual(asked["messages"][0], {"role": "system", "content": "Be brief."})
        self.assertEqual((asked["temperature"], asked["max_tokens"], asked["stop"]), (0.5, 12, ["END"]))
        self.assertFalse({"top_p", "seed", "tools", "reasoning_effort"} & asked.keys())
        b.reload()
        b.wait(lambda: b.count("article") == 2, "the conversation is there again")
        self.assertEqual(b.run("return document.getElementById('system').value"), "Be brief.")

    def test_kept_on_the_server(self):
        self.server.keeps = True
        self.open()
        self.assertEqual(self.browser.text("#place"), "Kept on the server")
        self.ask("keep this")
        self.browser.wait(lambda: len(self.server.kept) == 1, "the server has it")
        kept = next(iter(self.server.kept.values()))
        self.assertEqual(kept["title"], "keep this")
        self.browser.reload()
        self.browser.wait(lambda: "You said: keep this" in self.browser.text("#thread"), "it is read again")
        self.browser.click('[aria-label="Delete keep this"]')
        self.browser.say_yes()
        self.browser.wait(lambda: not self.server.kept, "the server forgot it")

    def test_export_and_import(self):
        b = self.browser
        self.ask("export me")
        b.run("URL.createObjectURL = (blob) => { blob.text().then((text) => { window.exported = text; }); return ''; };"
              "HTMLAnchorElement.prototype.click = () => {}; document.getElementById('export').click();")
        exported = json.loads(b.wait(lambda: b.run("return window.exported"), "the file"))["conversations"][0]
        self.assertEqual([m["content"] for m in exported["messages"].values()], ["export me", "You said: export me"])
        hostile = {"id": "imported", "title": "<b>in</b>", "messages": {
            "m1": {"id": "m1", "parent": "", "role": "user", "content": "from a file"},
            "m2": {"id": "m2", "parent": "m1", "role": "assistant", "content": "yes", "stats": {"tokens": "<i>"}, "calls": [None]},
            "bad": {"id": "bad", "parent": 7, "role": "user"}, "m3": {"id": "m3", "parent": "m2", "role": "system", "content": "x"}}}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"conversations": [hostile, None, {"id": "../x", "messages": {}}]}, file)
            file.flush()
            b.run("document.getElementById('import-file').hidden = false")
            b.type("#import-file", file.name)
            b.wait(lambda: "from a file" in b.text("#thread"), "the file is read")
        self.assertEqual(b.count("article"), 2)
        self.assertEqual(b.text("#title"), "<b>in</b>")

    def test_remembered_prompts(self):
        b = self.browser
        b.click("#open-settings")
        b.click("#open-memory")
        b.wait(lambda: "Nothing is cached" in b.text("#memory-note"), "an empty tree")
        self.server.nodes = [
            {"parent": -1, "begin": 0, "end": 640, "on_device": 640, "on_host": 0, "on_disk": 640, "state": ["device", "disk"],
             "bytes": 3 << 20, "hits": 12, "text": "<|system|>\nYou are\na <b>helpful</b> assistant"},
            {"parent": 0, "begin": 640, "end": 1024, "on_device": 256, "on_host": 384, "on_disk": 0, "state": [],
             "bytes": 2000, "hits": 0, "text": "Tell me a story"},
            {"parent": 1, "begin": 1024, "end": 1088, "on_device": 0, "on_host": 0, "on_disk": 0, "state": ["host"],
             "bytes": 0, "hits": 1},
            {"parent": 0, "begin": 640, "end": 704, "on_device": 64, "on_host": 0, "on_disk": 0, "state": ["host"],
             "bytes": 70000, "hits": 2, "text": "Write a poem"}]
        b.click("#reload-memory")
        b.wait(lambda: b.count("#memory-tree tbody tr") == 4, "the tree")
        rows = [b.text(f"#memory-tree tbody tr:nth-child({n})") for n in (1, 2, 3, 4)]
        for part in ("<|system|> You are a <b>helpful</b> assistant", "640", "device, disk", "3.0 MiB", "12"):
            self.assertIn(part, rows[0])
        for part in ("Tell me a story", "1024", "device 256, memory", "–"):
            self.assertIn(part, rows[1])
        self.assertIn("tokens 1024 to 1088", rows[2])
        self.assertIn("gone", rows[2])
        self.assertEqual(b.run("return [...document.querySelectorAll('.memory-text')].map((one) => one.dataset.depth)"),
                         ["0", "1", "2", "1"])
        self.assertIn("4 nodes with 3 states", b.text("#memory-note"))
        self.picture("remembered")
        b.click('#memory button[aria-label="Close"]')
        b.wait(lambda: not b.visible("#memory"), "it closes")

    def test_phone(self):
        b = self.browser
        for scheme in ("light", "dark"):
            b.width(320, 640)
            b.colours(scheme)
            self.open()
            self.ask("markdown please, and averylongwordthatneverendsaverylongwordthatneverendsaverylongword")
            self.assertLessEqual(b.run("return document.documentElement.scrollWidth"), 320)
            self.assertLessEqual(b.run("return document.getElementById('scroll').scrollWidth"), 320)
            self.assertFalse(b.visible("#side"))
            self.assertLessEqual(b.run("return document.getElementById('status').getBoundingClientRect().height"), 60, "three lines")
            self.picture(f"phone-{scheme}")
            b.click("#open-side")
            self.assertTrue(b.visible("#side"))
            self.picture(f"phone-side-{scheme}")
            b.click("#close-side")
            b.click("#open-settings")
            self.assertLessEqual(b.run("return document.getElementById('settings').scrollWidth"), 320)
            self.picture(f"phone-settings-{scheme}")
            b.keys(ESCAPE)
            b.click("#open-side")
            b.click("#new")
        b.colours("light")

    def test_keyboard_and_labels(self):
        b = self.browser
        self.ask("hello")
        self.assertEqual(b.run("return document.activeElement.id"), "message")
        b.run("document.activeElement.blur()")
        b.keys("/")
        self.assertEqual(b.run("return document.activeElement.id"), "message")
        b.keys(CONTROL, "b")
        self.assertFalse(b.visible("#side"))
        b.keys(CONTROL, "b")
        unnamed = b.run("return [...document.querySelectorAll('button, input, textarea, select')].filter(e => e.checkVisibility() &&"
                        "!(e.getAttribute('aria-label') || e.labels?.length || e.textContent.trim())).map(e => e.outerHTML)")
        self.assertEqual(unnamed, [])

    def test_dark_and_light(self):
        b = self.browser
        back = lambda: b.run("return getComputedStyle(document.body).backgroundColor")
        b.colours("light")
        light = back()
        b.colours("dark")
        dark = back()
        self.assertNotEqual(light, dark)
        b.click("#theme")
        self.assertEqual(back(), light)
        b.click("#theme")
        self.assertEqual(back(), dark)
        self.ask("markdown please")
        self.picture("dark")
        b.colours("light")


def main():
    global PICTURES
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", help="leave screenshots in this folder")
    options, rest = parser.parse_known_args()
    PICTURES = options.pictures
    if not browser.installed():
        print("skipped: chromium and chromedriver are not installed (tools/install-packages chromium chromium-driver)")
        return 77
    return 0 if unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
