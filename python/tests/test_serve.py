"""A server of one's own, as an object."""

import json
import subprocess
import sys
import urllib.request

import pytest

import sluice


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_serve(model):
    messages = [{"role": "user", "content": "Tell me a story."}]
    with sluice.serve("delta-story") as server:
        answer = post(server.url + "/v1/chat/completions", {"messages": messages, "max_tokens": 20, "temperature": 0})
    assert answer["choices"][0]["message"]["content"] == model.chat(messages, max_tokens=20, temperature=0).content
    with pytest.raises(OSError):
        urllib.request.urlopen(server.url + "/health", timeout=5)


def test_wrong_options_are_one_sentence():
    with pytest.raises(sluice.InputError, match="frobnicate"):
        sluice.serve(options=["--frobnicate"])


def test_command_line():
    run = subprocess.run([sys.executable, "-m", "sluice", "run", "--raw", "Once upon a time", "-n", "8", "--temperature", "0"],
                         capture_output=True, text=True)
    assert run.returncode == 0 and "there was a little girl" in run.stdout
