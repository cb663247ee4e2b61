"""Every op of the catalogue as a function on arrays.

    out = sluice.ops.rms_norm(x=x, weight=w, eps=1e-6)

The functions are generated from the tables with which the engine checks its calls. Fields are given by name as numpy
arrays, torch tensors or anything else with DLPack, and are read in place if they are contiguous; inputs are never written
to. A single output is returned directly, several as a named tuple, which includes the fields that an op updates. Outputs
are torch tensors if one was given or if they are bfloat16, which numpy lacks, and numpy arrays otherwise. A weight is a
dense array or Quantized.

Every function takes `backend` ("auto", "reference", "cpu", "cuda"), `threads` and `exact`.

A backend that computes on a CUDA device reads torch tensors there, after the work in torch's current stream at the time
of the call, and its outputs are on that device too; the op is complete when its function returns. All other inputs are
copied to the device. A backend that computes in host memory copies such tensors to the host and its outputs back.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import inspect
import json
import keyword
import math
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy

from . import _native
from ._options import whole_number

_LISTS = {"I32": numpy.int32, "U8": numpy.uint8}  # types for Python lists; float32 for all others
_WHOLE = {f"torch.{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)} - {"torch.int32"}
_SMALLEST = -(1 << 31)  # of int32
_CUDA = 2  # kDLCUDA of DLPack


@dataclasses.dataclass(frozen=True, eq=False)
class Quantized:
    """A weight in one of MLX's formats: packed codes with scales and, if affine, biases per group. The default bits and group sizes
    are the usual ones of the mode: 4 and 64 of "affine", 4 and 32 of "mxfp4", 8 and 32 of "mxfp8", 4 and 16 of "nvfp4"."""

    weight: Any
    scales: Any
    biases: Any = None
    mode: str = "affine"
    bits: int | None = None
    group_size: int | None = None


def quantize(values: Any, *, bits: int = 4, group_size: int = 64) -> Quantized:
    """Packs rows [..,K] as MLX does, bit for bit, on the CPU."""
    values = _of_torch("values", values)
    device = _cuda_device([values])
    made = _native.quantize(_array("values", values if device is None else values.cpu(), ""), _small(bits, "bits"),
                            _small(group_size, "group_size"), _is_torch(values))
    return Quantized(*(made if device is None else [part.to(device) for part in made]), bits=bits, group_size=group_size)


def _small(number: int, name: str) -> int:
    if not 0 <= (made := whole_number(number, name)) < 1 << 20:
        raise TypeError(f"{name} cannot be {number!r:.60}, expected a whole number in its range")
    return made


def dequantize(weight: Quantized, *, backend: str = "auto") -> Any:
    """The values [..,K] of a packed weight in float32."""
    if not isinstance(weight, Quantized) or weight.weight is None:
        raise TypeError(f"expected a packed weight as Quantized, not {weight!r:.60}")

    def rows(name: str, part: Any) -> Any:
        if not getattr(part, "shape", ()) or not hasattr(part, "reshape"):
            raise TypeError(f"the {name} of a packed weight cannot be {part!r:.60}, expected an array")
        return part.reshape(-1, part.shape[-1])

    flat = dataclasses.replace(weight, weight=rows("words", weight.weight), scales=rows("scales", weight.scales),
                               biases=None if weight.biases is None else rows("biases", weight.biases))
    ids = numpy.arange(flat.weight.shape[0], dtype=numpy.int32)
    made = _function(_CATALOGUE["embed"])(table=flat, ids=ids, backend=backend)
    return made.reshape(*weight.weight.shape[:-1], made.shape[-1])


_backends: dict[tuple[str, int, bool, int], _native.OpBackend] = {}
_backends_lock = threading.Lock()


def _forget_backends() -> None:
    """In a forked process their threads do not exist, and the lock may be held by one of them."""
    global _backends_lock
    _backends_lock = threading.Lock()
    _backends.clear()


os.register_at_fork(after_in_child=_forget_backends)


def _backend(name: str, threads: int, exact: bool, device: int) -> _native.OpBackend:
    """A CUDA backend uses the device that is current when it is created."""
    if not isinstance(name, str):
        raise TypeError(f"backend cannot be {name!r:.60}, expected a text")
    if not isinstance(exact, (bool, numpy.bool_)):
        raise TypeError(f"exact cannot be {exact!r:.60}, expected True or False")
    key = (name, whole_number(threads, "threads"), bool(exact), device)
    with _backends_lock:
        if key not in _backends:
            _backends[key] = _native.OpBackend(*key[:3])
        return _backends[key]


def _is_torch(value: Any) -> bool:
    """Whether it is a tensor, of any subclass. A tensor implies that torch was imported."""
    return isinstance(value, getattr(sys.modules.get("torch"), "Tensor", ()))


def _cuda_device(values: Iterable[Any]) -> Any:
    """The CUDA device of the first torch tensor that is on one."""
    return next((value.device for value in values if _is_torch(value) and value.is_cuda), None)


def _of_torch(name: str, value: Any) -> Any:
    """An array of another library on a CUDA device as a tensor: torch makes its current stream wait for that library's work."""
    where = None if _is_torch(value) or isinstance(value, numpy.ndarray) else getattr(value, "__dlpack_device__", None)
    if where is None or where()[0] != _CUDA:
        return value
    try:
        import torch

        with torch.cuda.device(where()[1]):
            return torch.from_dlpack(value)
    except Exception as error:
        raise _native.InputError(f"'{name}' is on a CUDA device where torch cannot read it: {str(error).splitlines()[0]}") from None


