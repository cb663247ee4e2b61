"""Uses every public name of the package. The tests run it; mypy --strict and pyright check it against the package's types."""

from __future__ import annotations

import asyncio
import pathlib

import numpy
import numpy.typing

import sluice
from sluice import ops

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"enum": ["Bern", "Oslo"]}}, "required": ["city"], "additionalProperties": False}}}
CHAT = [{"role": "user", "content": "Weather?"}]


def texts(model: sluice.Model) -> None:
    settings: sluice.Sampling = {"max_tokens": 8, "min_tokens": 1, "temperature": 0.5, "top_k": 20, "top_p": 0.9, "min_p": 0.01, "seed": 1,
                                 "repetition_penalty": 1.1, "presence_penalty": 0.1, "frequency_penalty": 0.1, "logit_bias": {5: -1.0},
                                 "stop": ["Lily"], "logprobs": 2, "ignore_stop_ids": True}
    answer: sluice.Generation = model.generate("Once upon a time", **settings)
    text: str = str(answer)
    ids: list[int] = answer.ids
    logprobs: list[float] | None = answer.logprobs
    assert text == answer.text and len(ids) == len(logprobs or []) and answer.finish_reason in ("stop", "length")
    seconds: float = answer.prompt_seconds + answer.first_token_seconds + answer.decode_seconds
    assert seconds > 0 and answer.tokens_per_second >= 0 and answer.cached_tokens <= answer.prompt_tokens
    token: sluice.Token = answer.tokens[0]
    assert token.id == ids[0] and token.text == str(token) and token.logprob is not None and len(token.top) == 2
    batch: list[sluice.Generation] = model.generate_batch(["a", [1, 2, 3]], max_tokens=2)
    assert len(batch) == 2
    stream: sluice.Stream = model.stream([1, 2, 3], max_tokens=4)
    with stream:
        for token in stream:
            assert stream.progress == (3, 3)
        assert stream.result.finish_reason
        stream.cancel()
    for form in (sluice.Sampling(schema={"type": "integer", "maximum": 9, "minimum": 0}), sluice.Sampling(regex="[0-9]"),
                 sluice.Sampling(grammar='root ::= "7"'), sluice.Sampling(choices=["1", "2"])):
        assert str(model.generate("A number: ", **form)).isdigit()


def conversations(model: sluice.Model) -> None:
    answer: sluice.ChatAnswer = model.chat(CHAT, tools=[TOOL], tool_choice="weather", parallel_tool_calls=False, max_tokens=200)
    call: sluice.ToolCall = answer.tool_calls[0]
    assert call.name == "weather" and call.arguments["city"] and answer.message["role"] == "assistant" and not answer.thinking
    assert answer.generation.ids and str(answer) == answer.content
    assert model.chat(CHAT, schema={"type": "boolean"}, max_thinking_tokens=0, max_tokens=20,
                      variables={"enable_thinking": False}).content in ("true", "false")
    pieces: sluice.ChatStream = model.chat_stream(CHAT, max_tokens=8, temperature=0)
    first: sluice.Delta = next(pieces)
    assert first.kind == "content" and first.text == str(first) and not first.function
    assert pieces.result.content.startswith(first.text)
    pieces.cancel()
    assert model.render(CHAT, tools=[TOOL], generation_prompt=False)


async def event_loop(model: sluice.Model) -> None:
    waiting = model.generate_async("The dog", max_tokens=4)
    stream: sluice.AsyncStream = model.stream_async("The cat", max_tokens=4)
    async with stream:
        async for token in stream:
            assert isinstance(token, sluice.Token) and stream.progress[0] > 0
    assert (await stream.result()).ids and (await waiting).ids
    stream.cancel()
    pieces: sluice.AsyncChatStream = model.chat_stream_async(CHAT, max_tokens=8, temperature=0)
    said = "".join([str(piece) async for piece in pieces])
    assert said == (await pieces.result()).content == (await model.chat_async(CHAT, max_tokens=8, temperature=0)).content
    pieces.cancel()
    with sluice.Scheduler(model, parallel=2, context=64) as scheduler:
        assert (await scheduler.stream_async(model.request([1], max_tokens=2)).result()).ids


