#!/usr/bin/env python3
"""Writes the reference in docs/python.md from docstrings: tools/python_docs.py [--check], with the package installed.

A public name without a docstring is an error.
"""

import inspect
import pathlib
import re
import sys

import sluice

PAGE = pathlib.Path(__file__).parent.parent / "docs/python.md"
HEADING = "## Reference\n"
INTRODUCTION = "\nMade from docstrings by `tools/python_docs.py`. The ops have a [catalogue](ops.md) of their own.\n"


def documentation(thing, name):
    text = inspect.getdoc(thing) or sys.exit(f"{name} has no docstring")
    # nanobind puts the signature first.
    return " ".join(text.split("\n\n", 1)[-1].split()) if "->" in text.split("\n")[0] else " ".join(text.split())


def arguments(function):
    """The arguments without types."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # for functions of the extension
        return "()"
    kept = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values() if one.name not in ("self", "cls")]
    return str(inspect.Signature(kept)).replace("'", '"')


def row(what, meaning):
    return f"| `{what}` | {meaning} |\n".replace(" | None", " or None").replace("|  |", "| |")


def fields(kind):
    """The fields of a dataclass or TypedDict, with the comments after them."""
    for name, _, comment in re.findall(r"^    (\w+): ([^=#\n]+?)(?: = [^#\n]+?)?(?:  # ([^\n]+))?$", inspect.getsource(kind), re.MULTILINE):
        if name in kind.__annotations__:
            yield row(name, comment)


def members(kind):
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        made = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if isinstance(made, property):
            yield row(name, documentation(made, f"{kind.__name__}.{name}"))
        elif callable(made):
            begin = "await " if inspect.iscoroutinefunction(made) else ""
            yield row(begin + name + arguments(made), documentation(made, f"{kind.__name__}.{name}"))


def section(name):
    thing = getattr(sluice, name)
    text = f"\n### {name}\n\n"
    if not inspect.isclass(thing):
        return text + f"`{name}{arguments(thing)}`\n\n{documentation(thing, name)}\n"
    made_by_users = name in ("Model", "Scheduler")
    text += (f"`{name}{arguments(thing)}`\n\n" if made_by_users else "") + documentation(thing, name) + "\n"
    own = hasattr(thing, "__dataclass_fields__") or hasattr(thing, "__total__")
    rows = [*(fields(thing) if own else []), *(members(thing) if name not in ("Sampling", "Request") else [])]
    return text + ("\n| | |\n|---|---|\n" + "".join(rows) if rows else "")


def reference():
    names = [name for name in sluice.__all__ if not inspect.ismodule(getattr(sluice, name))]
    errors = [name for name in names if name.endswith("Error")]
    first = ["Model", "Sampling", "Generation", "Token", "Stream", "AsyncStream", "ChatAnswer", "ToolCall", "ChatStream", "AsyncChatStream",
             "Delta", "Session", "Snapshot", "Scheduler", "Request"]
    text = HEADING + INTRODUCTION
    for name in first + [name for name in names if name not in first + errors]:
        text += section(name)
    text += "\n### Errors\n\n| | |\n|---|---|\n"
    return text + "".join(row(name, documentation(getattr(sluice, name), name)) for name in ["Error", *(n for n in errors if n != "Error")])


def main():
    page = PAGE.read_text()
    made = page.partition(HEADING)[0] + reference()
    if "--check" in sys.argv:
        sys.exit(0 if page == made else f"{PAGE} is not current: run {sys.argv[0]}")
    PAGE.write_text(made)


if __name__ == "__main__":
    main()
