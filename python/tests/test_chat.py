"""Conversations: the model's own template, tools, and answers in pieces."""

import asyncio
import pathlib
import shutil
import threading

import pytest

import sluice
from conftest import STORY

MESSAGES = [{"role": "user", "content": "Tell me a story."}]
SETTINGS = {"max_tokens": 30, "temperature": 0, "ignore_stop_ids": True}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"enum": ["Bern", "Oslo"]}}, "required": ["city"], "additionalProperties": False}}}


@pytest.fixture(scope="module")
def content(model):
    return model.chat(MESSAGES, **SETTINGS).content


def test_chat(model, content):
    answer = model.chat(MESSAGES, **SETTINGS)
    assert content and str(answer) == answer.content == content and answer.message == {"role": "assistant", "content": content}
    assert "".join(str(piece) for piece in model.chat_stream(MESSAGES, **SETTINGS)) == content
    assert asyncio.run(model.chat_async(MESSAGES, **SETTINGS)).content == content

    async def in_pieces():
        return "".join([str(piece) async for piece in model.chat_stream_async(MESSAGES, **SETTINGS)])

    assert asyncio.run(in_pieces()) == content
    assert model.render(MESSAGES) in model.render(MESSAGES + [answer.message, {"role": "user", "content": "More!"}])


def test_tools(model):
    answer = model.chat([{"role": "user", "content": "Weather?"}], tools=[TOOL], tool_choice="required", max_tokens=200, temperature=1,
                        parallel_tool_calls=False, seed=1)
    assert answer.tool_calls and answer.tool_calls[0].name == "weather"
    assert answer.tool_calls[0].arguments["city"] in ("Bern", "Oslo")


def test_calls_that_a_limit_cuts_are_none(model):
    whole = model.chat(MESSAGES, tools=[TOOL], tool_choice="required", parallel_tool_calls=False, max_tokens=200, temperature=0)
    for limit in (1, len(whole.generation.ids) // 2, len(whole.generation.ids) - 1):
        cut = model.chat(MESSAGES, tools=[TOOL], tool_choice="required", parallel_tool_calls=False, max_tokens=limit, temperature=0)
        assert cut.tool_calls in ([], whole.tool_calls) and cut.generation.finish_reason == "length"


def test_variables_reach_the_template(model, tmp_path):
    """For instance the one that switches thinking off."""
    for file in pathlib.Path(sluice._options.find_model("delta-story")).iterdir():
        shutil.copy(file, tmp_path)
    (tmp_path / "chat_template.jinja").write_text("{{ 'The dog' if enable_thinking | default(true) else 'Once upon a time' }}")
    quiet = {"enable_thinking": False}
    with sluice.Model(tmp_path) as own:
        assert own.chat(MESSAGES, **SETTINGS).content == model.generate("The dog", **SETTINGS).text.strip()
        assert STORY.startswith(own.chat(MESSAGES, variables=quiet, **SETTINGS).content)
        assert STORY.startswith("".join(map(str, own.chat_stream(MESSAGES, variables=quiet, **SETTINGS))))
        assert STORY.startswith(asyncio.run(own.chat_async(MESSAGES, variables=quiet, **SETTINGS)).content)


def test_any_iterable_of_messages_and_tools(model, content):
    assert model.chat(iter(MESSAGES), **SETTINGS).content == content
    assert model.chat(MESSAGES, tools=iter([TOOL]), tool_choice="weather", max_tokens=200).tool_calls[0].name == "weather"


OWN_FORM = [{"role": "system", "content": "Be kind."}, {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": {"city": "Oslo"}}}]},
            {"role": "tool", "content": "Rain."}]
FORM_OF_CLIENTS = [
    {"role": "system", "content": "Be kind."}, {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
    {"role": "user", "content": [{"type": "text", "text": "Weath"}, {"type": "text", "text": "er?"}]},
    {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}]},
    {"role": "tool", "content": "Rain."}]


def test_messages_in_the_forms_of_other_clients(model, tmp_path):
    assert model.render(FORM_OF_CLIENTS, tools=[TOOL]) == model.render(OWN_FORM, tools=[TOOL])
    assert model.chat(FORM_OF_CLIENTS, **SETTINGS).content == model.chat(OWN_FORM, **SETTINGS).content
    for file in pathlib.Path(sluice._options.find_model("delta-story")).iterdir():
        shutil.copy(file, tmp_path)
    (tmp_path / "chat_template.jinja").write_text("{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
                                                  "{{ raise_exception('one system message') }}{% endif %}{{ m.content }}|{% endfor %}")
    with sluice.Model(tmp_path) as strict:
        assert strict.render(FORM_OF_CLIENTS) == "Be kind.\n\nBe brief.|Weather?||Rain.|"
        with pytest.raises(sluice.InputError, match="one system message"):
            strict.render(FORM_OF_CLIENTS[3:] + FORM_OF_CLIENTS[:1])
    for part in ({"type": "image_url", "image_url": {"url": "a"}}, {"type": "text"}, {"text": "a"}, "a", {"type": ["text"], "text": "a"}):
        with pytest.raises(sluice.InputError, match="parts of text"):
            model.chat([{"role": "user", "content": [part]}], **SETTINGS)


def test_timeouts_between_pieces_lose_none(model, content):
    async def main():
        pieces, heard, late = model.chat_stream_async(MESSAGES, **SETTINGS), [], 0
        while True:
            try:
                heard.append(str(await asyncio.wait_for(pieces.__anext__(), 0.0005)))
            except asyncio.TimeoutError:
                late += 1
            except StopAsyncIteration:
                return "".join(heard), late

    assert asyncio.run(main())[0] == content


def test_consumers_share_an_answer(model, content):
    async def main():
        pieces, heard = model.chat_stream_async(MESSAGES, **SETTINGS), []

        async def listen():
            async for piece in pieces:
                heard.append(str(piece))

        await asyncio.gather(listen(), listen())
        return heard

    assert sorted("".join(asyncio.run(main()))) == sorted(content)
    pieces, heard = model.chat_stream(MESSAGES, **SETTINGS), []
    threads = [threading.Thread(target=lambda: heard.extend(map(str, pieces)), daemon=True) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join(60) for thread in threads]
    assert sorted("".join(heard)) == sorted(content)


def test_with_ends_an_answer(model):
    with model.chat_stream(MESSAGES, max_tokens=1000, ignore_stop_ids=True) as pieces:
        next(pieces)
    assert pieces.result.generation.finish_reason == "cancelled"

    async def main():
        async with model.chat_stream_async(MESSAGES, max_tokens=1000, ignore_stop_ids=True) as pieces:
            await pieces.__anext__()
        return await pieces.result()

    assert asyncio.run(main()).generation.finish_reason == "cancelled"
