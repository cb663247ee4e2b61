"""SIGTERM during answers."""

import contextlib
import os
import signal
import threading
import time
import unittest

from served import SECONDS, Server, read_all

TOKENS = 600  # enough to be still running when the signal arrives


class Signals(unittest.TestCase):
    def test_sigterm_lets_answers_finish(self):
        with Server("--parallel", 4, "--drain-seconds", 10 * SECONDS) as server:
            results = []

            def ask():
                results.append(server.chat(max_tokens=TOKENS, ignore_eos=True))

            clients = [threading.Thread(target=ask) for _ in range(4)]
            for client in clients:
                client.start()
            server.wait_for("sluice_requests_total", 4)
            idle = server.connect()
            server.process.send_signal(signal.SIGTERM)
            for client in clients:
                client.join()
            self.assertEqual([status for status, _ in results], [200] * 4)
            self.assertTrue(all(answer["usage"]["completion_tokens"] == TOKENS for _, answer in results))
            self.assertEqual(server.process.wait(timeout=SECONDS), 0)
            idle.close()

    def test_the_end_of_the_input_lets_answers_finish(self):
        ours, its = os.pipe()[::-1]
        with Server("--end-with-input", "--drain-seconds", 10 * SECONDS, stdin=its) as server:
            os.close(its)
            results = []
            client = threading.Thread(target=lambda: results.append(server.chat(max_tokens=TOKENS, ignore_eos=True)))
            client.start()
            server.wait_for("sluice_requests_total", 1)
            os.write(ours, b"What is said there is not heard.\n")
            os.close(ours)
            client.join()
            self.assertEqual([(status, answer["usage"]["completion_tokens"]) for status, answer in results], [(200, TOKENS)])
            self.assertEqual(server.process.wait(timeout=SECONDS), 0, server.process.stderr.read())

    def test_sigterm_does_not_wait_forever(self):
        with Server("--drain-seconds", 0) as server:
            client = server.stream()
            self.assertTrue(client.recv(100))
            start = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(timeout=SECONDS), 0)
            self.assertLess(time.monotonic() - start, 30)
            client.close()

    def test_sigterm_under_load(self):
        with Server("--parallel", 4, "--drain-seconds", 1) as server:
            clients = [server.stream(logprobs=True, top_logprobs=20) for _ in range(40)]
            server.wait_for("sluice_requests_total", 40)
            late = [server.connect() for _ in range(40)]  # which never send a request
            server.process.send_signal(signal.SIGTERM)
            for client in clients[:20]:  # the others leave without closing
                read_all(client)
            self.assertEqual(server.process.wait(timeout=SECONDS), 0, server.process.stderr.read())
            for client in clients + late:
                client.close()

    def test_a_second_sigterm_ends_everything(self):
        with Server("--drain-seconds", 10 * SECONDS) as server:
            clients = [server.stream() for _ in range(4)]
            server.wait_for("sluice_requests_total", 4)
            server.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(ConnectionError):  # until the first one is handled: two at the same time count as one
                while True:
                    server.connect().close()
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(timeout=SECONDS), 0, server.process.stderr.read())
            for client in clients:
                client.close()

    def test_sigterm_ends_what_nobody_waits_for(self):
        with Server("--drain-seconds", 10 * SECONDS) as server:
            asked = {"input": "Tell me a story.", "max_output_tokens": 1900, "ignore_eos": True, "background": True}
            for _ in range(3):
                server.post("/v1/responses", asked)
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(timeout=SECONDS), 0, server.process.stderr.read())

    def test_sigterm_at_the_first_line(self):
        for _ in range(10):
            with Server() as server:
                server.process.send_signal(signal.SIGTERM)
                self.assertEqual(server.process.wait(timeout=SECONDS), 0, server.process.stderr.read())


if __name__ == "__main__":
    unittest.main()
