"""Concurrent requests, from threads, from event loops and in batches."""

import asyncio
import gc
import json
import os
import random
import resource
import subprocess
import sys
import threading
import time
import types
import typing

import pytest

import sluice
from conftest import START, STORY

PROMPTS = [START, "The dog", "Lily and Ben went", "It was raining", "In the forest there lived", "Tom was sad because"]


@pytest.fixture(scope="module")
def alone(model):
    """The answer to each prompt by itself, in a session: the C++ engine's path for one sequence."""
    answers = {}
    for prompt in PROMPTS:
        with model.session(128) as session:
            answers[prompt] = session.generate(prompt, max_tokens=24, temperature=0).ids
    return answers


def test_generate(model):
    answer = model.generate(START, max_tokens=40, temperature=0)
    assert str(answer) == STORY and answer.finish_reason == "length"
    assert answer.ids == [token.id for token in answer.tokens] and "".join(map(str, answer.tokens)) == STORY
    assert answer.prompt_tokens == 4 and answer.first_token_seconds > 0
    assert f"{answer:.7}|{answer.tokens[0]:>3}" == STORY[:7] + "|  ,"


def test_stream(model):
    stream = model.stream(START, max_tokens=40, temperature=0)
    assert "".join(token.text for token in stream) == STORY
    assert stream.result.text == STORY and stream.progress == (4, 4)


def test_stop_text_and_settings(model):
    assert model.generate(START, max_tokens=40, temperature=0, stop="Lily").text == ", there was a little girl named "
    assert model.generate(START, max_tokens=40, temperature=0, stop=["sun", "outside"]).finish_reason == "stop"
    once = model.generate(START, max_tokens=20, temperature=1, seed=5)
    assert once.ids == model.generate(START, max_tokens=20, temperature=1, seed=5).ids
    with model.session(64) as session:  # the same random choices in a session
        assert session.generate(START, max_tokens=20, temperature=1, seed=5).ids == once.ids
    banned = once.ids[0]
    assert model.generate(START, max_tokens=1, temperature=1, seed=5, logit_bias={banned: -1000.0}).ids != [banned]


def test_batch_gives_what_each_gives_alone(model, alone):
    prompts = [random.Random(3).choice(PROMPTS) for _ in range(40)]
    answers = model.generate_batch(prompts, max_tokens=24, temperature=0)
    assert [answer.ids for answer in answers] == [alone[prompt] for prompt in prompts]


