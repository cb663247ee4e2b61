"""Complete models: their properties, where they fit, and how they are created."""

from __future__ import annotations

import os
from typing import Any

from . import _native
from ._options import assign, check_text, find_model, number, parse_bytes, whole_number

Path = str | os.PathLike[str]


def inspect(model: Path) -> dict[str, Any]:
    """Architecture, parameters and bytes of a model, by part."""
    options = _native.EngineOptions()
    options.backend = "cpu"  # maps the files without copying
    return _native.Engine.load(find_model(model), options).summary()


def plan(model: Path, *, bits: int = 0, memory: float | str = 0, vram: float | str = 0, sequences: int = 1) -> dict[str, Any]:
    """Where a model fits, with how long a context, and its speed limit. With `bits`, `model` names a geometry."""
    bits, sequences = whole_number(bits, "bits"), whole_number(sequences, "sequences")
    if bits:
        check_text(os.fspath(model), "geometry")
    return _native.plan(model if bits else find_model(model), bits, parse_bytes(memory), parse_bytes(vram), sequences)


def convert(source: Path, target: Path, *, quantize: bool = True, bits: int = 4, group_size: int = 64, mixed: str = "",
            dtype: str = "", threads: int = 0) -> dict[str, int]:
    """Converts a Hugging Face checkpoint to the MLX format, with the same result as mlx-lm."""
    options = _native.ConvertOptions()
    assign(options, quantize=quantize, bits=bits, group_size=group_size, mixed=mixed, dtype=dtype, threads=threads)
    return _native.convert(find_model(source), os.fspath(target), options)


def random(geometry: str, folder: Path, *, bits: int = 4, zipf: float = 0.0) -> int:
    """Writes a checkpoint with random weights in the shape of a known model; returns the bytes of its tensors."""
    check_text(geometry, "geometry")
    return _native.write_random_model(geometry, whole_number(bits, "bits"), os.fspath(folder), number(zipf, "zipf"))
