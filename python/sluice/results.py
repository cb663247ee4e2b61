"""What generation gives back."""

from __future__ import annotations

import dataclasses
from typing import Any

RawToken = tuple[int, str, float, list[tuple[int, float]]]


@dataclasses.dataclass(frozen=True)
class Token:
    """One generated token. Its text is what it completes, and may be empty: a character can take several tokens."""

    id: int
    text: str
    logprob: float = 0.0
    top: tuple[tuple[int, float], ...] = ()  # (id, logprob) of the most likely ones, where they were asked for

    def __str__(self) -> str:
        return self.text

    @staticmethod
    def _of(raw: RawToken) -> Token:
        return Token(raw[0], raw[1], raw[2], tuple(raw[3]))


@dataclasses.dataclass(frozen=True)
class Generation:
    """An answer: str() of it is its text."""

    text: str
    ids: list[int]
    finish_reason: str  # "stop", "length" or "cancelled"
    tokens: list[Token]  # the ids with their texts and log-probabilities
    prompt_tokens: int
    prompt_seconds: float
    first_token_seconds: float
    decode_seconds: float  # of all tokens after the first
    cached_tokens: int = 0  # of the prompt, that did not have to be read again

    def __str__(self) -> str:
        return self.text

    @property
    def logprobs(self) -> list[float]:
        return [token.logprob for token in self.tokens]

    @property
    def tokens_per_second(self) -> float:
        """Of decoding: all tokens after the first."""
        return (len(self.ids) - 1) / self.decode_seconds if self.decode_seconds > 0 else 0.0

    @staticmethod
    def _of(raw: dict[str, Any], tokens: list[Token]) -> Generation:
        return Generation(tokens=tokens, **raw)
