"""A test of some minutes: ten thousand connections, then hundreds of clients that wait while others are answered.

    endurance.py SLUICE [SECONDS]

Fails if an answer fails, if the server's memory grows, or if it needs more than a twentieth of a processor for sending
a thousand events per second to clients: tokens, and the progress of those that wait.
"""

import asyncio
import os
import pathlib
import random
import sys
import time

sys.argv[2:], DURATION = [], float(sys.argv[2]) if len(sys.argv) > 2 else 600
from served import Server  # it also reads arguments from the command line

ACTIVE, WAITING = 16, 500
PAGE, TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
WORDS = "the a little girl boy dog cat went saw big red ball park happy mom said they play with tree".split()


def resident(server):
    return int(pathlib.Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * PAGE / 2**20


def http_seconds(server):
    """Processor seconds of the server's HTTP thread."""
    for task in pathlib.Path(f"/proc/{server.process.pid}/task").iterdir():
        name, fields = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        if name == "sluice-http":
            return sum(map(int, fields.split()[11:13])) / TICKS
    raise AssertionError("no thread speaks with clients")


def connect_often(server):
    before = resident(server)
    for _ in range(20):
        clients = [server.connect() for _ in range(500)]
        for client in clients:
            client.close()
    server.wait_for("sluice_http_connections", lambda count: count <= 1)
    print(f"10000 connections: {before:.0f} MiB before, {resident(server):.0f} MiB after")
    assert server.chat()[0] == 200


class Clients:
    def __init__(self, port, end):
        self.port, self.end = port, end
        self.tokens = self.pings = self.answers = self.failed = 0
        self.random = random.Random(0)

    async def ask(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        prompt = " ".join(self.random.choices(WORDS, k=self.random.randrange(10, 200)))
        body = ('{"prompt": "%s", "max_tokens": 64, "ignore_eos": true, "stream": true}' % prompt).encode()
        writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(body) + body)
        ended = False
        async for line in reader:
            self.tokens += line.startswith(b"data: {")
            self.pings += line.startswith(b": ")
            ended = ended or line.startswith(b"data: [DONE]")
        writer.close()
        self.answers += ended
        self.failed += not ended

    async def run(self):
        while time.monotonic() < self.end:
            await self.ask()


async def load(server, duration):
    start, before = time.monotonic(), http_seconds(server)
    clients = Clients(server.port, start + duration)
    running = asyncio.gather(*(clients.run() for _ in range(ACTIVE + WAITING)))
    samples = []
    while time.monotonic() < clients.end:
        await asyncio.sleep(duration / 60)
        samples.append(resident(server))
    told, spent = clients.tokens + clients.pings, http_seconds(server) - before
    rate = clients.tokens / (time.monotonic() - start)
    await running
    return clients, samples, rate, spent / max(told, 1) * 1000


def main():
    # Room for few cached prompts, so that it is full long before memory is compared.
    with Server("--parallel", ACTIVE, "--cache-memory", "64MB") as server:
        connect_often(server)
        spoken = http_seconds(server)
        clients, samples, rate, share = asyncio.run(load(server, DURATION))
        warm = max(samples[: len(samples) // 5])
        print(f"{clients.answers} answers, {clients.failed} failed, {clients.pings} pings, {rate:.0f} tokens/s; "
              f"{spoken:.2f} s for the connections, {100 * share:.1f}% of a processor at 1000 events/s")
        print(f"memory: {samples[0]:.0f} MiB at first, {warm:.0f} after a fifth, {max(samples):.0f} at most, {samples[-1]:.0f} at last")
        assert clients.failed == 0 and clients.pings > 0
        assert max(samples) < 1.05 * warm + 8, samples
        assert share < 0.05, share


if __name__ == "__main__":
    main()
