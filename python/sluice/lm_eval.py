"""A model for lm-eval:

    from sluice.lm_eval import SluiceLM
    lm_eval.simple_evaluate(SluiceLM("delta-story"), tasks=[...])

Importing this module also registers the model in lm-eval as "sluice": simple_evaluate("sluice", model_args="model=delta-story").
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy
from lm_eval.api.instance import Instance  # type: ignore[import-untyped, import-not-found, unused-ignore]
from lm_eval.api.model import LM  # type: ignore[import-untyped, import-not-found, unused-ignore]
from lm_eval.api.registry import register_model  # type: ignore[import-untyped, import-not-found, unused-ignore]
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window  # type: ignore[import-untyped, import-not-found, unused-ignore]

from ._options import Sampling
from .model import Model


_LIMITS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")  # the names that tasks use for the same setting


def _arguments(requests: Sequence[Any]) -> list[tuple[Any, Any]]:
    """The text and the settings of each request."""
    return [request.args for request in requests]


@register_model("sluice")  # type: ignore[misc, unused-ignore]
class SluiceLM(LM):  # type: ignore[misc, unused-ignore]
    """Takes a model, or the arguments of Model. Other arguments of lm-eval, such as batch sizes and devices, are ignored: the scheduler decides."""

    def __init__(self, model: Model | str | os.PathLike[str] = "delta-story", batch_size: Any = None, max_batch_size: Any = None,
                 device: Any = None, **options: Any):
        super().__init__()
        self._model = model if isinstance(model, Model) else Model(model, **options)
        self._longest = int(self._model.summary["max_positions"])

    def _begin(self, text: str) -> list[int]:
        """An empty context is replaced by the end-of-text token."""
        return self._model.tokenize(text, special=True) or self._model.stop_ids[:1]

    def _score(self, context: Sequence[int], continuation: Sequence[int]) -> tuple[float, bool]:
        """The log-probability of a continuation, and whether it is the most likely one."""
        scored = list(continuation[-self._longest:])
        if not scored:
            return 0.0, True
        ids = [*context, *continuation][-self._longest - 1:-1]  # the last one is predicted, not read
        with self._model.session(len(ids)) as session:
            session.extend(ids[:-len(scored)])  # the logits of the context are not needed
            rows = session.extend_with_logits(ids[-len(scored):]).astype(numpy.float64)
        rows -= rows.max(1, keepdims=True)
        logprobs = rows - numpy.log(numpy.exp(rows).sum(1, keepdims=True))
        return float(logprobs[numpy.arange(len(scored)), scored].sum()), bool((rows.argmax(1) == scored).all())

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        answers = []
        for context, continuation in _arguments(requests):
            kept = context.rstrip()  # spaces belong to the following word, as in lm-eval's own models
            context, continuation = kept, context[len(kept):] + continuation
            before = self._begin(context)
            whole = self._model.tokenize(context + continuation, special=True)
            # The tokens of the joined text; if a token spans the seam, those of the parts.
            after = whole[len(before):] if context and whole[:len(before)] == before else self._model.tokenize(continuation)
            answers.append(self._score(before, after))
        return answers

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """For complete texts; long ones are divided into windows of the context's size."""
        return [sum(self._score(*make_disjoint_window(window))[0] for window in get_rolling_token_windows(
                    self._model.tokenize(request.args[0]), self._model.stop_ids[0], self._longest, 1)) for request in requests]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """All requests together; their settings may differ."""
        made = []
        for prompt, settings in _arguments(requests):
            limit = int(next((settings[name] for name in _LIMITS if settings.get(name) is not None), 256))
            sampling: Sampling = {"max_tokens": limit, "stop": settings.get("until"), "temperature": 0.0, "seed": 0}
            if settings.get("do_sample", "temperature" in settings):
                for name in ("temperature", "top_k", "top_p", "min_p", "repetition_penalty"):
                    if name in settings:
                        sampling[name] = settings[name]
            ids = self._begin(prompt)[-max(1, self._longest - limit):]
            made.append(self._model.request(ids, **sampling))
        return [answer.text for answer in self._model.scheduler.run(made)]

    @property
    def tokenizer_name(self) -> str:
        """Identifies the model in lm-eval's cache of answers."""
        return self._model.name

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return self._model.render(chat_history, generation_prompt=add_generation_prompt)
