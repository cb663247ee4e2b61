"""Objects may be dropped and closed in any order, also from several threads, while others are in use."""

import gc
import random
import subprocess
import sys
import threading

import pytest

import sluice
from conftest import START, STORY

SETTINGS = {"max_tokens": 30, "temperature": 0, "ignore_stop_ids": True}
CHAT = [{"role": "user", "content": "Tell me a story."}]


class Household:
    """Objects of every kind, and the operations on each."""

    def __init__(self, seed):
        self.dice, self.kept = random.Random(seed), []
        self.ways = [self.new_model, self.derive, self.derive, self.derive, self.use, self.use, self.close, self.drop, self.drop]

    def pick(self, *kinds):
        found = [one for one in self.kept if isinstance(one, kinds)]
        return self.dice.choice(found) if found else None

    def new_model(self):
        if sum(isinstance(one, sluice.Model) for one in self.kept) < 3:
            self.kept.append(sluice.Model("delta-story", context=128, parallel=2))

    def derive(self):
        one = self.pick(sluice.Model, sluice.Session, sluice.Scheduler)
        if isinstance(one, sluice.Model):
            self.kept.append(self.dice.choice([lambda: one.session(64), lambda: sluice.Scheduler(one, parallel=2, context=64),
                                               lambda: one.stream(START, **SETTINGS), lambda: one.chat_stream(CHAT, **SETTINGS),
                                               lambda: one.logits([1, 2])])())
        elif isinstance(one, sluice.Session):
            self.kept.append(self.dice.choice([one.snapshot, one.fork, one.mark])())
        elif one is not None:
            owner = self.pick(sluice.Model)
            if owner is not None:
                self.kept.append(one.stream(owner.request(START, **SETTINGS)))

    def use(self):
        one = self.pick(object)
        if isinstance(one, sluice.Model):
            assert STORY.startswith(one.generate(START, max_tokens=4, temperature=0).text)
        elif isinstance(one, sluice.Session):
            snapshot = self.pick(sluice.Snapshot)
            if snapshot is not None and self.dice.random() < 0.5:
                one.restore(snapshot)
            one.generate([1], max_tokens=2)
        elif isinstance(one, (sluice.Stream, sluice.ChatStream)):
            next(one, None)

    def close(self):
        one = self.pick(sluice.Model, sluice.Session, sluice.Scheduler)
        if one is not None:
            one.close()

    def drop(self):
        if self.kept:
            self.kept.pop(self.dice.randrange(len(self.kept)))

    def live(self, steps):
        for _ in range(steps):
            try:
                self.dice.choice(self.ways)()
            except sluice.Error as error:  # closed or full objects, or those of another model, report it in one sentence
                assert str(error) and "\n" not in str(error)
        self.dice.shuffle(self.kept)
        while self.kept:
            self.kept.pop()


@pytest.mark.parametrize("number", range(3))
def test_any_order(number):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    Household(seed).live(120)
    gc.collect()


def test_any_order_from_many_threads():
    seed = random.randrange(1 << 32)
    print("seed", seed)
    failed = []

    def work(at):
        try:
            Household(seed + at).live(40)
        except BaseException as error:
            failed.append(repr(error))

    threads = [threading.Thread(target=work, args=(at,)) for at in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failed


WORKS_OF_THREADS = {
    "stream": "list(model.stream('a', max_tokens=1000, ignore_stop_ids=True))",
    "session": "model.session(1100).generate('a', max_tokens=1000, ignore_stop_ids=True)",
    "on_token": "model.session(1100).generate('a', lambda token: True, max_tokens=1000, ignore_stop_ids=True)",
    "logits": "model.logits([1] * 200)",
    "model": "sluice.Model('delta-story', threads=1).close()",
    "tokenize": "model.tokenize('Once upon a time. ' * 100)",
    "op": "sluice.ops.add(a=x, b=x)",
}


@pytest.mark.parametrize("name", WORKS_OF_THREADS)
def test_programs_end_while_threads_that_nobody_waits_for_compute(name):
    code = f"""
import threading
import numpy
import sluice

def work():
    while True:
        {WORKS_OF_THREADS[name]}
        worked.set()

x, worked = numpy.ones(1 << 16, numpy.float32), threading.Event()
model = sluice.Model("delta-story", threads=1)
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
worked.wait(0.1)
"""
    for _ in range(4):
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert (ended.returncode, ended.stderr) == (0, "")
