"""Ctrl-C ends any computation. Each one here would take hours; a separate process runs them all within some minutes."""

import subprocess
import sys

PROGRAM = """
import asyncio, os, pathlib, signal, sys, tempfile, threading
import sluice

signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell are started without one
GEOMETRY = "qwen3.6-35b-a3b:layers=1,experts=8,vocab=4096"
model = sluice.Model.random(GEOMETRY, parallel=4, context=250_000)
story = sluice.Model("delta-story")
folder = pathlib.Path(tempfile.mkdtemp())
endless = {"max_tokens": 240_000, "ignore_stop_ids": True}

async def each():
    async for _ in model.stream_async([1, 2, 3], **endless):
        pass

def extend():
    with model.session() as session:
        try:
            while True:
                session.reset()
                session.extend([1] * 200_000)
        finally:
            assert 0 < len(session) < 200_000  # it stopped early, and has the tokens computed so far
            session.generate([2], max_tokens=2)

def wait_for_a_thread():
    session, begun, over = model.session(), threading.Event(), threading.Event()
    thread = threading.Thread(target=session.generate, args=([1], lambda token: begun.set() or not over.is_set()), kwargs=endless)
    thread.start()
    begun.wait()
    try:
        len(session)
    finally:
        over.set()
        thread.join()

def drain():
    with sluice.Scheduler(model, parallel=1, context=250_000) as scheduler:
        kept = scheduler.stream(model.request([1, 2, 3], **endless))
        scheduler.drain()

WORKS = {
    "generate": lambda: model.generate([1, 2, 3], **endless),
    "stream": lambda: list(model.stream([1, 2, 3], **endless)),
    "batch": lambda: model.generate_batch([[1, 2, 3]] * 9, **endless),
    "await": lambda: asyncio.run(model.generate_async([1, 2, 3], **endless)),
    "async for": lambda: asyncio.run(each()),
    "session": lambda: model.session().generate([1, 2, 3], **endless),
    "chat": lambda: [story.chat([{"role": "user", "content": "Hello."}], max_tokens=1000) for _ in range(10**9)],
    "drain": drain,
    "session of a thread": wait_for_a_thread,
    "extend": extend,
    "logits": lambda: model.session().extend_with_logits([1] * 200_000),
    "perplexity": lambda: story.perplexity("Once upon a time there was a cat. " * 1_000_000, context=512),
    "random": lambda: sluice.random(GEOMETRY.replace("layers=1", "layers=12").replace("experts=8", "experts=128"), folder / "made"),
}
for name, work in WORKS.items():
    print(name, end=" ", flush=True)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        work()
    except KeyboardInterrupt:
        continue
    sys.exit("was not interrupted")
assert not list(folder.iterdir())  # no partial model is left behind
assert model.scheduler.state["finished"] == 0
assert len(model.generate([1, 2, 3], max_tokens=5, ignore_stop_ids=True).ids) == 5
assert "girl named Lily" in str(story.generate("Once upon a time", max_tokens=20, temperature=0))
print("done")
"""


def test_everything_can_be_interrupted():
    try:
        ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"not interrupted: {error.stdout!r}") from None
    assert ended.stdout.endswith("done\n"), ended.stdout + ended.stderr
