"""A loaded model."""

from __future__ import annotations

import operator
import os
import threading
import types
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TYPE_CHECKING

from . import _native
from ._messages import dictionaries, template_messages, with_one_system_message
from ._options import (OfThisProcess, Sampling, assign, check_text, encode, find_model, form_of, generate_options, parse_bytes,
                       text_options, to_json, token_ids, whole_number)
from .chat import AsyncChatStream, ChatAnswer, ChatStream, chat_answer
from .results import Generation
from .scheduler import AsyncStream, Scheduler, Stream
from .session import Session

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack
    from .session import Floats

Message = Mapping[str, Any]
Prompt = str | Sequence[int]
_GPU = "/dev/nvidiactl"  # the device of NVIDIA's driver
_ANY_NUMBER = 1 << 30  # limit of waiting requests: they are all this process's own


class Model(OfThisProcess):
    """A loaded model, given by its folder or name. Any number of threads may use it at once; `with` or close() frees it."""

    def __init__(self, model: str | os.PathLike[str] = "delta-story", *, backend: str = "auto", threads: int = 0,
                 memory: float | str = 0, vram: float | str = 0, kv_bits: int | tuple[int, int] = 16, exact: bool = False,
                 parallel: int = 0, context: int = 0):
        folder = find_model(model)
        _tell_of_idle_gpu(backend)
        self._begin(_native.Engine.load(folder, _engine_options(backend, threads, memory, vram, kv_bits, exact)),
                    os.path.basename(folder), _native.generation_config(folder))
        self._limit(parallel, context)

    @classmethod
    def random(cls, geometry: str, *, bits: int = 4, backend: str = "auto", threads: int = 0, memory: float | str = 0,
               vram: float | str = 0, kv_bits: int | tuple[int, int] = 16, exact: bool = False, parallel: int = 0,
               context: int = 0) -> Self:
        """A model with random weights in memory and the given geometry ("qwen3.6-35b-a3b:layers=8")."""
        made = cls.__new__(cls)
        options = _engine_options(backend, threads, memory, vram, kv_bits, exact)
        check_text(geometry, "geometry")
        _tell_of_idle_gpu(backend)
        made._begin(_native.Engine.random(geometry, whole_number(bits, "bits"), options, 0.0), geometry, {})
        made._limit(parallel, context)
        return made

    def _begin(self, engine: _native.Engine, name: str, config: Mapping[str, float]) -> None:
        self._held: _native.Engine | None = engine
        self.name, self._config, self._vocab = name, config, int(engine.summary()["vocab"])
        self._limits: dict[str, int] = {}
        self._scheduler: Scheduler | None = None
        self._lock = threading.Lock()
        self._process = os.getpid()

    def _limit(self, parallel: int, context: int) -> None:
        self._limits.update(parallel=whole_number(parallel, "parallel"), context=whole_number(context, "context"))

    @property
    def _engine(self) -> _native.Engine:
        if self._held is None:
            raise _native.InputError("the model is closed")
        return self._held

    @property
    def _computing_engine(self) -> _native.Engine:
        """Forked processes can tokenize, but do not have the threads that compute."""
        if self._process != os.getpid():
            raise _native.InputError("the model was loaded before this process was forked: load it here, or start processes with the method spawn")
        return self._engine

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Releases the model and cancels its requests. Its memory is freed once its sessions are gone too."""
        if self._process != os.getpid():
            self._lock = threading.Lock()  # a thread of the parent process may have held the other one
        with self._lock:
            self._held, scheduler, self._scheduler = None, self._scheduler, None
        if scheduler is not None:
            scheduler.close()

    def __repr__(self) -> str:
        return f"<sluice.Model {self.name}{' (closed)' if self._held is None else ', ' + self._held.backend_description()}>"

    @property
    def summary(self) -> dict[str, Any]:
        """Architecture, parameters and bytes by part."""
        return self._engine.summary()

    @property
    def memory(self) -> dict[str, int]:
        """Bytes that it uses on its backend."""
        return self._engine.memory()

    @property
    def stop_ids(self) -> list[int]:
        """Tokens that end an answer."""
        return self._engine.stop_ids()

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Token ids; with `special`, adds the tokens that begin every text, if the model has such tokens."""
        return encode(self._engine, text, special)

    def detokenize(self, ids: Sequence[int], *, skip_special: bool = True) -> str:
        """The text of token ids; special tokens are left out unless `skip_special` is false."""
        made = token_ids(ids)
        for wrong in (one for one in made if not -1 <= one < self._vocab):  # -1 is the id of the text left when an answer ended
            raise _native.InputError(f"{wrong} is not a token of this model, whose ids are 0 to {self._vocab - 1}")
        return self._engine.decode(made, bool(skip_special))

    def render(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] | None = None,
               generation_prompt: bool = True, **variables: Any) -> str:
        """Renders a conversation as a prompt, by the model's chat template. Messages may have the forms that OpenAI clients use: contents in
        parts of text, arguments of calls as strings, several system messages."""
        return self._render(messages, tools, generation_prompt, variables)

    def _render(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None, generation_prompt: bool,
                variables: Mapping[str, Any] | None) -> str:
        said = template_messages(messages)
        if variables is not None and not (isinstance(variables, Mapping) and all(isinstance(name, str) for name in variables)):
            raise TypeError(f"variables are values by the names that the template has for them, not {variables!r:.60}")
        values = dict(variables or {})
        if tools is not None:
            values["tools"] = dictionaries(tools, "tools are a sequence of dictionaries")
        engine, known = self._engine, to_json(values, "tools and variables")
        try:
            return engine.render_chat(to_json(said, "messages"), bool(generation_prompt), known)
        except _native.Error:
            joined = with_one_system_message(said)
            if len(joined) == len(said):
                raise
            return engine.render_chat(to_json(joined, "messages"), bool(generation_prompt), known)

    def session(self, capacity: int = 0) -> Session:
        """An empty timeline of up to `capacity` tokens; 0: the model's longest."""
        return Session(self._computing_engine, capacity, self._config)

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler that runs this model's requests together; created on first use."""
        self._computing_engine
        with self._lock:
            if self._scheduler is None:
                self._scheduler = Scheduler(self, queue=_ANY_NUMBER, **self._limits)
            return self._scheduler

    def request(self, prompt: Prompt, *, priority: int = 0, timeout: float = 0.0, key: str = "",
                **settings: Unpack[Sampling]) -> _native.Request:
        """A request for your own Scheduler. Tokens are shared fairly between keys; higher priorities run first."""
        request = _native.Request()
        assign(request, priority=priority, timeout_seconds=timeout, key=key)
        request.prompt = self.tokenize(prompt, special=True) if isinstance(prompt, str) else token_ids(prompt)
        request.options = text_options(self._engine, self._config, settings)
        return request

    def generate(self, prompt: Prompt, **settings: Unpack[Sampling]) -> Generation:
        """Continues a text or token ids."""
        return self.scheduler.run([self.request(prompt, **settings)])[0]

    def generate_batch(self, prompts: Sequence[Prompt], **settings: Unpack[Sampling]) -> list[Generation]:
        """Continues many prompts together; every answer is what it would be alone."""
        if isinstance(prompts, (str, bytes)) or not isinstance(prompts, Iterable):
            raise TypeError(f"prompts are a sequence of texts or of token ids, not {prompts!r:.60}")
        return self.scheduler.run([self.request(prompt, **settings) for prompt in prompts])

    def stream(self, prompt: Prompt, **settings: Unpack[Sampling]) -> Stream:
        """The tokens as they are generated: `for token in model.stream(...)`."""
        return self.scheduler.stream(self.request(prompt, **settings))

    async def generate_async(self, prompt: Prompt, **settings: Unpack[Sampling]) -> Generation:
        """Continues a text or token ids, for `await`."""
        return await self.stream_async(prompt, **settings).result()

    def stream_async(self, prompt: Prompt, **settings: Unpack[Sampling]) -> AsyncStream:
        """The same for `async for`."""
        return AsyncStream(lambda: (self.scheduler, self.request(prompt, **settings)))

    def _chat_request(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None, tool_choice: str,
                      parallel_tool_calls: bool, max_thinking_tokens: int | None, variables: Mapping[str, Any] | None,
                      settings: Sampling) -> tuple[_native.Request, _native.AnswerPlan]:
        check_text(tool_choice, "tool_choice")
        if max_thinking_tokens is not None and whole_number(max_thinking_tokens, "max_thinking_tokens") < 0:
            raise _native.InputError(f"max_thinking_tokens is {max_thinking_tokens}, it must not be negative")
        tools = None if tools is None else dictionaries(tools, "tools are a sequence of dictionaries")
        prompt = self._render(messages, tools, True, variables)
        answer = _native.AnswerRequest()
        answer.prompt, answer.form, answer.chat = prompt, form_of(settings), True
        answer.tools, answer.tool_choice = to_json(tools, "tools") if tools else "", tool_choice
        answer.parallel_calls, answer.max_thinking_tokens = bool(parallel_tool_calls), max_thinking_tokens
        plan = _native.plan_answer(self._engine, answer)
        request = _native.Request()
        request.prompt = self.tokenize(prompt)
        options = generate_options(self._config, settings)
        plan.apply(options)
        request.options = options
        return request, plan

    def chat(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] | None = None, tool_choice: str = "auto",
             parallel_tool_calls: bool = True, max_thinking_tokens: int | None = None,
             variables: Mapping[str, Any] | None = None, **settings: Unpack[Sampling]) -> ChatAnswer:
        """Answers a conversation. `tool_choice` is "auto", "none", "required" or the name of a tool; `variables` are
        those of the chat template, such as {"enable_thinking": False}."""
        request, plan = self._chat_request(messages, tools, tool_choice, parallel_tool_calls, max_thinking_tokens, variables, settings)
        return chat_answer(plan.parser(), self.scheduler.run([request])[0])

    async def chat_async(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] | None = None,
                         tool_choice: str = "auto", parallel_tool_calls: bool = True, max_thinking_tokens: int | None = None,
                         variables: Mapping[str, Any] | None = None, **settings: Unpack[Sampling]) -> ChatAnswer:
        """Answers a conversation, for `await`."""
        pieces = self.chat_stream_async(messages, tools=tools, tool_choice=tool_choice, parallel_tool_calls=parallel_tool_calls,
                                        max_thinking_tokens=max_thinking_tokens, variables=variables, **settings)
        return await pieces.result()

    def chat_stream(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] | None = None,
                    tool_choice: str = "auto", parallel_tool_calls: bool = True, max_thinking_tokens: int | None = None,
                    variables: Mapping[str, Any] | None = None, **settings: Unpack[Sampling]) -> ChatStream:
        """The pieces of the answer as they are generated."""
        request, plan = self._chat_request(messages, tools, tool_choice, parallel_tool_calls, max_thinking_tokens, variables, settings)
        return ChatStream(self.scheduler.stream(request), plan)

    def chat_stream_async(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] | None = None,
                          tool_choice: str = "auto", parallel_tool_calls: bool = True, max_thinking_tokens: int | None = None,
                          variables: Mapping[str, Any] | None = None, **settings: Unpack[Sampling]) -> AsyncChatStream:
        """The same for `async for`."""
        return AsyncChatStream(lambda: (self.scheduler, *self._chat_request(messages, tools, tool_choice, parallel_tool_calls,
                                                                           max_thinking_tokens, variables, settings)))

    def logits(self, ids: Prompt) -> Floats:
        """The logits of every token of a text, one row each."""
        tokens = self.tokenize(ids, special=True) if isinstance(ids, str) else token_ids(ids)
        with self.session(max(1, len(tokens))) as session:
            return session.extend_with_logits(tokens)

    def perplexity(self, text: str, *, context: int = 0, stride: int = 0) -> dict[str, float]:
        """How well the model predicts a text: nats per token, bits per byte."""
        check_text(text, "the text")
        return _native.perplexity(self._computing_engine, text, whole_number(context, "context"), whole_number(stride, "stride"))


def _tell_of_idle_gpu(backend: str) -> None:
    """Warns users who built the package without a CUDA compiler, and would wonder about its speed."""
    if backend == "auto" and not _native.with_cuda and os.path.exists(_GPU):
        warnings.warn("there is a GPU, and this model runs on the CPU: sluice was built without CUDA. Where nvcc is, "
                      "`pip install . --config-settings=cmake.define.SLUICE_CUDA=ON` builds it with CUDA; backend=\"cpu\" wants none",
                      stacklevel=3)


def _engine_options(backend: str, threads: int, memory: float | str, vram: float | str, kv_bits: int | tuple[int, int],
                    exact: bool) -> _native.EngineOptions:
    options = _native.EngineOptions()
    assign(options, backend=backend, threads=threads, exact=exact)
    options.memory, options.vram = parse_bytes(memory), parse_bytes(vram)
    try:
        keys, values = map(operator.index, kv_bits if isinstance(kv_bits, (tuple, list)) else (kv_bits, kv_bits))
        options.key_bits, options.value_bits = keys, values
    except (TypeError, ValueError):
        raise TypeError(f"kv_bits cannot be {kv_bits!r:.60}, expected a number of bits, or two: of keys and of values") from None
    return options


