"""Large mixture-of-experts language models with linear attention, on the machine you have.

    import sluice

    model = sluice.Model("delta-story")
    print(model.generate("Once upon a time", max_tokens=40))
"""

from . import ops
from ._native import BusyError, CheckpointError, Error, InputError, InternalError, ResourceError, UnsupportedError
from .chat import ChatAnswer, Delta, ToolCall
from .model import Model
from .results import Generation, Token
from .scheduler import AsyncStream, Scheduler, Stream
from .serving import Server, serve
from .session import Session, Snapshot
from .studies import convert, inspect, plan, random

__all__ = [
    "AsyncStream", "BusyError", "ChatAnswer", "CheckpointError", "Delta", "Error", "Generation", "InputError", "InternalError", "Model",
    "ResourceError", "Scheduler", "Server", "Session", "Snapshot", "Stream", "Token", "ToolCall", "UnsupportedError", "convert", "inspect",
    "ops", "plan", "random", "serve",
]
__version__ = "0.1.0"
