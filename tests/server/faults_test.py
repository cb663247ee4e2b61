"""Misbehaving clients and failing machines: other clients are never affected."""

import contextlib
import json
import os
import socket
import struct
import threading
import time
import unittest
from unittest import mock

from served import PRELOAD, SECONDS, STORY, Server, SharedServer, events, read_all


class Clients(SharedServer):
    def tearDown(self):
        self.assertEqual(self.server.chat()[0], 200)

    def test_clients_that_leave_at_once(self):
        body = json.dumps({"content": "a " * 2000}).encode()
        head = b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
        for i in range(400):  # disconnects just before and just as their work is done
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
        clients = [self.server.stream() for _ in range(4)]
        for client in clients:
            self.assertTrue(client.recv(100))
        for client in clients:
            client.close()
        self.server.wait_for("sluice_requests_cancelled_total", lambda count: count >= before + 4)

    def test_a_client_that_reads_late(self):
        asked = {"max_tokens": 300, "temperature": 0, "ignore_eos": True, "logprobs": True, "top_logprobs": 20}
        late = self.server.stream(**asked)
        self.server.wait_for("sluice_requests_decoding", lambda count: count >= 1)
        status, whole = self.server.chat(**asked)
        self.assertEqual(status, 200)
        self.server.wait_for("sluice_requests_decoding", 0)  # it is computed even without readers
        text = read_all(late)
        self.assertGreater(len(text), 300 * 20 * 30)
        pieces = [json.loads(one)["choices"][0]["delta"].get("content", "") for one in events(text)[:-1]]
        self.assertEqual("".join(pieces), whole["choices"][0]["message"]["content"])

    def test_many_connections(self):
        for _ in range(10):
            clients = [self.server.connect() for _ in range(100)]
            for client in clients:
                client.close()


class Limits(unittest.TestCase):
    def test_a_full_queue(self):
        with Server("--parallel", 1, "--queue", 1) as server:
            running = server.stream()
            server.wait_for("sluice_requests_decoding", 1)
            waiting = server.stream()
            server.wait_for("sluice_requests_waiting", 1)
            status, headers, _ = server.request("POST", "/v1/chat/completions", {"messages": STORY, "max_tokens": 2})
            self.assertEqual((status, headers["Retry-After"]), (429, "1"))
            running.close()
            waiting.close()
            server.wait_for("sluice_requests_cancelled_total", 2)
            self.assertEqual(server.chat()[0], 200)

    def test_answers_that_do_not_fit_together_make_room_for_each_other(self):
        asked = [{"messages": [{"role": "user", "content": f"Tell me about {name}."}], "max_tokens": 260, "ignore_eos": True}
                 for name in ("a cat", "the moon", "a red ball")]  # each grows into a second page of 256 tokens
        with Server("--parallel", 4, "--ctx", 512, "--cache-tokens", 512) as server:
            together = [None] * len(asked)

            def ask(at):
                together[at] = server.chat(**asked[at])

            clients = [threading.Thread(target=ask, args=(at,)) for at in range(len(asked))]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            alone = [server.chat(**one) for one in asked]
            self.assertEqual([status for status, _ in together], [200] * len(asked))
            self.assertEqual([whole["choices"] for _, whole in together], [whole["choices"] for _, whole in alone])
            self.assertGreater(server.metric("sluice_suspensions_total"), 0)

    @unittest.skipIf(not PRELOAD, "no library to make reads fail")
    def test_a_model_that_fails(self):
        with mock.patch.dict(os.environ, LD_PRELOAD=PRELOAD, SLUICE_READS="5000"):
            server = Server("--threads", 1, "--expert-slots", 5)
        with server:
            status, answer = server.chat()
            self.assertEqual(status, 200, answer)
            end = time.monotonic() + SECONDS
            while status == 200 and time.monotonic() < end:
                status, answer = server.chat(seed=int(time.monotonic() * 1e6) % 1000, temperature=1, max_tokens=40)
            self.assertEqual(status, 500, answer)
            self.assertNotIn("/", answer["error"]["message"])  # no path of this machine
            failed = events(read_all(server.stream(max_tokens=40)))
            self.assertIn("error", json.loads(failed[-1] if failed[-1] != "[DONE]" else failed[-2]))
            self.assertEqual(server.request("GET", "/health")[0], 200)
            self.assertEqual(server.post("/tokenize", {"content": "still here"})[0], 200)

    def test_slow_headers_are_not_waited_for(self):
        with Server("--header-seconds", 1) as server:
            clients = [server.connect() for _ in range(20)]
            for client in clients:
                client.sendall(b"GET / HTTP/1.1\r\nX: ")
            self.assertEqual(server.chat()[0], 200)  # during their delays
            for client in clients:  # each of which waits at most SECONDS
                with contextlib.suppress(ConnectionError):
                    self.assertEqual(client.recv(100), b"")
                client.close()

    def test_requests_have_so_much_time(self):
        with Server("--request-seconds", 0.2) as server:
            status, answer = server.chat(max_tokens=1900, ignore_eos=True)
            self.assertEqual(status, 503, answer)


if __name__ == "__main__":
    unittest.main()
