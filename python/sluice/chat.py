"""Answers in a conversation, taken apart: thinking, text and calls of tools."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

from . import _native
from .results import Generation, Token
from .scheduler import AsyncStream, Scheduler, Stream


@dataclasses.dataclass(frozen=True)
class ToolCall:
    """One call of a tool that the model asks for."""

    name: str  # of the tool
    arguments: dict[str, Any]  # by the tool's own schema


@dataclasses.dataclass(frozen=True)
class Delta:
    """A piece of an answer: of its thinking, of its text, or one call."""

    kind: str  # "thinking", "content" or "call"
    text: str  # of a call: its arguments as JSON
    function: str = ""  # the tool that is called
    malformed_call: bool = False  # this content was meant to be a call, but cannot be read as one

    def __str__(self) -> str:
        return self.text if self.kind == "content" else ""

    def __format__(self, how: str) -> str:
        return format(str(self), how)


@dataclasses.dataclass(frozen=True)
class ChatAnswer:
    """An answer in a conversation: str() of it is its text."""

    content: str  # the text
    thinking: str  # before it, of models that think aloud
    tool_calls: list[ToolCall]  # the tools it asks for
    generation: Generation  # all that was generated
    malformed_call: bool = False  # the text holds what was meant to be a call, but cannot be read as one

    def __str__(self) -> str:
        return self.content

    def __format__(self, how: str) -> str:
        return format(self.content, how)

    @property
    def message(self) -> dict[str, Any]:
        """The answer as the next message of the conversation."""
        made: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.thinking:
            made["reasoning_content"] = self.thinking
        if self.tool_calls:
            made["tool_calls"] = [{"type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                                  for call in self.tool_calls]
        return made


def take_apart(parser: _native.AnswerParser, tokens: Iterable[Token]) -> Iterator[Delta]:
    for token in tokens:
        yield from (Delta(*delta) for delta in parser.push(token.text))
    yield from (Delta(*delta) for delta in parser.finish())


def chat_answer(parser: _native.AnswerParser, generation: Generation) -> ChatAnswer:
    deltas = list(take_apart(parser, generation.tokens))
    joined = {kind: "".join(delta.text for delta in deltas if delta.kind == kind) for kind in ("thinking", "content")}
    calls = [ToolCall(delta.function, json.loads(delta.text)) for delta in deltas if delta.kind == "call"]
    malformed = any(delta.malformed_call for delta in deltas)
    return ChatAnswer(joined["content"], joined["thinking"], calls, generation, malformed)


class ChatStream(Iterator[Delta]):
    """The pieces of an answer as they come. Losing the last reference to it cancels the request."""

    def __init__(self, stream: Stream, plan: _native.AnswerPlan):
        self._stream, self._plan = stream, plan
        self._deltas = take_apart(plan.parser(), stream)

    def __next__(self) -> Delta:
        return next(self._deltas)

    @property
    def result(self) -> ChatAnswer:
        """The whole answer; waits for it."""
        return chat_answer(self._plan.parser(), self._stream.result)

    def cancel(self) -> None:
        """Ends the answer with what has come of it."""
        self._stream.cancel()


async def take_apart_async(plans: list[_native.AnswerPlan], tokens: AsyncStream) -> AsyncIterator[Delta]:
    """There is a plan once there are tokens."""
    parser = None
    async for token in tokens:
        parser = parser or plans[0].parser()
        for delta in parser.push(token.text):
            yield Delta(*delta)
    for delta in parser.finish() if parser else []:
        yield Delta(*delta)


class AsyncChatStream(AsyncIterator[Delta]):
    """The pieces of an answer as they come, for `async for`; the event loop goes on meanwhile."""

    def __init__(self, make: Callable[[], tuple[Scheduler, _native.Request, _native.AnswerPlan]]):
        def make_request() -> tuple[Scheduler, _native.Request]:
            scheduler, request, plan = make()
            plans.append(plan)
            return scheduler, request

        plans: list[_native.AnswerPlan] = []
        self._stream, self._plans = AsyncStream(make_request), plans
        self._deltas = take_apart_async(plans, self._stream)

    async def __anext__(self) -> Delta:
        return await self._deltas.__anext__()

    async def result(self) -> ChatAnswer:
        """The whole answer."""
        generation = await self._stream.result()
        return chat_answer(self._plans[0].parser(), generation)

    def cancel(self) -> None:
        """Ends the answer with what has come of it."""
        self._stream.cancel()
