"""A server as an object."""

import copy
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

import sluice
from test_chat import FORM_OF_CLIENTS, TOOL


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


def test_the_server_reads_conversations_alike(model):
    """In the forms that clients use."""
    body = {"messages": FORM_OF_CLIENTS, "tools": [TOOL], "tool_choice": "none", "max_tokens": 20, "temperature": 0}
    with sluice.serve("delta-story") as server:
        answer = post(server.url + "/v1/chat/completions", body)
    made = model.chat(FORM_OF_CLIENTS, tools=[TOOL], tool_choice="none", max_tokens=20, temperature=0)
    assert answer["choices"][0]["message"]["content"] == made.content
    assert answer["usage"]["prompt_tokens"] == made.generation.prompt_tokens


def test_errors_by_kind(tmp_path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(sluice.CheckpointError):
        sluice.serve(tmp_path)
    with pytest.raises(sluice.ResourceError):
        sluice.serve(options=["--memory", "1MB"])
    with sluice.serve() as server, pytest.raises(sluice.InputError, match="cannot listen"):
        sluice.serve(port=int(server.url.rsplit(":", 1)[1]))
    assert "127.0.0.1" not in repr(server)
    with pytest.raises(TypeError, match="copied"):
        copy.copy(server)


def test_a_server_that_is_forgotten_ends():
    """When the last reference is dropped, at the latest with the program; a forked process does not end it."""
    program = """
import os, sluice, urllib.request
server = sluice.serve()
child = os.fork()
if child == 0:
    raise SystemExit
os.waitpid(child, 0)
assert urllib.request.urlopen(server.url + "/health", timeout=60).status == 200
print(server.url, end="")
"""
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    with pytest.raises(OSError):
        urllib.request.urlopen(ended.stdout + "/health", timeout=5)


def test_a_server_ends_with_its_program_however_that_ends():
    """Even if the thread that started it ended before, and a forked process continues."""
    program = """
import os, sluice, threading, time
made = []
thread = threading.Thread(target=lambda: made.append(sluice.serve()))
thread.start()
thread.join()
child = os.fork()
if child > 0:
    print(child, made[0].url, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-W", "ignore", "-c", program], stdout=subprocess.PIPE, text=True) as process:
        child, url = process.stdout.readline().split()
        try:
            assert urllib.request.urlopen(url + "/health", timeout=60).status == 200
            process.kill()
            process.wait()
            with pytest.raises(OSError):
                for _ in range(600):
                    urllib.request.urlopen(url + "/health", timeout=5)
                    time.sleep(0.1)
        finally:
            process.kill()
            os.kill(int(child), signal.SIGKILL)


def test_ctrl_c_is_the_programs():
    """In a terminal or a notebook cell, entire process groups receive it."""
    program = """
import os, signal, sluice, time, urllib.request
signal.signal(signal.SIGINT, signal.default_int_handler)
with sluice.serve() as server:
    try:
        os.killpg(0, signal.SIGINT)
        time.sleep(60)
    except KeyboardInterrupt:
        for _ in range(20):
            assert urllib.request.urlopen(server.url + "/health", timeout=60).status == 200
            time.sleep(0.05)
        print("done")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, start_new_session=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


def test_wrong_options_are_one_sentence():
    with pytest.raises(sluice.InputError, match="frobnicate"):
        sluice.serve(options=["--frobnicate"])


def test_command_line():
    run = subprocess.run([sys.executable, "-m", "sluice", "run", "--raw", "Once upon a time", "-n", "8", "--temperature", "0"],
                         capture_output=True, text=True)
    assert run.returncode == 0 and "there was a little girl" in run.stdout
