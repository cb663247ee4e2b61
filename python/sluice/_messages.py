"""Converts conversations in the forms of OpenAI's clients to those of chat templates, as the server does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from . import _native

_ROLES = {"developer": "system", "function": "tool"}
# kinds of parts, and the keys of their text
_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}


def dictionaries(given: Iterable[Mapping[str, Any]], meaning: str) -> list[Mapping[str, Any]]:
    try:
        made = list(given)
        if isinstance(given, Mapping) or not all(isinstance(one, Mapping) for one in made):
            raise TypeError
    except TypeError:
        raise TypeError(f"{meaning}, not {given!r:.60}") from None
    return made


def template_messages(given: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [_message(one) for one in dictionaries(given, "messages are a sequence of dictionaries with role and content")]


def with_one_system_message(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Joins several system messages at the beginning, which many templates reject."""
    count = next((at for at, one in enumerate(messages) if one.get("role") != "system" or not isinstance(one["content"], str)), len(messages))
    if count < 2:
        return messages
    return [{"role": "system", "content": "\n\n".join(one["content"] for one in messages[:count])}, *messages[count:]]


def _message(given: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(given)
    role = made.get("role")
    if isinstance(role, str):
        made["role"] = _ROLES.get(role, role)
    content = made.get("content")
    made["content"] = "" if content is None else _joined(content) if isinstance(content, (list, tuple)) else content
    if isinstance(calls := made.get("tool_calls"), (list, tuple)):
        made["tool_calls"] = [_call(one) for one in calls]
    return made


def _joined(parts: Iterable[Any]) -> str:
    """Joins the text of parts: only text is supported."""
    texts = []
    for part in parts:
        kind = part.get("type") if isinstance(part, Mapping) else None
        text = part.get(_TEXTS[kind]) if isinstance(part, Mapping) and isinstance(kind, str) and kind in _TEXTS else None
        if not isinstance(text, str):
            raise _native.InputError(f"a message's content is text, or parts of text as {{'type': 'text', 'text': ...}}, not {part!r:.60}")
        texts.append(text)
    return "".join(texts)


def _call(given: Any) -> Any:
    """A tool call with its arguments as an object, if they were given as JSON text."""
    function = given.get("function") if isinstance(given, Mapping) else None
    if not isinstance(function, Mapping):
        return given
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            read = json.loads(arguments)
        except ValueError:
            read = None  # text that a model wrote and that is not JSON stays text
        arguments = read if isinstance(read, dict) else arguments
    return {**given, "function": {**function, "arguments": {} if arguments is None else arguments}}
