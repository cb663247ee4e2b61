"""Large mixture-of-experts language models, those with linear attention among them, on your own machine.

    import sluice

    model = sluice.Model("delta-story")
    print(model.generate("Once upon a time", max_tokens=40))
"""

from . import ops
from ._native import BusyError, CheckpointError, Error, InputError, InternalError, Request, ResourceError, UnsupportedError
from ._options import Sampling
from .chat import AsyncChatStream, ChatAnswer, ChatStream, Delta, ToolCall
from .model import Model
from .results import Generation, Token
from .scheduler import AsyncStream, Scheduler, Stream
from .serving import Server, serve
from .session import Session, Snapshot
from .studies import convert, inspect, plan, random

__all__ = [
    "AsyncChatStream", "AsyncStream", "BusyError", "ChatAnswer", "ChatStream", "CheckpointError", "Delta", "Error", "Generation",
    "InputError", "InternalError", "Model", "Request", "ResourceError", "Sampling", "Scheduler", "Server", "Session", "Snapshot",
    "Stream", "Token", "ToolCall", "UnsupportedError", "convert", "inspect", "ops", "plan", "random", "serve",
]
__version__ = "0.1.0"


def __dir__() -> list[str]:
    """The names for tab completion, without the internal modules."""
    return [*__all__, "__version__"]
