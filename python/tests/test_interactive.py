"""Interactive use: representations, completion, warnings."""

import asyncio
import warnings

import pytest

import sluice
from conftest import START
from sluice import ops


def test_representations(model):
    assert repr(model.request(START)) == "<sluice.Request of 4 tokens>"
    stream = model.stream(START, max_tokens=3, temperature=0)
    next(stream)
    assert "tokens, as far as it was read" in repr(stream)
    list(stream)
    assert repr(stream) == "<sluice.Stream: 3 tokens, length>"
    chat = model.chat_stream([{"role": "user", "content": "Hello."}], max_tokens=2)
    list(chat)
    assert repr(chat) == "<sluice.ChatStream: 2 tokens, length>"
    with sluice.Scheduler(model, parallel=1, context=64) as scheduler:
        assert repr(scheduler) == "<sluice.Scheduler: 0 running, 0 waiting>"
        late = scheduler.stream(model.request("a", timeout=1e-9))
        with pytest.raises(sluice.BusyError) as told:
            list(late)
        assert repr(late) == f"<sluice.Stream: 0 tokens, {told.value}>"
    assert repr(scheduler) == "<sluice.Scheduler: the scheduler is closed>"
    with model.session(8) as session:
        assert "cpu" in repr(session) or "cuda" in repr(session)
    assert repr(session) == "<sluice.Session (closed)>"


def test_representations_in_an_event_loop(model):
    async def look(stream):
        seen = [repr(stream)]
        try:
            await stream.result()
        except sluice.InputError:
            pass
        return [*seen, repr(stream)]

    async def work():
        answer = await look(model.stream_async(START, max_tokens=2, temperature=0))
        chat = await look(model.chat_stream_async([{"role": "user", "content": "Hello."}], max_tokens=2))
        return answer, chat, await look(model.stream_async([]))

    answer, chat, wrong = asyncio.run(work())
    assert answer == ["<sluice.AsyncStream: not begun>", "<sluice.AsyncStream: 2 tokens, length>"]
    assert chat == ["<sluice.AsyncChatStream: not begun>", "<sluice.AsyncChatStream: 2 tokens, length>"]
    assert "the prompt is empty" in wrong[1]


def test_completion_offers_what_is_meant():
    assert set(dir(sluice)) == {*sluice.__all__, "__version__"}
    assert {name for name in dir(ops) if not name.endswith("Result")} == set(ops.__all__)
    assert all(hasattr(sluice, name) for name in dir(sluice)) and all(hasattr(ops, name) for name in dir(ops))


def test_a_gpu_that_is_not_used_is_told_of(monkeypatch, tmp_path):
    monkeypatch.setattr(sluice._native, "with_cuda", False)
    monkeypatch.setattr("sluice.model._GPU", str(tmp_path))
    for make in (sluice.Model, lambda: sluice.Model.random("qwen3.6-35b-a3b:layers=1,experts=8,vocab=512")):
        with pytest.warns(UserWarning, match="without CUDA") as warned:
            make().close()
        assert warned[0].filename == __file__  # the line that requested the model
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sluice.Model(backend="cpu").close()
        monkeypatch.setattr("sluice.model._GPU", str(tmp_path / "none"))
        sluice.Model().close()
