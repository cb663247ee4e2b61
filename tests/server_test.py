"""sluice serve as clients meet it, the friendly ones and the others: standard library and raw sockets alone.

    server_test.py SLUICE
"""

import contextlib
import http.client
import json
import pathlib
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SLUICE = sys.argv.pop(1)
SECONDS = 60  # for anything: a sanitized build on a busy machine is slow
STORY = [{"role": "user", "content": "Tell me a story about a dragon."}]


class Server:
    """A server of its own, on a port of its own."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([SLUICE, "serve", "--port", "0", *map(str, arguments)], text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
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
        """Status, headers and body of one request on a connection of its own."""
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

    def raw(self, data, shut=False):
        """What the server says to these bytes until it closes."""
        with self.connect() as client:
            with contextlib.suppress(ConnectionError):
                client.sendall(data)
                if shut:
                    client.shutdown(socket.SHUT_WR)
            answer = b""
            with contextlib.suppress(ConnectionError):
                while piece := client.recv(65536):
                    answer += piece
            return answer

    def metric(self, name):
        text = self.request("GET", "/metrics")[2].decode()
        return float(next(line.split()[1] for line in text.splitlines() if line.startswith(name + " ")))

    def wait_for(self, name, value):
        end = time.monotonic() + SECONDS
        while self.metric(name) != value:
            if time.monotonic() > end:
                raise AssertionError(f"{name} is {self.metric(name)} and never became {value}")
            time.sleep(0.02)


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


class OpenAI(SharedServer):
    def test_models(self):
        status, _, body = self.server.request("GET", "/v1/models")
        self.assertEqual((status, json.loads(body)["data"][0]["id"]), (200, "delta-story"))
        self.assertEqual(self.server.request("GET", "/models/delta-story")[0], 200)
        self.assertEqual(self.server.request("GET", "/models/other")[0], 404)

    def test_chat_whole_equals_streamed(self):
        for fields in ({}, {"n": 2, "temperature": 1, "seed": 7, "top_p": 0.9}, {"stop": [" the"]}):
            status, whole = self.server.chat(**fields)
            self.assertEqual(status, 200, whole)
            body = {"messages": STORY, "max_tokens": 8, "temperature": 0, "stream": True,
                    "stream_options": {"include_usage": True}} | fields
            status, headers, text = self.server.request("POST", "/v1/chat/completions", body)
            self.assertEqual((status, headers["Content-Type"].split(";")[0]), (200, "text/event-stream"))
            *chunks, usage, done = events(text)
            self.assertEqual(done, "[DONE]")
            said = [""] * len(whole["choices"])
            for choice in (json.loads(chunk)["choices"][0] for chunk in chunks):
                said[choice["index"]] += choice["delta"].get("content") or ""
            self.assertEqual(said, [choice["message"]["content"] for choice in whole["choices"]])
            # What was remembered may differ between the two; everything else must not.
            counted = json.loads(usage)["usage"]
            for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
                self.assertEqual(counted[name], whole["usage"][name])

    def test_logprobs(self):
        _, whole = self.server.chat(logprobs=True, top_logprobs=3, max_tokens=4)
        content = whole["choices"][0]["logprobs"]["content"]
        self.assertEqual(len(content), 4)
        for token in content:
            self.assertEqual(len(token["top_logprobs"]), 3)
            self.assertEqual(token["token"], token["top_logprobs"][0]["token"])  # the most likely was chosen
            self.assertLessEqual(token["logprob"], 0)
        self.assertEqual("".join(token["token"] for token in content), whole["choices"][0]["message"]["content"])

    def test_completions(self):
        asked = {"prompt": ["Once upon a time", "The cat"], "n": 2, "max_tokens": 5, "temperature": 1, "seed": 5, "logprobs": 1}
        status, whole = self.server.post("/v1/completions", asked)
        self.assertEqual(status, 200, whole)
        self.assertEqual([choice["index"] for choice in whole["choices"]], [0, 1, 2, 3])
        self.assertEqual(whole["usage"]["completion_tokens"], 20)
        _, alone = self.server.post("/v1/completions", asked | {"prompt": "The cat", "n": 1})
        self.assertEqual(alone["choices"][0]["text"], whole["choices"][2]["text"])
        ids = self.server.post("/tokenize", {"content": "The cat", "add_special": True})[1]["tokens"]
        _, by_ids = self.server.post("/v1/completions", asked | {"prompt": ids, "n": 1})
        self.assertEqual(by_ids["choices"][0]["text"], alone["choices"][0]["text"])
        _, echo = self.server.post("/v1/completions", {"prompt": "The cat", "max_tokens": 2, "echo": True})
        self.assertTrue(echo["choices"][0]["text"].startswith("The cat"))

    def test_an_answer_is_continued(self):
        _, first = self.server.chat(max_tokens=12)
        text = first["choices"][0]["message"]["content"]
        begun = STORY + [{"role": "assistant", "content": text[:9]}]
        _, rest = self.server.chat(messages=begun, max_tokens=4)
        self.assertEqual(text[:9], "Once upon")
        self.assertTrue(rest["choices"][0]["message"]["content"].startswith(" a time"))

    def test_schema(self):
        schema = {"type": "object", "properties": {"name": {"enum": ["Tim", "Lily"]}}, "required": ["name"],
                  "additionalProperties": False}
        form = {"type": "json_schema", "json_schema": {"name": "hero", "schema": schema}}
        choice = self.complete(response_format=form)
        self.assertIn(json.loads(choice["message"]["content"])["name"], ("Tim", "Lily"))
        whole = self.server.chat(guided_choice=["yes", "no"])[1]
        self.assertIn(whole["choices"][0]["message"]["content"], ("yes", "no"))

    def complete(self, **fields):
        """An answer that came to its end: a model this small may fill a form with blanks until its tokens are spent."""
        for seed in range(20):
            status, whole = self.server.chat(**fields, max_tokens=60, temperature=1, seed=seed)
            self.assertEqual(status, 200, whole)
            if whole["choices"][0]["finish_reason"] != "length":
                return whole["choices"][0]
        self.fail("no answer of twenty came to its end")

    def test_tools(self):
        tool = {"type": "function", "function": {"name": "look", "parameters": {
            "type": "object", "properties": {"at": {"enum": ["moon", "sun"]}}, "required": ["at"],
            "additionalProperties": False}}}
        choice = self.complete(tools=[tool], tool_choice="required")
        self.assertEqual(choice["finish_reason"], "tool_calls", choice)
        self.assertEqual(choice["message"]["tool_calls"][0]["function"]["name"], "look")
        self.assertIn(json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])["at"], ("moon", "sun"))

    def test_what_makes_no_sense(self):
        for fields, param in (({"temperature": "hot"}, "temperature"), ({"temperature": 3}, "temperature"),
                              ({"n": 0}, "n"), ({"colour": 1}, "colour"), ({"messages": []}, "messages"),
                              ({"messages": [{"role": "king", "content": "x"}]}, "messages[0].role"),
                              ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content"),
                              ({"logit_bias": {"x": 1}}, "logit_bias"), ({"top_logprobs": 2}, "top_logprobs"),
                              ({"tool_choice": "required"}, "tool_choice"), ({"audio": {}}, "audio")):
            status, answer = self.server.chat(**fields)
            self.assertEqual((status, answer["error"]["param"]), (400, param), answer)
            self.assertEqual(answer["error"]["type"], "invalid_request_error")
        status, answer = self.server.chat(messages=[{"role": "user", "content": "word " * 4000}])
        self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"))

    def test_responses(self):
        asked = {"input": "Tell me a story.", "max_output_tokens": 6, "temperature": 0}
        status, first = self.server.post("/v1/responses", asked)
        self.assertEqual((status, first["status"]), (200, "incomplete"), first)
        text = first["output"][0]["content"][0]["text"]
        streamed = events(self.server.request("POST", "/v1/responses", asked | {"stream": True})[2])
        deltas = [json.loads(one) for one in streamed]
        self.assertEqual("".join(one["delta"] for one in deltas if one["type"] == "response.output_text.delta"), text)
        self.assertEqual([one["sequence_number"] for one in deltas], list(range(len(deltas))))
        status, second = self.server.post("/v1/responses", asked | {"previous_response_id": first["id"], "input": "More."})
        self.assertEqual(status, 200)
        self.assertGreater(second["usage"]["input_tokens"], first["usage"]["input_tokens"])
        self.assertEqual(json.loads(self.server.request("GET", "/v1/responses/" + first["id"])[2]), first)
        self.assertEqual(self.server.request("DELETE", "/v1/responses/" + first["id"])[0], 200)
        self.assertEqual(self.server.request("GET", "/v1/responses/" + first["id"])[0], 404)


class Anthropic(SharedServer):
    ASKED = {"model": "m", "max_tokens": 8, "temperature": 0, "messages": STORY,
             "system": [{"type": "text", "text": "You tell stories."}]}

    def test_whole_equals_streamed(self):
        status, whole = self.server.post("/v1/messages", self.ASKED)
        self.assertEqual((status, whole["stop_reason"]), (200, "max_tokens"), whole)
        text = self.server.request("POST", "/v1/messages", self.ASKED | {"stream": True})[2]
        told = [json.loads(one) for one in events(text)]
        kinds = [one["type"] for one in told]
        self.assertEqual((kinds[0], kinds[1], kinds[-2], kinds[-1]),
                         ("message_start", "content_block_start", "message_delta", "message_stop"))
        said = "".join(one["delta"]["text"] for one in told if one["type"] == "content_block_delta")
        self.assertEqual(said, whole["content"][0]["text"])
        usage = whole["usage"]
        counted = self.server.post("/v1/messages/count_tokens", {k: self.ASKED[k] for k in ("messages", "system")})
        self.assertEqual(counted[1]["input_tokens"], usage["input_tokens"] + usage["cache_read_input_tokens"])

    def test_stop_sequence(self):
        _, whole = self.server.post("/v1/messages", self.ASKED | {"stop_sequences": [" time", "zzz"]})
        self.assertEqual((whole["stop_reason"], whole["stop_sequence"]), ("stop_sequence", " time"))

    def test_errors(self):
        status, answer = self.server.post("/v1/messages", {"messages": STORY})
        self.assertEqual((status, answer["type"], answer["error"]["type"]), (400, "error", "invalid_request_error"))


class Http(SharedServer):
    def tearDown(self):
        # Whatever a client did, the others never notice.
        self.assertEqual(self.server.chat()[0], 200)

    def test_many_requests_on_one_connection(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=SECONDS)
        ids = set()
        with contextlib.closing(connection):
            for path in ("/health", "/v1/health", "/nowhere", "/", "/v1/models") * 3:
                connection.request("GET", path)
                answer = connection.getresponse()
                answer.read()
                ids.add(answer.headers["X-Request-Id"])
                self.assertEqual(answer.status, 404 if path == "/nowhere" else 200)
        self.assertEqual(len(ids), 15)
        self.assertEqual(self.server.request("DELETE", "/health")[0], 405)

    def test_the_page_runs_nothing_from_elsewhere(self):
        status, headers, body = self.server.request("GET", "/")
        self.assertEqual(status, 200)
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertIn(b"<html", body)

    def test_pipelined_requests(self):
        one = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        last = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        self.assertEqual(self.server.raw(one * 3 + last).count(b"HTTP/1.1 200"), 4)

    def test_http_1_0(self):
        body = json.dumps({"messages": STORY, "max_tokens": 2, "stream": True}).encode()
        head = b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body)
        answer = self.server.raw(head + body)
        self.assertNotIn(b"chunked", answer)
        self.assertTrue(answer.endswith(b"data: [DONE]\n\n"))

    def test_what_is_no_http(self):
        for data in (b"hello\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/9.9\r\n\r\n",
                     b"GET noslash HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
                     b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
            answer = self.server.raw(data, shut=True)
            self.assertTrue(answer.startswith(b"HTTP/1.1 400") or answer == b"", (data, answer))

    def test_large_headers_and_bodies(self):
        self.assertIn(b" 431 ", self.server.raw(b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000 + b"\r\n\r\n")[:30])
        self.assertIn(b" 413 ", self.server.raw(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n"
                                                + b"x" * 2_000_000)[:30])
        chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        self.assertIn(b" 413 ", self.server.raw(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                                                + chunk * 40)[:30])

    def test_bodies_that_are_no_requests(self):
        for body in (b"", b"{", b"[]", b"null", b'{"messages": "\xff\xfe"}', b"[" * 100_000, b'{"a":' * 50_000,
                     b'{"messages": [' + b"[" * 200 + b"]" * 200 + b"]}"):
            status, _, answer = self.server.request("POST", "/v1/chat/completions", body)
            self.assertEqual(status, 400)
            self.assertIn("message", json.loads(answer)["error"])

    def test_clients_that_leave_at_once(self):
        body = json.dumps({"content": "a " * 2000}).encode()
        head = b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
        for i in range(400):  # when the work in their name is done, just then and just before
            with self.server.connect() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.sendall(head + body)
                time.sleep(i % 20 * 1e-4)

    def test_half_closed_and_silent_clients(self):
        body = json.dumps({"messages": STORY, "max_tokens": 2000, "ignore_eos": True, "stream": True}).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
        self.server.raw(head + body, shut=True)
        self.server.raw(head + body[:10], shut=True)
        self.server.raw(b"", shut=True)
        self.server.wait_for("sluice_requests_decoding", 0)

    def test_a_killed_client_frees_its_place(self):
        before = self.server.metric("sluice_requests_cancelled_total")
        body = json.dumps({"messages": STORY, "max_tokens": 1900, "ignore_eos": True, "stream": True}).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
        clients = [self.server.connect() for _ in range(4)]
        for client in clients:
            client.sendall(head + body)
            self.assertTrue(client.recv(100))
        for client in clients:
            client.close()
        self.server.wait_for("sluice_requests_cancelled_total", before + 4)

    def test_many_connections(self):
        for _ in range(10):
            clients = [self.server.connect() for _ in range(100)]
            for client in clients:
                client.close()

    def test_pages_of_other_origins(self):
        origin = {"Origin": "https://evil.example"}
        self.assertEqual(self.server.request("GET", "/v1/models", headers=origin)[0], 403)
        self.assertEqual(self.server.request("GET", "/v1/models", headers={"Host": "evil.example"})[0], 403)
        same = {"Origin": self.server.url}
        self.assertEqual(self.server.request("GET", "/v1/models", headers=same)[0], 200)


class Documentation(unittest.TestCase):
    def test_every_operation_of_the_description(self):
        with tempfile.TemporaryDirectory() as folder, Server("--data", folder) as server:
            paths = json.loads(server.request("GET", "/openapi.json")[2])["paths"]
            self.assertGreater(len(paths), 15)
            for path, methods in paths.items():
                for method in methods:
                    status, _, body = server.request(method.upper(), path.replace("{id}", "nobody"), b"{}" if method in ("post", "put") else None)
                    self.assertIn(status, (200, 400, 404), path)
                    if status == 404:  # of a thing, not of the path
                        self.assertIn("{id}", path)
                        self.assertNotIn(b"nothing at this path", body)
                self.assertIn(server.request("PATCH", path.replace("{id}", "nobody"))[0], (405,), path)

    def test_every_line_of_curl(self):
        text = pathlib.Path(__file__).parents[1].joinpath("docs/server.md").read_text()
        lines = [line for block in text.split("```sh\n")[1:] for line in block.split("```")[0].replace("\\\n", " ").splitlines()
                 if "curl" in line]
        self.assertGreater(len(lines), 15)
        with tempfile.TemporaryDirectory() as folder, Server("--data", folder) as server:
            script = "curl() { command curl -sS --fail-with-body --max-time 60 \"$@\"; }\n"
            for line in lines:
                script += "{ " + line.replace("http://127.0.0.1:8080", server.url) + "; } >out || { cat out >&2; exit 1; }\n"
            run = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=SECONDS)
            self.assertEqual(run.returncode, 0, run.stderr)


class CommandLine(SharedServer):
    def sluice(self, *arguments, **options):
        return subprocess.run([SLUICE, *map(str, arguments), "--server", self.server.url], capture_output=True, text=True,
                              timeout=SECONDS, **options)

    def test_run_and_chat_use_a_running_server(self):
        greedy = ("-n", 8, "--temperature", 0)
        alone = self.server.chat()[1]["choices"][0]["message"]["content"]
        run = self.sluice("run", STORY[0]["content"], *greedy)
        self.assertEqual((run.returncode, run.stdout), (0, alone + "\n"), run.stderr)
        run = self.sluice("run", "Once upon", "--raw", *greedy)
        self.assertTrue(run.stdout.startswith("Once upon a time"), run)
        run = self.sluice("chat", *greedy, input=STORY[0]["content"] + "\nAnd then?\n")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(alone, run.stdout)

    def test_a_server_that_is_not_there(self):
        run = subprocess.run([SLUICE, "run", "x", "--server", "http://127.0.0.1:1"], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(run.returncode, 1)
        self.assertIn("cannot be reached", run.stderr)
        self.assertEqual(self.sluice("run", "word " * 5000).returncode, 1)


class Options(unittest.TestCase):
    def test_keys(self):
        with Server("--api-key", "secret", "--api-key", "other", "--strict-model", "--alias", "tale",
                    "--cors", "https://good.example") as server:
            self.assertEqual(server.request("GET", "/health")[0], 200)
            self.assertEqual(server.request("GET", "/v1/models")[0], 401)
            self.assertEqual(server.request("POST", "/v1/chat/completions", {"messages": STORY})[0], 401)
            for headers in ({"Authorization": "Bearer secret"}, {"X-Api-Key": "other"}):
                self.assertEqual(server.request("GET", "/v1/models", headers=headers)[0], 200)
            for wrong in ("", "secre", "secrets", "Secret"):
                self.assertEqual(server.request("GET", "/v1/models", headers={"X-Api-Key": wrong})[0], 401)
            key = {"Authorization": "Bearer secret"}
            asked = {"messages": STORY, "max_tokens": 2}
            self.assertEqual(server.post("/v1/chat/completions", asked | {"model": "gpt-4"}, **key)[0], 404)
            self.assertEqual(server.post("/v1/chat/completions", asked | {"model": "tale"}, **key)[0], 200)
            # Responses belong to the key that asked.
            kept = server.post("/v1/responses", {"input": "Hi", "max_output_tokens": 2}, **key)[1]["id"]
            self.assertEqual(server.request("GET", "/v1/responses/" + kept, headers=key)[0], 200)
            self.assertEqual(server.request("GET", "/v1/responses/" + kept, headers={"X-Api-Key": "other"})[0], 404)
            preflight = server.request("OPTIONS", "/v1/models", headers={"Origin": "https://good.example"})
            self.assertEqual((preflight[0], preflight[1]["Access-Control-Allow-Origin"]), (204, "https://good.example"))

    def test_other_machines_need_a_key(self):
        run = subprocess.run([SLUICE, "serve", "--host", "0.0.0.0", "--port", "0"], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(run.returncode, 1)
        self.assertIn("--api-key", run.stderr)

    @unittest.skipUnless(shutil.which("openssl"), "a certificate is made with openssl")
    def test_https(self):
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = f"{folder}/certificate.pem", f"{folder}/key.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                            "-keyout", key, "-out", certificate], check=True, capture_output=True)
            with Server("--tls-cert", certificate, "--tls-key", key) as server:
                context = ssl.create_default_context(cafile=certificate)
                connection = http.client.HTTPSConnection("localhost", server.port, timeout=SECONDS, context=context)
                with contextlib.closing(connection):
                    for stream in (False, True):
                        body = json.dumps({"messages": STORY, "max_tokens": 4, "stream": stream})
                        connection.request("POST", "/v1/chat/completions", body)
                        answer = connection.getresponse()
                        self.assertEqual(answer.status, 200)
                        self.assertIn(b"choices", answer.read())
                self.assertEqual(server.raw(b"GET /health HTTP/1.1\r\n\r\n")[:4], b"")  # plain HTTP is not answered

    def test_a_full_queue(self):
        with Server("--parallel", 1, "--queue", 1) as server:
            statuses, lock = [], threading.Lock()

            def ask():
                status, headers, _ = server.request("POST", "/v1/chat/completions",
                                                    {"messages": STORY, "max_tokens": 200, "ignore_eos": True})
                with lock:
                    statuses.append((status, headers["Retry-After"]))

            clients = [threading.Thread(target=ask) for _ in range(12)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            self.assertIn((429, "1"), statuses)
            self.assertIn((200, None), statuses)
            self.assertEqual({status for status, _ in statuses}, {200, 429})

    def test_slow_headers_are_not_waited_for(self):
        with Server("--header-seconds", 1) as server:
            clients = [server.connect() for _ in range(20)]
            for client in clients:
                client.sendall(b"GET / HTTP/1.1\r\nX: ")
            self.assertEqual(server.chat()[0], 200)  # while they dawdle
            start = time.monotonic()
            for client in clients:
                client.settimeout(SECONDS)
                with contextlib.suppress(ConnectionError):
                    self.assertEqual(client.recv(100), b"")
                client.close()
            self.assertLess(time.monotonic() - start, 20)

    def test_requests_have_so_much_time(self):
        with Server("--request-seconds", 0.2) as server:
            status, answer = server.chat(max_tokens=1900, ignore_eos=True)
            self.assertEqual(status, 503, answer)

    def test_sigterm_lets_answers_finish(self):
        with Server("--parallel", 4) as server:
            results = []

            def ask():
                results.append(server.chat(max_tokens=150, ignore_eos=True))

            clients = [threading.Thread(target=ask) for _ in range(4)]
            for client in clients:
                client.start()
            server.wait_for("sluice_requests_decoding", 4)
            idle = server.connect()
            server.process.send_signal(signal.SIGTERM)
            for client in clients:
                client.join()
            self.assertEqual([status for status, _ in results], [200] * 4)
            self.assertTrue(all(answer["usage"]["completion_tokens"] == 150 for _, answer in results))
            self.assertEqual(server.process.wait(timeout=SECONDS), 0)
            idle.close()

    def test_sigterm_does_not_wait_forever(self):
        with Server("--drain-seconds", 0) as server:
            body = json.dumps({"messages": STORY, "max_tokens": 1900, "ignore_eos": True, "stream": True}).encode()
            client = server.connect()
            client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            self.assertTrue(client.recv(100))
            start = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(timeout=SECONDS), 0)
            self.assertLess(time.monotonic() - start, 30)
            client.close()

    def test_sigterm_at_the_first_line(self):
        for _ in range(10):
            with Server() as server:
                server.process.send_signal(signal.SIGTERM)
                self.assertEqual(server.process.wait(timeout=SECONDS), 0, server.process.stderr.read())

    def test_conversations_and_access_log(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "access.log")
            with Server("--data", pathlib.Path(folder, "data"), "--access-log", log) as server:
                path = "/v1/sluice/conversations/one"
                kept = {"id": "one", "title": "A talk", "updated": 5, "nodes": []}
                self.assertEqual(server.request("PUT", path, kept)[0], 200)
                self.assertEqual(json.loads(server.request("GET", path)[2]), kept)
                listed = json.loads(server.request("GET", "/v1/sluice/conversations")[2])["data"]
                self.assertEqual(listed, [{"id": "one", "title": "A talk", "updated": 5}])
                self.assertEqual(server.request("PUT", "/v1/sluice/conversations/..%2f..%2fx", kept)[0], 400)
                self.assertEqual(server.request("DELETE", path)[0], 200)
                self.assertEqual(server.request("GET", path)[0], 404)
                self.assertTrue(json.loads(server.request("GET", "/v1/sluice/state")[2])["data"])
            lines = [json.loads(line) for line in log.read_text().splitlines()]
            self.assertEqual([line["status"] for line in lines], [200, 200, 200, 400, 200, 404, 200])


if __name__ == "__main__":
    unittest.main()
