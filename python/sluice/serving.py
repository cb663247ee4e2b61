"""`sluice serve` as an object."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import types
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from . import _native
from ._options import OfThisProcess, check_text, command_line, find_model, whole_number

if TYPE_CHECKING:
    from typing_extensions import Self

_KINDS = {"checkpoint": _native.CheckpointError, "unsupported": _native.UnsupportedError, "resource": _native.ResourceError,
          "busy": _native.BusyError, "internal": _native.InternalError}


_servers: weakref.WeakSet[Server] = weakref.WeakSet()


def _let_go() -> None:
    """Closes each server's input in forked processes: otherwise the server would outlive the process that started it."""
    for server in _servers:
        server._input.close()


os.register_at_fork(after_in_child=_let_go)


def _end(process: subprocess.Popen[str], owner: int) -> None:
    if os.getpid() == owner:  # not in forked processes
        process.communicate()  # closes its input, which ends it


class Server(OfThisProcess):
    """A running server. `with`, close() or dropping the last reference ends it, and so does the end of this process, even by a signal."""

    def __init__(self, arguments: Sequence[str]):
        self.url = ""
        self._said = tempfile.TemporaryFile("w+")  # a pipe that no one reads would fill up and block it
        # In a session of its own: a Ctrl-C that interrupts the program, or a notebook cell, must not reach it.
        self._process = subprocess.Popen([command_line(), "serve", "--json", "--end-with-input", *arguments], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=self._said, text=True, start_new_session=True)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input = self._process.stdin
        self._ending = weakref.finalize(self, _end, self._process, os.getpid())  # at the latest when the interpreter ends
        _servers.add(self)
        try:
            line = self._process.stdout.readline()
        except BaseException:  # such as Ctrl-C while the model is loaded
            self.close()
            raise
        try:
            self.url = str(json.loads(line)["url"])
        except (ValueError, KeyError):
            raise self._refusal(line + self._process.stdout.read()) from None

    def _refusal(self, printed: str) -> _native.Error:
        """The error with which the server ended instead of reporting its address."""
        self._process.wait()
        self._said.seek(0)
        said = self._said.read().strip()
        self.close()
        try:
            error = json.loads(printed)["error"]
        except (ValueError, KeyError):
            return _native.InternalError(f"the server did not start: {said}")
        return _KINDS.get(error["kind"], _native.InputError)(error["message"])

    def __repr__(self) -> str:
        return f"<sluice.Server {self.url if self._ending.alive else '(closed)'}>"

    def close(self) -> None:
        """Waits for running requests to end, then ends the server."""
        self._ending()
        self._said.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None) -> None:
        self.close()


def serve(model: str | os.PathLike[str] = "delta-story", *, host: str = "127.0.0.1", port: int = 0,
          options: Sequence[str] = ()) -> Server:
    """Starts a server in a process of its own, for OpenAI and Anthropic clients; port 0 chooses a free one. `options` are those of
    the command line."""
    check_text(host, "host")
    if isinstance(options, str) or not isinstance(options, Iterable):
        raise TypeError(f"options are a sequence of words, not {options!r:.60}")
    for word in (words := list(options)):
        check_text(word, "a word of options")
    return Server(["-m", os.fspath(find_model(model)), "--host", host, "--port", str(whole_number(port, "port")), *words])
