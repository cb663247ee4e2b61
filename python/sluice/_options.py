"""Keyword arguments as the engine's settings."""

from __future__ import annotations

import json
import operator
import os
import pathlib
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, Protocol, TypedDict

import numpy

from . import _native

_UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4, "KI": 1024, "MI": 1024**2, "GI": 1024**3, "TI": 1024**4}
_USUAL_TEMPERATURE = 0.7


class SchemaModel(Protocol):
    """A pydantic class, or another class that provides its JSON schema."""

    def model_json_schema(self) -> dict[str, Any]: ...


class Sampling(TypedDict, total=False):
    """How an answer is sampled and where it ends. A setting that is missing or None follows the model's generation_config.json."""

    max_tokens: int | None  # maximum number of tokens; default 256
    min_tokens: int | None  # until then, only the required form can end the answer
    temperature: float | None  # 0: always the most likely token
    top_k: int | None  # sample from this many most likely tokens; 0: from all
    top_p: float | None  # sample from the most likely tokens whose probabilities add up to this
    min_p: float | None  # drop tokens below this fraction of the most likely token's probability
    repetition_penalty: float | None  # values above 1 discourage repetition
    presence_penalty: float | None  # subtracted from the logit of every token that has occurred
    frequency_penalty: float | None  # subtracted from a token's logit once per occurrence
    logit_bias: Mapping[int, float] | None  # values to add to the logits of these ids
    seed: int | None  # the same seed gives the same text; without one every call differs
    stop: str | Sequence[str] | None  # texts that end the answer and are not part of it
    logprobs: int | None  # log-probabilities of the tokens, and of this many most likely alternatives to each
    ignore_stop_ids: bool | None  # do not end the answer at the model's stop tokens
    # The form of the text, one of these at most:
    schema: Mapping[str, Any] | SchemaModel | None  # JSON that is valid under this schema, or for this pydantic class; {} for any JSON
    regex: str | None  # text that this regular expression matches as a whole
    grammar: str | None  # GBNF or EBNF, from the rule `root`
    choices: Sequence[str] | None  # one of these texts


def parse_bytes(size: float | str) -> int:
    """8589934592, 8e9, "8GB" or "8GiB"."""
    if not isinstance(size, str):
        if isinstance(size, float) and size.is_integer():
            size = int(size)
        try:
            made = operator.index(size)  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(f"a size is a whole number of bytes or a text such as 8GB, not {size!r:.60}") from None
        if not 0 <= made < 1 << 63:
            raise _native.InputError(f"{size} is not a size in bytes")
        return made
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?I?)B?\s*", size.upper())
    if not found or found[2] not in _UNITS:
        raise _native.InputError(f"'{size}' is not a size in bytes, such as 8GB or 8GiB")
    return parse_bytes(int(float(found[1]) * _UNITS[found[2]]))


def whole_number(given: int, name: str) -> int:
    try:
        if abs(made := operator.index(given)) < 1 << 31:
            return made
    except TypeError:
        pass
    raise TypeError(f"{name} cannot be {given!r:.60}, expected a whole number in its range")


def number(given: float, name: str) -> float:
    try:
        return float(given + 0.0)  # rejects text
    except (TypeError, ValueError):
        raise TypeError(f"{name} cannot be {given!r:.60}, expected a number") from None