def _current_device() -> int:
    """The current CUDA device of this thread: torch's if it has initialised CUDA, otherwise 0."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return int(cuda.current_device()) if cuda is not None and cuda.is_initialized() else 0


def _array(name: str, value: Any, types: str) -> Any:
    value = _of_torch(name, value)
    if _is_torch(value):
        if value.is_meta or str(value.layout) != "torch.strided":
            raise _native.InputError(f"'{name}' is a tensor without contiguous values in memory")
        value = value.detach().resolve_conj().resolve_neg()
        if types == "I32" and str(value.dtype) in _WHOLE:
            _refuse_graphs(f"'{name}'", value)  # its values are read
            unsigned, value = str(value.dtype) == "torch.uint64", value.long()  # torch has no minimum of unsigned tensors
            value = _narrowed(name, value, value.int, 0 if unsigned else _SMALLEST)  # values from 2^63 on became negative
        return value.contiguous()
    if not isinstance(value, numpy.ndarray) and hasattr(value, "__dlpack__"):
        try:
            value = numpy.from_dlpack(value)  # may be strided
        except Exception:  # for instance for bfloat16
            return value
    if isinstance(value, numpy.ndarray):
        if isinstance(value, numpy.ma.MaskedArray):
            raise _native.InputError(f"'{name}' is a masked array, whose mask would be ignored")
        if value.dtype.names or value.dtype.kind in "OSUMm":
            raise _native.InputError(f"'{name}' has the element type {value.dtype}, which is not a number")
        if types == "I32" and value.dtype.kind in "iu" and value.dtype != numpy.int32:
            value = _narrowed(name, value, functools.partial(value.astype, numpy.int32))
        if not value.dtype.isnative:
            value = value.astype(value.dtype.newbyteorder("="))
        return numpy.require(value, requirements="A")  # aligned
    return _array_of_list(name, value, numpy.dtype(_LISTS.get(types, numpy.float32)))


def _narrowed(name: str, value: Any, narrow: Callable[[], Any], smallest: int = _SMALLEST) -> Any:
    """Converts integers to int32: those of numpy and torch have 64 bits by default, token ids in files often 16."""
    if math.prod(value.shape) and not smallest <= int(value.min()) <= int(value.max()) < 1 << 31:
        raise _native.InputError(f"'{name}' contains numbers that do not fit int32")
    return narrow()


def _array_of_list(name: str, value: Any, wanted: numpy.dtype[Any]) -> Any:
    try:
        made = numpy.asarray(value)
    except ValueError:
        made = numpy.asarray(None)
    if made.size and made.dtype.kind not in ("iub" if wanted.kind in "iu" else "iubf"):
        raise TypeError(f"'{name}' cannot be {value!r:.60}, expected an array of {wanted}")
    if made.size and wanted.kind in "iu" and not numpy.iinfo(wanted).min <= made.min() <= made.max() <= numpy.iinfo(wanted).max:
        raise _native.InputError(f"'{name}' cannot be {value!r:.60}, it does not fit {wanted}")
    return made.astype(wanted, copy=False)


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


@functools.cache
def _result_class(op: str, names: tuple[str, ...]) -> Any:
    return collections.namedtuple(op.title().replace("_", "") + "Result", names, module=__name__)


def _run(op: Mapping[str, Any], given: dict[str, Any], backend: str, threads: int, exact: bool) -> Any:
    tensors: dict[str, Any] = {}
    attributes: dict[str, str] = {}
    types = {name: kinds for name, _, kinds, _ in op["fields"]}
    scalars = {name: kind for name, kind, *_ in op["attributes"]}
    for name, value in given.items():
        if value is None:
            continue
        if isinstance(value, Quantized):
            if types.get(name) != "weight":
                raise _native.InputError(f"'{name}' is not a weight and cannot be packed")
            if not isinstance(value.mode, str):
                raise TypeError(f"the mode of '{name}' cannot be {value.mode!r:.60}, expected a text")
            parts = {"weight": value.weight, "scales": value.scales, "biases": value.biases}
            tensors.update({f"{name}.{part}": _array(f"{name}.{part}", array, "") for part, array in parts.items() if array is not None})
            format_of = {"mode": value.mode, "bits": value.bits, "group_size": value.group_size}
            attributes.update({f"{name}.{part}": str(given) for part, given in format_of.items() if given is not None})
        elif name in scalars and (isinstance(value, (bool, int, float, str)) or getattr(value, "shape", None) == ()):
            item = getattr(value, "item", None)  # for numbers of numpy or torch
            attributes[name] = _text(value if item is None else item())
        elif name in types:
            tensors[name] = _array(name, value, types[name])
        elif "field" in scalars[name]:
            tensors[name] = _array(name, value, "I32" if "I32" in scalars[name] else "")
        else:
            raise TypeError(f"{op['name']}(): {name} cannot be {value!r:.60}, expected {scalars[name]}")
    try:
        made = _call(functools.partial(_backend, backend, threads, exact), op["name"], tensors, attributes)
    except TypeError as error:
        if "incompatible function arguments" not in str(error):
            raise
        kinds = ", ".join(f"'{name}' {type(array).__name__} of {getattr(array, 'dtype', '?')}" for name, array in tensors.items())
        raise TypeError(f"{op['name']}(): one of these cannot be read by DLPack: {kinds}") from None
    if len(made) == 1:
        return made[0][1]
    return _result_class(op["name"], tuple(name for name, _ in made))(*(array for _, array in made))


def _call(backend: Callable[..., _native.OpBackend], op: str, tensors: dict[str, Any], attributes: dict[str, str]) -> list[tuple[str, Any]]:
    device = _cuda_device(tensors.values())
    if device is None:
        return backend(_current_device()).run(op, tensors, attributes, any(_is_torch(value) for value in tensors.values()))
    import torch

    _refuse_graphs(f"{op}()", *tensors.values())
    with torch.cuda.device(device):  # every thread has its own current device
        held = backend(device.index)
        if held.cuda_device() is None:
            on_host = {name: value.cpu() if _is_torch(value) else value for name, value in tensors.items()}
            return [(name, array.to(device)) for name, array in held.run(op, on_host, attributes, True)]
        on_device = {name: _on_device(value, device) for name, value in tensors.items()}
        return held.run(op, on_device, attributes, True, torch.cuda.current_stream(device).cuda_stream)


def _refuse_graphs(what: str, *values: Any) -> None:
    device = _cuda_device(values)
    if device is not None:
        import torch

        with torch.cuda.device(device):
            if torch.cuda.is_current_stream_capturing():
                raise _native.InputError(f"{what} cannot become part of a CUDA graph: an op is done when it returns")


def _on_device(value: Any, device: Any) -> Any:
    import torch

    if isinstance(value, numpy.ndarray):
        value = torch.tensor(numpy.require(value, requirements="C"))  # a copy: torch warns of read-only arrays that it shares
    elif not _is_torch(value):
        value = torch.from_dlpack(value)
    value = value.to(device)
    return value if value.data_ptr() % 64 == 0 else value.clone()


def _is_input(role: str) -> bool:
    return not role.startswith("output")


def _documentation(op: Mapping[str, Any]) -> str:
    lines = [op["formula"], "", "Fields:"]
    lines += [f"    {name}: {role}, {types}, {shape}" for name, role, types, shape in op["fields"]]
    shown = [entry for entry in op["attributes"] if "." not in entry[0]]
    if shown:
        lines += ["", "Attributes:"]
        lines += [f"    {name}: {kind}, {'default ' + default if default else 'required'}: {meaning}" for name, kind, default, meaning in shown]
    return "\n".join(lines)


def _default(kind: str, text: str) -> Any:
    if not text:
        return None
    return bool(int(text)) if kind == "0 or 1" else json.loads(text) if kind.startswith(("number", "integer")) else text


def _signature(op: Mapping[str, Any]) -> inspect.Signature:
    def parameter(name: str, required: bool, default: Any = None) -> inspect.Parameter:
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=inspect.Parameter.empty if required else default)

    made = [parameter(name, role in ("input", "in place")) for name, role, _, _ in op["fields"] if _is_input(role)]
    made += [parameter(name, not default, _default(kind, default)) for name, kind, default, _ in op["attributes"] if "." not in name]
    made += [parameter("backend", False, "auto"), parameter("threads", False, 0), parameter("exact", False, True)]
    return inspect.Signature(made)


def _function(op: Mapping[str, Any]) -> Callable[..., Any]:
    signature = _signature(op)

    def call(*unnamed: Any, **given: Any) -> Any:
        if unnamed:
            raise TypeError(f"{op['name']}() takes its fields by name: {', '.join(signature.parameters)}")
        try:
            bound = signature.bind(**given).arguments
        except TypeError as error:
            raise TypeError(f"{op['name']}(): {error}; it takes {', '.join(signature.parameters)}") from None
        backend, threads, exact = bound.pop("backend", "auto"), bound.pop("threads", 0), bound.pop("exact", True)
        return _run(op, bound, backend, threads, exact)

    call.__name__ = call.__qualname__ = op["name"]
    call.__doc__ = _documentation(op)
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


_CATALOGUE = {op["name"]: op for op in _native.describe_ops()}
assert not any(keyword.iskeyword(name) for name in _CATALOGUE)
globals().update({name: _function(op) for name, op in _CATALOGUE.items()})
_written = {name: [(field, role) for field, role, *_ in op["fields"] if role.startswith(("output", "in place"))] for name, op in _CATALOGUE.items()}
_results = [_result_class(name, tuple(field for field, _ in written)) for name, written in _written.items()
            if len(written) > 1 and all(role != "in place, optional" for _, role in written)]
globals().update({made.__name__: made for made in _results})  # under their names, so that results can be pickled


def describe(op: str | None = None) -> Any:
    """The table of one op, or of all by name: formula, fields and attributes."""
    if op is not None and not (isinstance(op, str) and op in _CATALOGUE):
        raise _native.InputError(f"there is no op {op!r:.60}; there are {', '.join(_CATALOGUE)}")
    return copy.deepcopy(_CATALOGUE if op is None else _CATALOGUE[op])  # a copy, because the functions were made from this one


__all__ = ["Quantized", "dequantize", "describe", "quantize", *_CATALOGUE]


def __dir__() -> list[str]:
    return [*__all__, *(made.__name__ for made in _results)]