def test_threads(model, alone):
    wrong = []

    def work(prompt):
        if model.generate(prompt, max_tokens=24, temperature=0).ids != alone[prompt]:
            wrong.append(prompt)

    threads = [threading.Thread(target=work, args=(PROMPTS[at % len(PROMPTS)],)) for at in range(200)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_async(model, alone):
    async def main():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        ticking = asyncio.create_task(tick())
        answers = await asyncio.gather(*(model.generate_async(prompt, max_tokens=24, temperature=0) for prompt in PROMPTS))
        assert [answer.ids for answer in answers] == [alone[prompt] for prompt in PROMPTS]
        text = [str(token) async for token in model.stream_async(START, max_tokens=40, temperature=0)]
        assert "".join(text) == STORY
        ticking.cancel()
        return ticks

    assert asyncio.run(main()) > 20  # the loop was never blocked for long
    asyncio.run(main())  # another loop


def test_event_loop_runs_while_a_request_is_made(model, monkeypatch):
    """A long prompt or a large grammar takes time: here forever, unless the loop keeps running."""
    loop_ran, make = threading.Event(), sluice.Model.request

    def slow(*arguments, **settings):
        assert loop_ran.wait(60)
        return make(*arguments, **settings)

    async def main():
        stream = model.stream_async(START, max_tokens=4, temperature=0)
        asyncio.get_running_loop().call_later(0.01, loop_ran.set)
        return await stream.result()

    monkeypatch.setattr(sluice.Model, "request", slow)
    assert STORY.startswith(asyncio.run(main()).text)


def test_what_is_wrong_with_a_request_is_raised_where_it_is_awaited(model):
    async def main():
        with pytest.raises(sluice.InputError):
            await model.generate_async(START, regex="(")
        with pytest.raises(TypeError, match="tempreture"):
            async for _ in model.stream_async(START, tempreture=1):
                pass
        with pytest.raises(sluice.InputError, match="context"):
            await model.generate_async([1] * 100_000)
        model.stream_async(START, regex="(")  # dropped without being awaited
        await asyncio.sleep(0.05)

    asyncio.run(main())


def test_thousand_cancelled_async_streams(model):
    files = len(os.listdir("/proc/self/fd"))

    async def one(at):
        stream = model.stream_async(PROMPTS[at % len(PROMPTS)], max_tokens=200, temperature=0, ignore_stop_ids=True)
        if at % 3 == 0:
            async for _ in stream:
                break
        if at % 3 == 1:
            stream.cancel()
            assert (await stream.result()).finish_reason == "cancelled"
        # the rest is dropped unread

    async def main():
        for begin in range(0, 1000, 100):
            await asyncio.gather(*(one(at) for at in range(begin, begin + 100)))

    asyncio.run(main())
    until = time.monotonic() + 10
    while (state := model.scheduler.state)["running"] + state["waiting"] and time.monotonic() < until:
        time.sleep(0.01)
    assert state["running"] + state["waiting"] == 0
    assert len(os.listdir("/proc/self/fd")) <= files + 2
    assert model.generate(START, max_tokens=40, temperature=0).text == STORY


def test_cancelled_task_cancels_its_request(model):
    async def main():
        task = asyncio.create_task(model.generate_async(START, max_tokens=1400, ignore_stop_ids=True))
        await asyncio.sleep(0.1)
        before = model.scheduler.state["cancelled"]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(200):
            if model.scheduler.state["cancelled"] > before:
                return True
            await asyncio.sleep(0.01)
        return False

    assert asyncio.run(main())


class Interrupted:
    """A mailbox that receives Ctrl-C."""

    def wait(self):
        raise KeyboardInterrupt


def cancelled_requests(model, more_than=None):
    until = time.monotonic() + 10
    while (count := model.scheduler.state["cancelled"]) == more_than and time.monotonic() < until:
        time.sleep(0.01)
    return count


@pytest.mark.parametrize("kind", ["stream", "chat_stream"])
def test_answers_that_an_interruption_left_end(model, kind):
    """Notebooks keep the traceback."""
    def interrupted():
        made = getattr(model, kind)([1] if kind == "stream" else [{"role": "user", "content": "a"}], max_tokens=1400, ignore_stop_ids=True)
        (made if kind == "stream" else made._stream)._mailbox = Interrupted()
        return made

    def read():
        for _ in interrupted():
            pass

    gc.collect()
    gc.disable()
    before = cancelled_requests(model)
    try:
        with pytest.raises(KeyboardInterrupt) as kept:
            read()
        assert cancelled_requests(model, before) > before and kept
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", ["stream_async", "chat_stream_async"])
def test_answers_that_a_cancelled_task_left_end(model, kind):
    """The exception of a task refers to the task, so only the garbage collector frees them."""
    async def read():
        async for _ in getattr(model, kind)([1] if kind == "stream_async" else [{"role": "user", "content": "a"}], max_tokens=1400, ignore_stop_ids=True):
            begun.set()

    async def main():
        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as error:
            kept.append(error)

    begun, kept = asyncio.Event(), []
    gc.collect()
    gc.disable()
    before = cancelled_requests(model)
    try:
        asyncio.run(main())
        assert cancelled_requests(model, before) > before and kept
    finally:
        gc.enable()


def test_answers_come_to_the_loop_that_asked(model):
    """Another loop gets an error instead of waiting forever, and can read what has arrived."""
    async def begin(count):
        stream = model.stream_async(START, max_tokens=1400, ignore_stop_ids=True)
        for _ in range(count):
            await stream.__anext__()
        return stream

    async def end():
        stream = model.stream_async(START, max_tokens=4, temperature=0)
        await stream.result()
        return stream

    async def result(stream):
        return await asyncio.wait_for(stream.result(), 10)

    for count in (0, 1):
        with pytest.raises(sluice.InputError, match="event loop"):
            asyncio.run(result(asyncio.run(begin(count))))
    assert STORY.startswith(asyncio.run(result(asyncio.run(end()))).text)


def test_forms(model):
    schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
              "required": ["name", "age"], "additionalProperties": False}
    for seed in range(3):
        made = json.loads(model.generate(START, schema=schema, max_tokens=200, temperature=1, seed=seed).text)
        assert set(made) == {"name", "age"} and isinstance(made["age"], int)
    assert model.generate(START, choices=["cat", "dog"], temperature=1).text in ("cat", "dog")
    assert model.generate(START, regex="[0-9]{3}-[0-9]{2}", temperature=1).text[3] == "-"
    with pytest.raises(sluice.InputError, match="one form"):
        model.generate(START, regex="a", choices=["b"])
    with pytest.raises(sluice.InputError):
        model.generate(START, regex="(")


