"""Answers in a conversation, parsed into thinking, text and tool calls."""

from __future__ import annotations

import collections
import dataclasses
import json
import threading
import types
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TYPE_CHECKING

from . import _native
from ._options import OfThisProcess
from .results import Generation, Token
from .scheduler import AsyncStream, Scheduler, Stream

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclasses.dataclass(frozen=True)
class ToolCall:
    """A tool call that the model requests."""

    name: str  # the tool's name
    arguments: dict[str, Any]  # as the tool's schema says


@dataclasses.dataclass(frozen=True)
class Delta:
    """A piece of an answer: of its thinking or of its text, or one tool call."""

    kind: str  # "thinking", "content" or "call"
    text: str  # the text; for a call, its arguments as JSON
    function: str = ""  # the tool that is called
    malformed_call: bool = False  # this content was meant to be a tool call but cannot be parsed

    def __str__(self) -> str:
        return self.text if self.kind == "content" else ""

    def __format__(self, how: str) -> str:
        return format(str(self), how)


@dataclasses.dataclass(frozen=True)
class ChatAnswer:
    """An answer in a conversation; str() of it is its text."""

    content: str  # the text
    thinking: str  # the thinking before it, if the model thinks
    tool_calls: list[ToolCall]  # the tool calls that it requests
    generation: Generation  # all that was generated
    malformed_call: bool = False  # the text contains a tool call that cannot be parsed

    def __str__(self) -> str:
        return self.content

    def __format__(self, how: str) -> str:
        return format(self.content, how)

    @property
    def message(self) -> dict[str, Any]:
        """The answer as a message to append to the conversation."""
        made: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.thinking:
            made["reasoning_content"] = self.thinking
        if self.tool_calls:
            made["tool_calls"] = [{"type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                                  for call in self.tool_calls]
        return made


def chat_answer(parser: _native.AnswerParser, generation: Generation) -> ChatAnswer:
    pieces = [parser.push(token.text) for token in generation.tokens] + [parser.finish()]
    deltas = [Delta(*delta) for piece in pieces for delta in piece]
    joined = {kind: "".join(delta.text for delta in deltas if delta.kind == kind) for kind in ("thinking", "content")}
    calls = [ToolCall(delta.function, json.loads(delta.text)) for delta in deltas if delta.kind == "call"]
    malformed = any(delta.malformed_call for delta in deltas)
    return ChatAnswer(joined["content"], joined["thinking"], calls, generation, malformed)


class _Pieces:
    """The pieces of an answer to return. Not a generator, because one that is left by an interruption or a timeout cannot continue."""

    def __init__(self) -> None:
        self.ready: collections.deque[Delta] = collections.deque()
        self.finished = False
        self._parser: _native.AnswerParser | None = None

    def push(self, plan: _native.AnswerPlan, token: Token) -> None:
        self._parser = self._parser or plan.parser()
        self.ready.extend(Delta(*delta) for delta in self._parser.push(token.text))

    def finish(self) -> None:
        if self._parser is not None and not self.finished:
            self.ready.extend(Delta(*delta) for delta in self._parser.finish())
        self.finished = True


class ChatStream(OfThisProcess, Iterator[Delta]):
    """The pieces of an answer as they arrive. Leaving the loop, or dropping the last reference, cancels the request."""

    def __init__(self, stream: Stream, plan: _native.AnswerPlan):
        self._stream, self._plan, self._pieces = stream, plan, _Pieces()
        self._lock = threading.Lock()

    def __next__(self) -> Delta:
        try:
            with self._lock:
                while not self._pieces.ready:
                    if self._pieces.finished:
                        raise StopIteration
                    try:
                        self._pieces.push(self._plan, next(self._stream))
                    except StopIteration:
                        self._pieces.finish()
                return self._pieces.ready.popleft()
        finally:
            del self  # as in Stream

    def __repr__(self) -> str:
        return repr(self._stream).replace("Stream", "ChatStream", 1)

    @property
    def result(self) -> ChatAnswer:
        """The whole answer; waits for its end."""
        return chat_answer(self._plan.parser(), self._stream.result)

    def cancel(self) -> None:
        """Ends the answer with what has been generated."""
        self._stream.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None) -> None:
        self.cancel()


class AsyncChatStream(OfThisProcess, AsyncIterator[Delta]):
    """The pieces of an answer as they arrive, for `async for`; the event loop is not blocked."""

    def __init__(self, make: Callable[[], tuple[Scheduler, _native.Request, _native.AnswerPlan]]):
        def make_request() -> tuple[Scheduler, _native.Request]:
            scheduler, request, plan = make()
            plans.append(plan)
            return scheduler, request

        plans: list[_native.AnswerPlan] = []
        self._stream, self._plans, self._pieces = AsyncStream(make_request), plans, _Pieces()

    async def __anext__(self) -> Delta:
        try:
            while not self._pieces.ready:
                if self._pieces.finished:
                    raise StopAsyncIteration
                try:
                    token = await self._stream.__anext__()
                    self._pieces.push(self._plans[0], token)  # there is a plan once there are tokens
                except StopAsyncIteration:
                    self._pieces.finish()
            return self._pieces.ready.popleft()
        finally:
            del self  # as in AsyncStream

    def __repr__(self) -> str:
        return repr(self._stream).replace("AsyncStream", "AsyncChatStream", 1)

    async def result(self) -> ChatAnswer:
        """The whole answer."""
        generation = await self._stream.result()
        return chat_answer(self._plans[0].parser(), generation)

    def cancel(self) -> None:
        """Ends the answer with what has been generated."""
        self._stream.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: types.TracebackType | None) -> None:
        self.cancel()
