"""`sluice serve` as an object."""

from __future__ import annotations

import os
import subprocess
import tempfile
import types
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import _native
from ._options import command_line, find_model

if TYPE_CHECKING:
    from typing_extensions import Self


def _end(process: subprocess.Popen[str], owner: int) -> None:
    if os.getpid() == owner:  # a forked process leaves it alone
        process.terminate()
        process.communicate()


class Server:
    """A running server; `with`, close() or losing the last reference to it ends it."""

    def __init__(self, arguments: Sequence[str]):
        self._said = tempfile.TemporaryFile("w+")  # a pipe that nobody reads would fill and stop it
        self._process = subprocess.Popen([command_line(), "serve", *arguments], stdout=subprocess.PIPE, stderr=self._said, text=True)
        self._ending = weakref.finalize(self, _end, self._process, os.getpid())  # at the interpreter's end at the latest
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening on "):
            self._process.wait()
            self._said.seek(0)
            message = self._said.read().strip()
            self.close()
            raise _native.InputError(message.removeprefix("error: ") or "the server did not start")
        self.url = line.removeprefix("listening on ").strip()

    def close(self) -> None:
        """Lets running requests end, then the server."""
        self._ending()
        self._said.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None) -> None:
        self.close()


def serve(model: str | os.PathLike[str] = "delta-story", *, host: str = "127.0.0.1", port: int = 0,
          options: Sequence[str] = ()) -> Server:
    """Starts a server of its own process, for clients of the OpenAI and Anthropic protocols; port 0 chooses one. `options` are those of
    the command line."""
    if isinstance(options, str):
        raise TypeError(f"options are a sequence of words, not {options!r:.60}")
    return Server(["-m", os.fspath(find_model(model)), "--host", host, "--port", str(port), *options])
