"""Concurrent requests to one model: each answer has the bits of its request alone."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
import types
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, TYPE_CHECKING

from . import _native
from ._options import OfThisProcess, assign
from .results import Generation, Token

if TYPE_CHECKING:
    from typing_extensions import Self
    from .model import Model

_tickets = itertools.count(1)


class _Pending:
    """A request and the messages received for it."""

    def __init__(self, scheduler: Scheduler, request: _native.Request, mailbox: _native.Mailbox):
        if not isinstance(request, _native.Request):
            raise TypeError(f"expected a request made by Model.request(), not {request!r:.60}")
        if scheduler._draining:
            raise _native.BusyError("no more requests are accepted: the scheduler is stopping")
        self.ticket = next(_tickets)
        self.tokens: list[Token] = []
        self.progress = (0, len(request.prompt))
        self.result: Generation | None = None
        self.error: BaseException | None = None
        self.asked = request.options.sampling.logprobs >= 0
        self.handle = scheduler._native.submit(request, mailbox, self.ticket)

    def hear(self, kind: str, news: Any) -> None:
        if kind == "token":
            self.tokens.append(Token._of(news, self.asked))
        elif kind == "progress":
            self.progress = news
        else:
            raw, self.error = news
            self.result = Generation._of(raw, self.tokens)

    def __str__(self) -> str:
        standing = "as far as it was read" if self.result is None else self.result.finish_reason if self.error is None else f"{self.error}"
        return f"{len(self.tokens)} tokens, {standing}"

    def answer(self) -> Generation:
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result


class Stream(OfThisProcess, Iterator[Token]):
    """The tokens of an answer as they are generated. Leaving the loop, or dropping the last reference, cancels the request."""

    def __init__(self, scheduler: Scheduler, request: _native.Request):
        self._mailbox = _native.new_mailbox()
        self._lock = threading.Lock()  # one thread waits for messages, others wait for it
        self._pending = _Pending(scheduler, request, self._mailbox)
        self._given = 0

    def __next__(self) -> Token:
        try:
            pending = self._pending
            with self._lock:
                while self._given == len(pending.tokens):
                    if pending.result is not None:
                        pending.answer()
                        raise StopIteration
                    self._mailbox.wait()
                    for _, kind, news in self._mailbox.take():
                        pending.hear(kind, news)
                self._given += 1
                return pending.tokens[self._given - 1]
        finally:
            del self  # otherwise the traceback of an interruption, which notebooks keep, would keep the answer running

    def __repr__(self) -> str:
        return f"<sluice.Stream: {self._pending}>"

    @property
    def progress(self) -> tuple[int, int]:
        """Tokens of the prompt done, and all."""
        return self._pending.progress

    @property
    def result(self) -> Generation:
        """The whole answer; waits for its end."""
        for _ in self:
            pass
        return self._pending.answer()

    def cancel(self) -> None:
        """Ends the answer with what has been generated."""
        self._pending.handle.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None) -> None:
        self.cancel()

    def __del__(self) -> None:
        if hasattr(self, "_pending"):
            self.cancel()


class _LoopMail:
    """The mailbox of an event loop: a single file for all waiting requests."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self._loop = weakref.ref(loop)
        self.mailbox = _native.new_mailbox()
        self._streams: weakref.WeakValueDictionary[int, AsyncStream] = weakref.WeakValueDictionary()
        self._file = self.mailbox.file()

    def add(self, stream: AsyncStream, ticket: int) -> None:
        loop = self._loop()
        if loop is not None:
            loop.add_reader(self._file, self._deliver)
        self._streams[ticket] = stream

    def _deliver(self) -> None:
        for ticket, kind, news in self.mailbox.take():
            stream = self._streams.get(ticket)
            if stream is not None:
                stream._hear(kind, news)


_mail: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopMail] = weakref.WeakKeyDictionary()


async def _begin(waiting: weakref.ref[AsyncStream], make: Callable[[], tuple[Scheduler, _native.Request]]) -> None:
    """Submits a request in another thread, because preparing it may take long (tokenizing a book, a grammar, the scheduler itself)."""
    try:
        scheduler, request = await asyncio.to_thread(make)
    except Exception as error:
        stream = waiting()
        if stream is not None:
            stream._refused = error
        return
    stream = waiting()
    if stream is not None:  # otherwise it was dropped meanwhile
        stream._submit(scheduler, request)


