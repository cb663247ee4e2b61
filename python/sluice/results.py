"""The results of generation."""

from __future__ import annotations

import dataclasses
from typing import Any

RawToken = tuple[int, str, float, list[tuple[int, float]]]


@dataclasses.dataclass(frozen=True)
class Token:
    """One generated token. Its text is what the token completes; it may be empty, as a character can take several tokens. If part of a
    character or of a stop text is left when the answer ends, it comes last, with the id -1."""

    id: int  # in the vocabulary
    text: str  # the text that this token completes
    logprob: float | None = None  # if it was requested
    top: tuple[tuple[int, float], ...] = ()  # (id, logprob) of the most likely tokens, if requested

    def __str__(self) -> str:
        return self.text

    def __format__(self, how: str) -> str:
        return format(self.text, how)

    @staticmethod
    def _of(raw: RawToken, asked: bool) -> Token:
        return Token(raw[0], raw[1], raw[2], tuple(raw[3])) if asked and raw[0] >= 0 else Token(raw[0], raw[1])


@dataclasses.dataclass(frozen=True)
class Generation:
    """An answer; str() of it is its text."""

    text: str  # without stop texts and special tokens
    ids: list[int] = dataclasses.field(repr=False)  # the tokens
    finish_reason: str  # "stop", "length" or "cancelled"
    tokens: list[Token] = dataclasses.field(repr=False)  # the ids with their texts and log-probabilities
    prompt_tokens: int  # tokens of the prompt
    prompt_seconds: float  # to process the prompt
    first_token_seconds: float  # from the call to the first token
    decode_seconds: float  # for all tokens after the first
    cached_tokens: int = 0  # tokens of the prompt that were cached

    def __str__(self) -> str:
        return self.text

    def __format__(self, how: str) -> str:
        return format(self.text, how)

    @property
    def logprobs(self) -> list[float] | None:
        """The log-probabilities of the ids; None unless `logprobs=` requested them."""
        known = [token.logprob for token in self.tokens if token.logprob is not None]
        return known if len(known) == len(self.ids) else None

    @property
    def tokens_per_second(self) -> float:
        """Speed of decoding, for all tokens after the first."""
        return (len(self.ids) - 1) / self.decode_seconds if self.decode_seconds > 0 else 0.0

    @staticmethod
    def _of(raw: dict[str, Any], tokens: list[Token]) -> Generation:
        return Generation(tokens=tokens, **raw)