def test_schemas_of_pydantic(model):
    pydantic = pytest.importorskip("pydantic")

    class Strict(pydantic.BaseModel):
        model_config = {"extra": "forbid"}

    class Pet(Strict):
        kind: typing.Literal["cat", "dog"]
        age: int = pydantic.Field(ge=0, le=20)

    class Owner(Strict):
        pets: list[Pet] = pydantic.Field(min_length=1, max_length=2)

    answers = [model.generate(START, schema=Owner, max_tokens=200, temperature=1, seed=7),
               model.chat([{"role": "user", "content": "Who?"}], schema=Owner, max_tokens=200, temperature=1, seed=7)]
    for answer in answers:
        assert Owner.model_validate_json(str(answer)).pets
    with pytest.raises(sluice.InputError):
        model.generate(START, schema=types.SimpleNamespace(model_json_schema=lambda: {"type": "nonsense"}))


def test_scheduler_of_ones_own(model, alone):
    with sluice.Scheduler(model, parallel=2, context=128, queue=8) as scheduler:
        assert scheduler.state["parallel"] == 2 and scheduler.state["context"] == 128
        requests = [model.request(prompt, max_tokens=24, temperature=0, priority=at) for at, prompt in enumerate(PROMPTS * 5)]
        assert [answer.ids for answer in scheduler.run(requests)] == [alone[prompt] for prompt in PROMPTS * 5]
        with pytest.raises(sluice.InputError, match="context"):
            scheduler.run([model.request([1] * 200)])
        stream = scheduler.stream(model.request(START, max_tokens=100, ignore_stop_ids=True))
        next(stream)
    assert stream.result.finish_reason == "cancelled"
    with pytest.raises(sluice.InputError, match="closed"):
        scheduler.run([model.request(START)])


def test_threads_share_a_small_queue(model, alone):
    """Each thread has more requests than fit."""
    with sluice.Scheduler(model, parallel=2, context=128, queue=3) as scheduler:
        answers = [[] for _ in range(4)]

        def work(made):
            made.extend(scheduler.run(model.request(prompt, max_tokens=4, temperature=0) for prompt in PROMPTS))

        threads = [threading.Thread(target=work, args=(made,)) for made in answers]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert [[answer.ids for answer in made] for made in answers] == [[alone[prompt][:4] for prompt in PROMPTS]] * 4
        streams = []
        with pytest.raises(sluice.BusyError, match="queue is full"):
            while True:
                streams.append(scheduler.stream(model.request(START, max_tokens=100, ignore_stop_ids=True)))


def test_thousands_of_requests_may_wait(model):
    streams = [model.stream([1], max_tokens=1) for _ in range(1500)]
    assert streams[0].result.ids
    for stream in streams:
        stream.cancel()
    assert streams[-1].result.finish_reason in ("length", "cancelled")


def test_threads_share_a_stream(model):
    stream, heard = model.stream(START, max_tokens=40, temperature=0), []
    threads = [threading.Thread(target=lambda: heard.extend(stream), daemon=True) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join(60) for thread in threads]
    assert not any(thread.is_alive() for thread in threads)
    assert sorted(token.id for token in heard) == sorted(stream.result.ids)


def test_drain(model):
    with sluice.Scheduler(model, parallel=2, context=128) as scheduler:
        streams = [scheduler.stream(model.request(START, max_tokens=20, temperature=0)) for _ in range(5)]
        scheduler.drain()
        assert scheduler.state["finished"] == 5 and {STORY.startswith(stream.result.text) for stream in streams} == {True}
        with pytest.raises(sluice.BusyError, match="stop"):
            scheduler.run([model.request(START)])


def test_closed_model_ends_its_requests():
    model = sluice.Model("delta-story", parallel=2)
    stream = model.stream(START, max_tokens=1400, ignore_stop_ids=True)
    next(stream)
    model.close()
    assert stream.result.finish_reason == "cancelled"


def test_programs_end_quietly():
    """The last message of a request may arrive while the interpreter ends."""
    code = "import sluice; model = sluice.Model(); model.generate('a', max_tokens=2); stream = model.stream('a'); next(stream)"
    for _ in range(8):
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (ended.returncode, ended.stderr) == (0, "")


def test_memory_stays_flat():
    model = sluice.Model("delta-story", context=128)
    for _ in range(10):
        model.generate_batch(PROMPTS, max_tokens=4)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(40):
        model.generate_batch(PROMPTS, max_tokens=4)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 << 10
