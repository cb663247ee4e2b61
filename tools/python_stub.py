#!/usr/bin/env python3
"""Writes python/sluice/ops.pyi from the tables of the ops: tools/python_stub.py [--check], with the package installed."""

import pathlib
import sys

from sluice import ops

STUB = pathlib.Path(__file__).parent.parent / "python/sluice/ops.pyi"
HEAD = '''"""Every op of the catalogue as a function on arrays. Made by tools/python_stub.py."""

import dataclasses
from typing import Any, NamedTuple

__all__ = ALL

_Array = Any  # of numpy, torch, or any other library with DLPack
'''
QUANTIZED = '''
@dataclasses.dataclass(frozen=True, eq=False)
class Quantized:
    weight: _Array
    scales: _Array
    biases: _Array | None = None
    mode: str = "affine"
    bits: int | None = None
    group_size: int | None = None

def quantize(values: _Array, *, bits: int = 4, group_size: int = 64) -> Quantized: ...
def dequantize(weight: Quantized, *, backend: str = "auto") -> _Array: ...
def describe(op: str | None = None) -> Any: ...
'''


def attribute_type(kind):
    if kind.startswith("number"):
        return "float | _Array" if "field" in kind else "float"
    if kind.startswith("integer"):
        return "int | _Array" if "field" in kind else "int"
    return "bool" if kind == "0 or 1" else "str"


def default_text(kind, default):
    return repr(bool(int(default))) if kind == "0 or 1" else default if kind.startswith(("number", "integer")) else repr(default)


def parameters(table):
    for name, role, types, _ in table["fields"]:
        if role.startswith("output"):
            continue
        kind = "_Array | Quantized" if types == "weight" else "_Array"
        yield f"{name}: {kind}" if role in ("input", "in place") else f"{name}: {kind} | None = None"
    for name, kind, default, _ in table["attributes"]:
        if "." not in name:
            yield f"{name}: {attribute_type(kind)}" + (f" = {default_text(kind, default)}" if default else "")
    yield 'backend: str = "auto"'
    yield "threads: int = 0"
    yield "exact: bool = True"


def stub():
    text = HEAD.replace("ALL", repr(ops.__all__).replace("'", '"')) + QUANTIZED
    for name, table in ops.describe().items():
        results = [field for field, role, *_ in table["fields"] if role.startswith(("output", "in place"))]
        always = [field for field, role, *_ in table["fields"] if role.startswith("output") or role == "in place"]
        made = "_Array"
        if len(results) == len(always) > 1:
            made = name.title().replace("_", "") + "Result"
            text += f"\nclass {made}(NamedTuple):\n" + "".join(f"    {field}: _Array\n" for field in results)
        elif len(results) > 1:
            made = "Any"  # a named tuple also has the given states
        text += f"\ndef {name}(*, {', '.join(parameters(table))}) -> {made}: ...\n"
    return text


def main():
    if "--check" in sys.argv:
        sys.exit(0 if STUB.read_text() == stub() else f"{STUB} is not current: run {sys.argv[0]}")
    STUB.write_text(stub())


if __name__ == "__main__":
    main()
