"""Ops on torch tensors on a CUDA device: inputs are read there, after torch's current stream, and outputs are there."""

import threading

import numpy
import pytest
import torch

import sluice
from sluice import ops


def missing():
    if not torch.cuda.is_available():
        return "torch finds no CUDA device"
    try:
        ops.add(a=[1.0], b=[1.0], backend="cuda")
    except sluice.Error as error:
        return str(error)
    return ""


WHY_NOT = missing()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(7)


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def close(given, expected, tolerance=1e-4):
    assert given.is_cuda
    torch.testing.assert_close(given.float(), expected.float(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("backend", ["auto", "cuda", "cpu", "reference"])
@pytest.mark.parametrize("shape", [(1, 64), (7, 96), (3, 5, 128)])
def test_rms_norm(backend, shape):
    x, weight = randn(*shape), randn(shape[-1])
    close(ops.rms_norm(x=x, weight=weight, eps=1e-5, backend=backend), torch.nn.functional.rms_norm(x, shape[-1:], weight, 1e-5))


@pytest.mark.parametrize("tokens", [1, 5, 200])
def test_packed_weights(tokens):
    w, x = randn(96, 256, dtype=torch.bfloat16), randn(tokens, 256, dtype=torch.bfloat16)
    packed = ops.quantize(w)
    assert packed.weight.is_cuda and packed.scales.is_cuda
    out = ops.matmul(x=x, w=packed, backend="cuda")
    assert out.dtype == torch.bfloat16
    # With many rows, weights are unpacked to bfloat16: sums of 256 products then have errors of some hundredths.
    close(out, x.float() @ ops.dequantize(packed, backend="cuda").T.float(), 0.2)


def test_delta_rule_by_the_reference():
    q, k = torch.nn.functional.normalize(torch.randn(2, 130, 2, 128, device="cuda"), dim=-1)
    v, g, beta = randn(130, 4, 128), -torch.rand(130, 4, device="cuda"), torch.rand(130, 4, device="cuda")
    state = randn(4, 128, 128)
    given = state.clone()
    made = ops.delta_rule(q=q, k=k, v=v, g=g, beta=beta, state=state, backend="cuda")
    expected = ops.delta_rule(q=q, k=k, v=v, g=g, beta=beta, state=state, backend="reference")
    close(made.out, expected.out, 1e-3)
    close(made.state, expected.state, 1e-3)
    assert torch.equal(state, given)  # inputs are not written to


def test_nothing_is_copied():
    a, b = torch.ones(2, 1 << 27, device="cuda")  # 512 MiB each
    ops.add(a=a[:64], b=b[:64], backend="cuda")
    torch.cuda.synchronize()
    before = torch.cuda.mem_get_info()[0]
    out = ops.add(a=a, b=b, backend="cuda")
    taken = before - torch.cuda.mem_get_info()[0]  # a copy of an input would live as long as the output
    assert out.nbytes <= taken < out.nbytes * 1.5
    assert float(out[-1]) == 2
    del out
    assert torch.cuda.mem_get_info()[0] >= before


@pytest.mark.parametrize("own_stream", [False, True])
def test_ops_wait_for_the_current_stream(own_stream):
    stream = torch.cuda.Stream() if own_stream else torch.cuda.default_stream()
    x, one = torch.zeros(1 << 20, device="cuda"), torch.ones(1 << 20, device="cuda")
    torch.cuda.synchronize()
    for turn in range(1, 6):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(100_000_000)  # clock cycles: some hundredths of a second
            x.fill_(turn)
            out = ops.add(a=x, b=one, backend="cuda")
            assert float((out * 2).min()) == float((out * 2).max()) == 2 * (turn + 1)


class Foreign:
    """An array of another library, which uses its own stream."""

    def __init__(self, tensor, stream):
        self.tensor, self.stream = tensor, stream

    def __dlpack__(self, **how):
        with torch.cuda.stream(self.stream):
            return self.tensor.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("own_stream", [False, True])
def test_ops_wait_for_the_streams_of_other_libraries(own_stream):
    theirs, ours = torch.cuda.Stream(), torch.cuda.Stream() if own_stream else torch.cuda.default_stream()
    x, one = torch.zeros(1 << 20, device="cuda"), torch.ones(1 << 20, device="cuda")
    torch.cuda.synchronize()
    for turn in range(1, 6):
        with torch.cuda.stream(theirs):
            torch.cuda._sleep(100_000_000)
            x.fill_(turn)
        with torch.cuda.stream(ours):
            out = ops.add(a=Foreign(x, theirs), b=one, backend="cuda")
            assert float(out.min()) == float(out.max()) == turn + 1


def test_no_part_of_a_graph():
    x = torch.ones(64, device="cuda")
    close(ops.add(a=x, b=x, backend="cuda"), x + x)
    for backend in ("cuda", "cpu"):
        with pytest.raises(sluice.InputError, match="graph"), torch.cuda.graph(torch.cuda.CUDAGraph()):
            ops.add(a=x, b=x, backend=backend)
        close(ops.add(a=x, b=x, backend=backend), x + x)


def test_pinned_memory_is_the_hosts():
    x = torch.randn(3, 64).pin_memory()
    for backend in ("cuda", "cpu"):
        made = ops.add(a=x, b=x, backend=backend)
        assert not made.is_cuda and torch.equal(made, x + x)


def test_threads_with_streams_of_their_own():
    wrong = []

    def work(number):
        with torch.cuda.stream(torch.cuda.Stream()):
            for turn in range(50):
                x = torch.full((4096,), float(number * 100 + turn), device="cuda")
                out = ops.add(a=x, b=x, backend="cuda")
                del x
                if not bool((out == 2 * (number * 100 + turn)).all()):
                    wrong.append((number, turn))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_any_layout_will_do():
    x = randn(64, 6).t()
    close(ops.add(a=x, b=x, backend="cuda"), x + x)
    odd = randn(129)[1:]
    close(ops.add(a=odd, b=odd, backend="cuda"), odd + odd)


def test_lists_arrays_and_host_tensors_beside():
    table, logits = randn(10, 64), randn(3, 50)
    close(ops.embed(table=table, ids=[3, 1], backend="cuda"), table[[3, 1]])
    close(ops.add(a=table, b=numpy.ones((10, 64), numpy.float32), backend="cuda"), table + 1)
    close(ops.add(a=table, b=torch.ones(10, 64), backend="cuda"), table + 1)
    made = ops.sample(logits=logits, positions=[0, 0, 0], temperature=[0.0, 0.0, 0.0], backend="cuda")
    assert made.ids.is_cuda and made.ids.tolist() == logits.argmax(1).tolist()


def test_bad_contents_are_an_error_of_this_call():
    table = randn(10, 64)
    with pytest.raises(sluice.InputError):
        ops.embed(table=table, ids=torch.tensor([3, 99], dtype=torch.int32, device="cuda"), backend="cuda")
    close(ops.embed(table=table, ids=torch.tensor([3], dtype=torch.int32, device="cuda"), backend="cuda"), table[3:4])


def test_results_outlive_everything_and_leave_nothing():
    kept = [ops.add(a=torch.full((1 << 20,), float(n), device="cuda"), b=torch.ones(1 << 20, device="cuda"), backend="cuda") for n in range(20)]
    assert [float(x[-1]) for x in kept] == [n + 1 for n in range(20)]
    kept[0].fill_(5)  # the caller may write to them
    del kept
    before = torch.cuda.mem_get_info()[0]
    for _ in range(200):
        ops.add(a=torch.ones(1 << 20, device="cuda"), b=torch.ones(1 << 20, device="cuda"), backend="cuda")
    assert before - torch.cuda.mem_get_info()[0] < 32 << 20


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_each_device_answers_its_own_tensors():
    """For any current device, in any thread."""
    tensors, made = [torch.full((4096,), float(at), device=f"cuda:{at}") for at in range(2)], {}

    def work(at):
        torch.cuda.set_device(1 - at)
        made[at] = ops.add(a=tensors[at], b=tensors[at], backend="cuda")

    for at in (0, 1, 0):
        thread = threading.Thread(target=work, args=(at,))
        thread.start()
        thread.join()
        torch.cuda.set_device(1 - at)
        host = ops.add(a=numpy.ones(64, numpy.float32), b=numpy.ones(64, numpy.float32), backend="cuda")
        torch.cuda.set_device(0)
        assert (host == 2).all()
        assert made[at].device == tensors[at].device and bool((made[at] == 2 * at).all())
