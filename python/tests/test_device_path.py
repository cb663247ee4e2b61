"""How tensors on a CUDA device are passed to a CUDA backend, tested without a device: the backend only records its arguments.

test_cuda_ops.py tests the results on a real device.
"""

import contextlib
import types
import warnings

import numpy
import pytest
import torch

import sluice
from sluice import ops


class OnDevice(torch.Tensor):
    """Claims to be on a CUDA device."""

    is_cuda = True


class Listener:
    """A backend of a device that records its arguments."""

    def cuda_device(self):
        return 0

    def run(self, op, tensors, attributes, torch, stream=0):
        self.heard = (op, tensors, torch, stream)
        return [("out", None)]


def on_device(values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype).as_subclass(OnDevice)


@pytest.fixture
def listener(monkeypatch):
    made = Listener()
    monkeypatch.setattr(ops, "_backend", lambda *_: made)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: types.SimpleNamespace(cuda_stream=7))
    return made


TABLE = numpy.arange(256, dtype=numpy.float32).reshape(4, 64)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64])
def test_ids_of_any_width(listener, dtype):
    ops.embed(table=on_device(TABLE), ids=on_device([3, 0, 2], dtype))
    op, tensors, as_torch, stream = listener.heard
    assert (op, as_torch, stream) == ("embed", True, 7)
    assert tensors["ids"].dtype == torch.int32 and tensors["ids"].tolist() == [3, 0, 2]
    assert numpy.array_equal(tensors["table"].numpy(), TABLE)


@pytest.mark.parametrize("wrong", [on_device([1, 2**31], torch.int64), on_device([-2**31 - 1], torch.int64), on_device([2**32 - 1], torch.uint32),
                                   on_device([2**63], torch.uint64), on_device([1, 2**64 - 1], torch.uint64)])
def test_ids_that_do_not_fit(listener, wrong):
    with pytest.raises(sluice.InputError, match="'ids' contains numbers that do not fit int32"):
        ops.embed(table=on_device(TABLE), ids=wrong)
    with pytest.raises(sluice.InputError, match="'ids' contains numbers that do not fit int32"):
        ops.embed(table=TABLE, ids=wrong.as_subclass(torch.Tensor))  # also for tensors on the host


def test_arrays_of_the_host_beside_go_to_the_device(listener):
    read_only = numpy.broadcast_to(TABLE[0], (3, 64))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns of memory that must not be written to
        for given in (TABLE[:3], TABLE[::-1][:3], TABLE[:3, ::-1], numpy.asfortranarray(TABLE[:3]), read_only, TABLE[:3].astype(">f4")):
            ops.add(a=on_device(TABLE[:3]), b=given)
            assert numpy.array_equal(listener.heard[1]["b"].numpy(), given)
        ops.embed(table=on_device(TABLE), ids=[1, 2])
        assert listener.heard[1]["ids"].dtype == torch.int32


def test_every_tensor_begins_where_kernels_may_read(listener):
    odd = on_device(TABLE.ravel())[1:65]
    ops.add(a=odd, b=on_device(TABLE)[:, 1].expand(64, 4)[:, 0].contiguous())
    for tensor in listener.heard[1].values():
        assert tensor.data_ptr() % 64 == 0 and tensor.is_contiguous()
    assert numpy.array_equal(listener.heard[1]["a"].numpy(), TABLE.ravel()[1:65])


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_no_part_of_a_graph(listener, monkeypatch, dtype):
    """Reported before anything is done on the device, which would invalidate the graph."""
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    monkeypatch.setattr(torch.Tensor, "min", None)
    with pytest.raises(sluice.InputError, match="CUDA graph"):
        ops.embed(table=on_device(TABLE), ids=on_device([1], dtype))
    assert not hasattr(listener, "heard")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_memory_of_a_device_that_is_not_here():
    """As any DLPack object may claim."""
    class Claims:
        def __dlpack__(self, **_):
            raise AssertionError("was read")

        def __dlpack_device__(self):
            return (2, 0)

    for work in (lambda: ops.rms_norm(x=Claims(), eps=1e-6), lambda: ops.quantize(Claims()),
                 lambda: ops.embed(table=TABLE, ids=Claims()), lambda: ops.dequantize(ops.Quantized(TABLE, Claims()))):
        with pytest.raises((sluice.InputError, TypeError)) as told:
            work()
        assert "\n" not in str(told.value)
