"""What generation gives back."""

from __future__ import annotations

import dataclasses
from typing import Any

RawToken = tuple[int, str, float, list[tuple[int, float]]]


@dataclasses.dataclass(frozen=True)
class Token:
    """One generated token. Its text is what it completes, and may be empty: a character can take several tokens. What is left of a
    character or a stop text when the answer ends comes last, with the id -1."""

    id: int  # of the vocabulary
    text: str  # what it completes
    logprob: float | None = None  # where it was asked for
    top: tuple[tuple[int, float], ...] = ()  # (id, logprob) of the most likely ones, where they were asked for

    def __str__(self) -> str:
        return self.text

    def __format__(self, how: str) -> str:
        return format(self.text, how)

    @staticmethod
    def _of(raw: RawToken, asked: bool) -> Token:
        return Token(raw[0], raw[1], raw[2], tuple(raw[3])) if asked and raw[0] >= 0 else Token(raw[0], raw[1])


@dataclasses.dataclass(frozen=True)
class Generation:
    """An answer: str() of it is its text."""

    text: str  # without stop texts and tokens that mean none
    ids: list[int] = dataclasses.field(repr=False)  # the tokens
    finish_reason: str  # "stop", "length" or "cancelled"
    tokens: list[Token] = dataclasses.field(repr=False)  # the ids with their texts and log-probabilities
    prompt_tokens: int  # of the prompt
    prompt_seconds: float  # to read the prompt
    first_token_seconds: float  # from the call to the first token
    decode_seconds: float  # of all tokens after the first
    cached_tokens: int = 0  # of the prompt, that did not have to be read again

    def __str__(self) -> str:
        return self.text

    def __format__(self, how: str) -> str:
        return format(self.text, how)

    @property
    def logprobs(self) -> list[float] | None:
        """Of the ids; None where `logprobs=` did not ask for them."""
        known = [token.logprob for token in self.tokens if token.logprob is not None]
        return known if len(known) == len(self.ids) else None

    @property
    def tokens_per_second(self) -> float:
        """Of decoding: all tokens after the first."""
        return (len(self.ids) - 1) / self.decode_seconds if self.decode_seconds > 0 else 0.0

    @staticmethod
    def _of(raw: dict[str, Any], tokens: list[Token]) -> Generation:
        return Generation(tokens=tokens, **raw)
