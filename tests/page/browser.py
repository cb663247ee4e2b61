"""A real browser, controlled by the WebDriver protocol through Debian's chromedriver."""

import base64
import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1200,800"]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's key for a reference to an element
ENTER, ESCAPE, UP, CONTROL = "\ue007", "\ue00c", "\ue013", "\ue009"


def installed():
    return shutil.which("chromedriver") and shutil.which("chromium")


class Browser:
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory()
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.driver.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                self.root = f"http://127.0.0.1:{found[1]}"
                break
        options = {"binary": shutil.which("chromium"), "args": FLAGS + [f"--user-data-dir={self.profile.name}"]}
        always = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.session = ""
        self.session = "/session/" + self.call("POST", "/session", {"capabilities": {"alwaysMatch": always}})["sessionId"]

    def close(self):
        self.call("DELETE", "")
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        self.profile.cleanup()

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + self.session + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def reload(self):
        """Reloads the page once it has saved the conversation, because browsers drop pending writes."""
        self.wait(lambda: self.run("return !Number(document.body.dataset.unsaved)"), "all is saved")
        self.call("POST", "/refresh", {})

    def run(self, script, *arguments):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def element(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.call("POST", f"/element/{self.element(selector)}/click", {})

    def type(self, selector, text):
        self.call("POST", f"/element/{self.element(selector)}/value", {"text": text})

    def say_yes(self):
        self.call("POST", "/alert/accept", {})

    def keys(self, *keys):
        """Presses the keys together."""
        actions = [{"type": "keyDown", "value": key} for key in keys] + [{"type": "keyUp", "value": key} for key in reversed(keys)]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def text(self, selector):
        return self.run("const e = document.querySelector(arguments[0]); return e ? e.innerText : ''", selector)

    def count(self, selector):
        return self.run("return document.querySelectorAll(arguments[0]).length", selector)

    def visible(self, selector):
        return self.run("const e = document.querySelector(arguments[0]); return !!e && e.checkVisibility()", selector)

    def wait(self, condition, what, seconds=10):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := condition():
                return value
            time.sleep(0.02)
        raise AssertionError(f"{what}: not within {seconds} s; the page shows {self.text('body')!r}")

    def width(self, pixels, height=700, phone=True):
        self.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": {
            "width": pixels, "height": height, "deviceScaleFactor": 1, "mobile": phone}})

    def colours(self, scheme):
        self.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]}})

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", "/screenshot")))

    def console(self):
        return self.call("POST", "/se/log", {"type": "browser"})