class OfThisProcess:
    """Base of objects that own threads and memory of the engine, which cannot be copied: closing a copy would close the original."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} can neither be copied nor pickled: make one in each process that needs it")


def assign(target: object, **values: Any) -> None:
    """Passes settings to the engine; a value of the wrong type is reported with its name."""
    for name, value in values.items():
        try:
            setattr(target, name, value.item() if isinstance(value, numpy.generic) else value)
        except TypeError:
            kinds = {bool: "True or False", int: "a whole number in its range", float: "a number", str: "a text"}
            kind = kinds[type(getattr(target, name))]
            raise TypeError(f"{name.removesuffix('_seconds')} cannot be {value!r:.60}, expected {kind}") from None


def encode(engine: _native.Engine, text: str, special: bool) -> list[int]:
    """Token ids of a text."""
    check_text(text, "the text")
    return engine.encode(text, bool(special))


def check_text(text: str, name: str) -> None:
    if not isinstance(text, str):
        raise TypeError(f"{name} cannot be {text!r:.60}, expected a text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _native.InputError(f"{name} contains half a character at {error.start}: {text[error.start]!r}") from None


def to_json(value: Any, name: str) -> str:
    try:
        made = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"{name} cannot be written as JSON: {error}") from None
    check_text(made, name)
    return made


def token_ids(ids: Iterable[int]) -> list[int]:
    """A list of token ids; the engine checks that they are in the vocabulary."""
    try:
        if isinstance(ids, (str, bytes, bytearray, Mapping)):
            raise TypeError
        made = list(map(operator.index, ids))
    except TypeError:
        raise TypeError(f"expected the token ids of one text, not {ids!r:.60}") from None
    if made and not -(1 << 31) <= min(made) <= max(made) < 1 << 31:
        raise _native.InputError(f"token id {max(made, key=abs)} is outside any vocabulary")
    return made


def model_folders() -> list[pathlib.Path]:
    """The folders in which models are searched by name, as for the command line."""
    def folder(name: str) -> pathlib.Path | None:
        made = os.environ.get(name, "")
        return pathlib.Path(made) if made.startswith("/") else None

    home = folder("HOME")  # may be missing in a container
    data = folder("XDG_DATA_HOME") or (home and home / ".local/share")
    cache = folder("HF_HOME") or (home and home / ".cache/huggingface")
    hub = folder("HF_HUB_CACHE") or (cache and cache / "hub")
    folders = [pathlib.Path(named) for named in os.environ.get("SLUICE_MODELS", "").split(":") if named]
    return [*folders, *([data / "sluice/models"] if data else []), *bundled_models(), *([hub] if hub else [])]


def bundled_models() -> list[pathlib.Path]:
    """Inside the installed package, or above it in a build tree."""
    package = pathlib.Path(__file__)
    places = [folder / "models" for start in (package, package.resolve(), pathlib.Path(_native.__file__)) for folder in start.parents]
    return next(([place] for place in places if (place / "delta-story/config.json").is_file()), [])


def find_model(name: str | os.PathLike[str]) -> pathlib.Path:
    try:
        return _native.find_model(os.fsencode(name), model_folders())
    except UnicodeEncodeError:
        raise _native.InputError(f"{name!r:.60} is neither a model folder nor the name of a model") from None


def without_none(given: Sampling) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def generate_options(config: Mapping[str, float], settings: Sampling) -> _native.GenerateOptions:
    """`config` has the defaults of the model's makers, `settings` those of the caller."""
    unknown = settings.keys() - Sampling.__annotations__.keys()
    if unknown:
        raise TypeError(f"unknown setting {', '.join(sorted(unknown))}; known are {', '.join(Sampling.__annotations__)}")
    given = without_none(settings)
    options = _native.GenerateOptions()
    sampling = _native.SamplingSettings()
    chosen = {"temperature": _USUAL_TEMPERATURE, "seed": secrets.randbits(32), **config, **given}
    for name in ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "seed",
                 "logprobs"):
        if name in chosen:
            assign(sampling, **{name: chosen[name]})
    bias = given.get("logit_bias", {})
    try:
        sampling.logit_bias = list(bias.items())
    except (AttributeError, TypeError):
        raise TypeError(f"logit_bias cannot be {bias!r:.60}, expected numbers by token ids") from None
    options.sampling = sampling
    stop = given.get("stop", [])
    options.stop = _texts([stop] if isinstance(stop, str) else stop, "stop")
    for name in ("max_tokens", "min_tokens", "ignore_stop_ids"):
        if name in given:
            assign(options, **{name: given[name]})
    return options


def _texts(given: Sequence[str], name: str) -> list[str]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(f"{name} cannot be {given!r:.60}, expected a sequence of texts")
    for text in (made := list(given)):
        check_text(text, name)
    return made


def form_of(settings: Sampling) -> tuple[str, str, list[str]] | None:
    """The form that the settings require of the text, as (kind, text, choices)."""
    given = without_none(settings)
    forms = [name for name in ("schema", "regex", "grammar", "choices") if name in given]
    if not forms:
        return None
    if len(forms) > 1:
        raise _native.InputError(f"an answer has one form, not {' and '.join(forms)}")
    if "schema" in given:
        of_model = getattr(given["schema"], "model_json_schema", None)
        return ("schema", to_json(given["schema"] if of_model is None else of_model(), "schema"), [])
    if "choices" in given:
        return ("choices", "", _texts(given["choices"], "choices"))
    text = given.get("regex", given.get("grammar", ""))
    check_text(text, forms[0])
    return (forms[0], text, [])


def text_options(engine: _native.Engine, config: Mapping[str, float], given: Sampling) -> _native.GenerateOptions:
    """The options for a plain text, with the required form."""
    options = generate_options(config, given)
    answer = _native.AnswerRequest()
    answer.form = form_of(given)
    if answer.form is not None:
        _native.plan_answer(engine, answer).apply(options)
    return options


def command_line() -> str:
    """The path of the program `sluice`: next to the installed package, or next to the extension's folder in a build tree."""
    package = pathlib.Path(_native.__file__).parent
    for place in (package / "bin/sluice", package.parents[1] / "bin/sluice"):
        if place.is_file():
            return str(place)
    raise _native.UnsupportedError("the program sluice was not found beside the package")