def timelines(model: sluice.Model) -> None:
    with model.session(capacity=64) as session:
        session.extend("Once upon")
        point: sluice.Snapshot = session.snapshot()
        mark: sluice.Snapshot = session.mark()
        fork: sluice.Session = session.fork()
        rows: numpy.typing.NDArray[numpy.float32] = session.extend_with_logits(" a time")
        session.step(int(session.logits().argmax()))
        assert rows.shape[1] == session.logits().shape[0] and session.tokens[:-1] == model.tokenize("Once upon a time")
        session.rewind(mark)
        session.restore(point)
        assert len(session) == len(fork) == len(point) and point.bytes > 0 and session.bytes > 0 and session.capacity == 64
        assert session.generate(" a", lambda token: token.id >= 0, max_tokens=2).ids
        session.reset()
        fork.close()
    request: sluice.Request = model.request("The dog", priority=1, timeout=60.0, key="someone", max_tokens=2)
    with sluice.Scheduler(model, parallel=2, context=64, cache_tokens=128, queue=8, token_interval=0.1) as scheduler:
        assert scheduler.run([request])[0].ids and scheduler.state["finished"] == 1
        assert scheduler.stream(model.request([1], max_tokens=2)).result.ids
        scheduler.drain()


def studies(folder: pathlib.Path) -> None:
    tiny = "qwen3.6-35b-a3b:layers=4,experts=8,vocab=1024"
    size: int = sluice.random(tiny, folder / "plain", bits=16)
    assert size > sluice.random(tiny, folder / "uneven", bits=4, zipf=1.0)
    assert size > sluice.convert(folder / "plain", folder / "packed", bits=4, group_size=64)["bytes_out"]
    assert sluice.inspect(folder / "packed")["layers"] == 4
    assert sluice.plan("qwen3.6-35b-a3b", bits=4, memory="32GB", vram="24GB", sequences=2)["places"]
    with sluice.Model.random(tiny, bits=4, kv_bits=(8, 4), threads=1, memory="2GB", parallel=1, context=64) as model:
        assert model.generate([1], max_tokens=2, ignore_stop_ids=True).ids


def arrays() -> None:
    x = numpy.ones((2, 64), numpy.float32)
    weight: ops.Quantized = ops.quantize(x, bits=4, group_size=32)
    assert numpy.array_equal(ops.dequantize(weight, backend="reference"), x)
    assert ops.matmul(x=x, w=weight, backend="cpu", threads=1, exact=True).shape == (2, 2)
    both = ops.add_rms_norm(residual=x, delta=x, weight=x[0], eps=1e-6)
    assert both.out.shape == both.residual.shape and ops.describe("add_rms_norm")["formula"] and len(ops.describe()) > 40


def errors() -> None:
    kinds: list[type[sluice.Error]] = [sluice.InputError, sluice.CheckpointError, sluice.UnsupportedError, sluice.ResourceError,
                                       sluice.BusyError, sluice.InternalError]
    assert all(issubclass(kind, sluice.Error) for kind in kinds)
    try:
        sluice.Model("no-such-model")
    except sluice.InputError as error:
        assert "no-such-model" in str(error)


def main(folder: pathlib.Path) -> None:
    with sluice.Model("delta-story", backend="cpu", threads=2, memory="8GB", vram=0, kv_bits=16, exact=False, parallel=4,
                      context=512) as model:
        assert model.name == "delta-story" and model.summary["layers"] and model.memory["allocated"] >= 0 and model.stop_ids
        assert model.detokenize(model.tokenize("Hello.", special=True), skip_special=True) == "Hello."
        assert model.logits("Hello.").dtype == numpy.float32 and model.perplexity("Hello there.", context=64, stride=32)["nats_per_token"] > 0
        assert model.scheduler.state["parallel"] == 4
        texts(model)
        conversations(model)
        asyncio.run(event_loop(model))
        timelines(model)
    studies(folder)
    arrays()
    errors()
    with sluice.serve("delta-story", host="127.0.0.1", port=0, options=["--parallel", "1"]) as server:
        assert isinstance(server, sluice.Server) and server.url.startswith("http://127.0.0.1:")
    assert sluice.__version__
