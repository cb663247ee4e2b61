"""One timeline of tokens with the model's state for it."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy

from . import _native
from ._options import OfThisProcess, Sampling, encode, text_options, token_ids
from .results import Generation, RawToken, Token

if TYPE_CHECKING:
    from typing_extensions import Unpack
    import numpy.typing

    Floats = numpy.typing.NDArray[numpy.float32]

Snapshot = _native.Snapshot


class Session(OfThisProcess):
    """Made by Model.session(). Threads that share one wait for each other; sessions of one model do not."""

    def __init__(self, engine: _native.Engine, capacity: int, config: Mapping[str, float]):
        self._engine, self._config = engine, config
        try:
            fits = -1 < operator.index(capacity) < 1 << 63
        except TypeError:
            raise TypeError(f"capacity cannot be {capacity!r:.60}, expected a whole number") from None
        if not fits:
            raise _native.InputError(f"a context of {capacity} tokens is not possible")
        self._native = _native.new_session(engine, capacity)
        self._closed = False

    def __repr__(self) -> str:
        return f"<sluice.Session {'(closed)' if self._closed else 'of ' + self._engine.backend_description()}>"

    def __bool__(self) -> bool:
        return True  # even if it is empty

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Frees its memory now; the session cannot be used afterwards."""
        self._native.close()
        self._closed = True

    def __len__(self) -> int:
        return self._native.length()

    @property
    def capacity(self) -> int:
        """Maximum number of tokens."""
        return self._native.capacity()

    @property
    def bytes(self) -> int:
        """Bytes of memory that it uses."""
        return self._native.bytes()

    @property
    def tokens(self) -> list[int]:
        """All tokens that were processed or generated."""
        return self._native.tokens()

    def _ids(self, text: str | Sequence[int]) -> list[int]:
        return encode(self._engine, text, len(self) == 0) if isinstance(text, str) else token_ids(text)

    def extend(self, text: str | Sequence[int]) -> None:
        """Appends and processes a text or token ids; logits() are then those of the last token."""
        self._native.extend(self._ids(text))

    def extend_with_logits(self, text: str | Sequence[int]) -> Floats:
        """The same, and returns every token's logits, one row each."""
        return self._native.extend_with_logits(self._ids(text))

    def step(self, token: int) -> None:
        """Appends one generated token. On a GPU, faster kernels do this, which round differently than for a prompt."""
        self._native.step(*token_ids([token]))

    def logits(self) -> Floats:
        """The logits of the last token."""
        row = self._native.logits()
        if not row.size:
            raise _native.InputError("the session is empty, so there are no logits")
        return row

    def generate(self, prompt: str | Sequence[int] = (), on_token: Callable[[Token], bool | None] | None = None,
                 **settings: Unpack[Sampling]) -> Generation:
        """Processes the prompt and generates an answer. `on_token` sees each token and may return False to stop there; it cannot use this session."""
        if on_token is not None and not callable(on_token):
            raise TypeError(f"on_token cannot be {on_token!r:.60}, expected a function of a token")
        tokens: list[Token] = []

        def hear(raw: RawToken) -> bool:
            assert on_token is not None
            tokens.append(Token._of(raw, asked))
            goes_on = on_token(tokens[-1])  # only False ends it; functions may return anything else
            return not isinstance(goes_on, (bool, numpy.bool_)) or bool(goes_on)

        options = text_options(self._engine, self._config, settings)
        asked = options.sampling.logprobs >= 0
        raw, unheard = self._native.generate(self._ids(prompt), options, None if on_token is None else hear)
        return Generation._of(raw, tokens + [Token._of(one, asked) for one in unheard])

    def snapshot(self) -> Snapshot:
        """A copy of the whole state, for restore() in any session of the same model."""
        return self._native.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Replaces the state by that of a snapshot."""
        self._native.restore(_saved(snapshot))

    def mark(self) -> Snapshot:
        """A cheap point for rewind(), valid as long as the timeline begins with the same tokens."""
        return self._native.mark()

    def rewind(self, mark: Snapshot) -> None:
        """Returns to a mark."""
        self._native.rewind(_saved(mark))

    def reset(self) -> None:
        """Empties the timeline."""
        self._native.reset()

    def fork(self) -> Session:
        """A new session that continues independently from here."""
        made = Session(self._engine, self.capacity, self._config)
        made.restore(self.snapshot())
        return made


def _saved(snapshot: Snapshot) -> Snapshot:
    if not isinstance(snapshot, Snapshot):
        raise TypeError(f"expected the result of snapshot() or mark(), not {snapshot!r:.60}")
    return snapshot
