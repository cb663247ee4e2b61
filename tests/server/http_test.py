"""Valid HTTP requests, and invalid ones."""

import contextlib
import http.client
import json
import unittest

from served import SECONDS, STORY, SharedServer


class Http(SharedServer):
    def tearDown(self):
        # Whatever a client did, other clients are not affected.
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
        status, headers, _ = self.server.request("DELETE", "/health")
        self.assertEqual((status, headers["Allow"]), (405, "GET, OPTIONS"))

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

    def test_pages_of_other_origins(self):
        origin = {"Origin": "https://evil.example"}
        self.assertEqual(self.server.request("GET", "/v1/models", headers=origin)[0], 403)
        self.assertEqual(self.server.request("GET", "/v1/models", headers={"Host": "evil.example"})[0], 403)
        same = {"Origin": self.server.url}
        self.assertEqual(self.server.request("GET", "/v1/models", headers=same)[0], 200)


if __name__ == "__main__":
    unittest.main()
