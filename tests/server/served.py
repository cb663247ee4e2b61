"""Shared by the tests of the server: starts a server and acts as its clients, with the standard library and raw sockets only.

    SOME_test.py SLUICE [PRELOAD]

PRELOAD is a library that makes reads and writes fail.
"""

import contextlib
import http.client
import json
import socket
import subprocess
import sys
import time
import unittest

SLUICE = sys.argv.pop(1)
PRELOAD = sys.argv.pop(1) if sys.argv[1:] and sys.argv[1].endswith(".so") else None  # makes reads and writes fail
SECONDS = 120  # for anything: sanitized builds on busy machines are slow
STORY = [{"role": "user", "content": "Tell me a story about a dragon."}]


class Server:
    """A server on a port of its own; `launcher` is the command that starts it, if it is not started directly."""

    def __init__(self, *arguments, launcher=(), stdin=subprocess.DEVNULL):
        self.process = subprocess.Popen([*launcher, SLUICE, "serve", "--port", "0", *map(str, arguments)], text=True, stdin=stdin,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line.startswith("listening on http"):
            raise RuntimeError(f"{line!r}: {self.process.stderr.read()}")
        self.url = line.split()[-1]
        self.port = int(self.url.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=SECONDS)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)

    def request(self, method, path, body=None, headers=None):
        """Sends a request on a new connection; returns status, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        with contextlib.closing(connection):
            text = body if isinstance(body, (bytes, str, type(None))) else json.dumps(body)
            connection.request(method, path, text, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    def post(self, path, body, **headers):
        status, _, text = self.request("POST", path, body, headers)
        return status, json.loads(text)

    def chat(self, **fields):
        return self.post("/v1/chat/completions", {"messages": STORY, "max_tokens": 8, "temperature": 0} | fields)

    def stream(self, **fields):
        """A connection on which a streamed chat was requested; nothing has been read yet."""
        body = json.dumps({"messages": STORY, "max_tokens": 1900, "ignore_eos": True, "stream": True} | fields).encode()
        client = self.connect()
        client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                       b"Content-Length: %d\r\n\r\n" % len(body) + body)
        return client

    def raw(self, data, shut=False):
        """Sends these bytes; returns the server's answer until it closes."""
        with self.connect() as client:
            with contextlib.suppress(ConnectionError):
                client.sendall(data)
                if shut:
                    client.shutdown(socket.SHUT_WR)
            return read_all(client)

    def metric(self, name):
        text = self.request("GET", "/metrics")[2].decode()
        return float(next(line.split()[1] for line in text.splitlines() if line.startswith(name + " ")))

    def wait_for(self, name, reached):
        """Waits until the metric matches `reached`: a number, or a condition."""
        accepts = reached if callable(reached) else lambda value: value == reached
        end = time.monotonic() + SECONDS
        while not accepts(value := self.metric(name)):
            if time.monotonic() > end:
                raise AssertionError(f"{name} stays {value}")
            time.sleep(0.02)


def read_all(client):
    """Reads until the other side closes the connection in any way."""
    text = b""
    with contextlib.suppress(ConnectionError):
        while piece := client.recv(65536):
            text += piece
    client.close()
    return text


def events(body):
    """The data of server-sent events, by line."""
    return [line[6:] for line in body.decode().splitlines() if line.startswith("data: ")]


class SharedServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--max-body", "1MB", "--parallel", 4)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