class AsyncStream(OfThisProcess, AsyncIterator[Token]):
    """The tokens of an answer as they are generated, for `async for`; the event loop is not blocked."""

    def __init__(self, make: Callable[[], tuple[Scheduler, _native.Request]]):
        self._news = asyncio.Event()
        self._given = 0
        self._pending: _Pending | None = None
        self._refused: Exception | None = None  # why it could not be submitted
        self._cancelled = False
        self._loop = asyncio.get_running_loop()  # raises without a running loop, before there is anything to await
        self._beginning = asyncio.create_task(_begin(weakref.ref(self), make))

    def _submit(self, scheduler: Scheduler, request: _native.Request) -> None:
        loop = asyncio.get_running_loop()
        mail = _mail.setdefault(loop, _mail.get(loop) or _LoopMail(loop))
        try:
            self._pending = _Pending(scheduler, request, mail.mailbox)
        except Exception as error:
            self._refused = error
            return
        mail.add(self, self._pending.ticket)  # before the loop runs again and delivers
        if self._cancelled:
            self._pending.handle.cancel()

    def _hear(self, kind: str, news: Any) -> None:
        assert self._pending is not None
        self._pending.hear(kind, news)
        self._news.set()

    def _check_loop(self) -> None:
        """Messages are delivered to the loop in which it was created; another one would wait forever."""
        if asyncio.get_running_loop() is not self._loop:
            raise _native.InputError("an answer belongs to the event loop that requested it, and this is another one")

    async def _begun(self) -> _Pending:
        try:
            if self._pending is None and self._refused is None:
                self._check_loop()
                await asyncio.shield(self._beginning)
            if self._refused is not None:
                raise self._refused
            assert self._pending is not None
            return self._pending
        finally:
            del self

    async def __anext__(self) -> Token:
        try:
            pending = await self._begun()
            while self._given == len(pending.tokens):
                if pending.result is not None:
                    pending.answer()
                    raise StopAsyncIteration
                self._check_loop()
                self._news.clear()
                await self._news.wait()
            self._given += 1
            return pending.tokens[self._given - 1]
        finally:
            del self  # otherwise the traceback of a cancelled task, which refers to itself, would keep the answer running

    async def result(self) -> Generation:
        """The whole answer."""
        try:
            async for _ in self:
                pass
        except asyncio.CancelledError:
            self.cancel()
            raise
        return (await self._begun()).answer()

    def __repr__(self) -> str:
        return f"<sluice.AsyncStream: {self._refused or self._pending or 'not begun'}>"

    @property
    def progress(self) -> tuple[int, int]:
        """Tokens of the prompt done, and all; none while it is being tokenized."""
        return (0, 0) if self._pending is None else self._pending.progress

    def cancel(self) -> None:
        """Ends the answer with what has been generated."""
        self._cancelled = True
        if self._pending is not None:
            self._pending.handle.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: types.TracebackType | None) -> None:
        self.cancel()

    def __del__(self) -> None:
        if hasattr(self, "_cancelled"):
            self.cancel()


class Scheduler(OfThisProcess):
    """Runs requests of Model.request() together. A model creates one for itself; create another one for other limits."""

    def __init__(self, model: Model, *, parallel: int = 0, context: int = 0, cache_tokens: int = 0, queue: int = 1024,
                 token_interval: float = 0.05):
        options = _native.SchedulerOptions()
        assign(options, parallel=parallel, context=context, cache_tokens=cache_tokens, queue=queue, token_interval_seconds=token_interval)
        if not hasattr(model, "_computing_engine"):
            raise TypeError(f"a scheduler needs a Model, not {model!r:.60}")
        self._queue, self._draining = queue, False
        self._native = _native.new_scheduler(model._computing_engine, options)

    def __repr__(self) -> str:
        try:
            state = self.state
        except _native.InputError as error:  # for instance because it is closed
            return f"<sluice.Scheduler: {error}>"
        return f"<sluice.Scheduler: {state['running']} running, {state['waiting']} waiting>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Cancels all requests; no more are accepted."""
        self._native.close()

    def drain(self) -> None:
        """Accepts no more requests and returns once all are done."""
        self._draining = True
        while self.state["running"] + self.state["waiting"]:
            time.sleep(0.002)  # so that Ctrl-C can interrupt
        self._native.drain()

    @property
    def state(self) -> dict[str, int]:
        """The running and waiting requests, and counts since the start."""
        return self._native.state()

    def stream(self, request: _native.Request) -> Stream:
        """The tokens of its answer as they are generated."""
        return Stream(self, request)

    def stream_async(self, request: _native.Request) -> AsyncStream:
        """The same for `async for`."""
        return AsyncStream(lambda: (self, request))

    def run(self, requests: Iterable[_native.Request]) -> list[Generation]:
        """All answers, in the order of the requests, which wait for room in the queue. An error of one of them ends all."""
        mailbox = _native.new_mailbox()
        asked = list(requests)
        waiting = list(enumerate(asked))[::-1]
        running: dict[int, tuple[int, _Pending]] = {}
        answers: dict[int, Generation] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self._queue:
                    at, request = waiting[-1]
                    try:
                        pending = _Pending(self, request, mailbox)
                    except _native.BusyError:
                        if self._draining:
                            raise
                        if running:
                            break  # others fill the queue: wait until one of these requests is done
                        time.sleep(0.005)
                        continue
                    waiting.pop()
                    running[pending.ticket] = (at, pending)
                mailbox.wait()
                for ticket, kind, news in mailbox.take():
                    at, pending = running[ticket]
                    pending.hear(kind, news)
                    if pending.result is not None:
                        del running[ticket]
                        answers[at] = pending.answer()
        finally:
            for _, pending in running.values():
                pending.handle.cancel()
        return [answers[at] for at in range(len(asked))]
