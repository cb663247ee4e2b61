"""sluice serve on several nodes: concurrent clients, a lost node, a restart with cached files, and an orderly shutdown.

    nodes_test.py SLUICE MPIRUN
"""

import concurrent.futures
import os
import pathlib
import signal
import sys
import tempfile
import time
import unittest

from served import SECONDS, Server

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from launched import ENVIRONMENT, launcher, processes_of

MPIRUN = sys.argv.pop(1)
CLIENTS = 16
STORY = "Once upon a time there was a little dragon who lived in a cave near the village. " * 12
os.environ |= ENVIRONMENT


class ServerOnNodes(Server):
    def __init__(self, nodes, layout, *arguments):
        super().__init__("--nodes", layout, "--threads", 1, *arguments,
                         launcher=launcher(MPIRUN, nodes))

    def ranks(self):
        return processes_of(self.process.pid)


def ask(server, number):
    prompt = f"Chapter {number}. " + STORY[:number * 60]
    status, answer = server.post("/v1/completions", {"prompt": prompt, "max_tokens": 8 + number, "ignore_eos": True,
                                                     "temperature": 0.7 if number % 2 else 0, "seed": number})
    return answer["choices"][0]["text"] if status == 200 else answer


def ask_all(server):
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(lambda number: ask(server, number), range(CLIENTS)))


def wait_until(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


class ServedByNodes(unittest.TestCase):
    def test_many_clients_get_the_answers_of_one_machine(self):
        with Server("--threads", 1) as server:
            want = [ask(server, number) for number in range(CLIENTS)]
        for nodes, layout in ((3, "auto"), (2, "experts"), (3, "groups:1,2")):
            with self.subTest(layout), ServerOnNodes(nodes, layout, "--parallel", 6) as server:
                self.assertEqual(ask_all(server), want)

    def test_a_server_that_lost_a_node_goes_on_from_its_files(self):
        with tempfile.TemporaryDirectory() as folder:
            def complete(server):
                status, answer = server.post("/v1/completions", {"prompt": STORY, "max_tokens": 6, "temperature": 0})
                self.assertEqual(status, 200, answer)
                return answer["choices"][0]["text"], answer["usage"]["prompt_tokens_details"]["cached_tokens"]

            for layout in ("auto", "experts"):
                disk = ("--cache-disk", f"{folder}/{layout}:50MB")
                with ServerOnNodes(2, layout, *disk) as server:
                    text, cached = complete(server)
                    self.assertEqual(cached, 0)
                    wait_until(lambda: len(list(pathlib.Path(folder, layout).glob("*.prefix"))) >= 2)
                    ranks = server.ranks()
                    client = server.stream()
                    self.assertTrue(client.recv(100))
                    os.kill(ranks[1], signal.SIGKILL)
                    _, said = server.process.communicate(timeout=SECONDS)
                    client.close()
                    self.assertNotEqual(server.process.returncode, 0)
                    self.assertRegex(said, r"rank 1 |node 1 ")
                    wait_until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in ranks.values()))
                with ServerOnNodes(2, layout, *disk) as server:
                    again, cached = complete(server)
                    self.assertEqual(again, text)
                    self.assertGreaterEqual(cached, 128)

    def test_the_leading_process_is_asked_to_end(self):
        with ServerOnNodes(2, "auto", "--parallel", 4) as server, concurrent.futures.ThreadPoolExecutor() as pool:
            answers = [pool.submit(server.chat, max_tokens=200, ignore_eos=True) for _ in range(4)]
            server.wait_for("sluice_requests_total", 4)
            os.kill(server.ranks()[0], signal.SIGTERM)
            self.assertEqual([answer.result()[0] for answer in answers], [200] * 4)
            _, said = server.process.communicate(timeout=SECONDS)
            self.assertEqual(server.process.returncode, 0, said)


if __name__ == "__main__":
    unittest.main()
