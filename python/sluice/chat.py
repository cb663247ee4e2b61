"""Answers in a conversation, taken apart: thinking, text and calls of tools."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from typing import Any

from . import _native
from .results import Generation, Token
from .scheduler import Stream


@dataclasses.dataclass(frozen=True)
class ToolCall:
    name: str
    arguments: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Delta:
    """A piece of an answer: of its thinking, of its text, or one call."""

    kind: str  # "thinking", "content" or "call"
    text: str  # of a call: its arguments as JSON
    function: str = ""

    def __str__(self) -> str:
        return self.text if self.kind == "content" else ""


@dataclasses.dataclass(frozen=True)
class ChatAnswer:
    """An answer in a conversation: str() of it is its text."""

    content: str
    thinking: str
    tool_calls: list[ToolCall]
    generation: Generation  # all that was generated

    def __str__(self) -> str:
        return self.content

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
    return ChatAnswer(joined["content"], joined["thinking"], calls, generation)


class ChatStream(Iterator[Delta]):
    """The pieces of an answer as they come."""

    def __init__(self, stream: Stream, parser: _native.AnswerParser):
        self._stream = stream
        self._deltas = take_apart(parser, stream)

    def __next__(self) -> Delta:
        return next(self._deltas)

    def cancel(self) -> None:
        self._stream.cancel()
