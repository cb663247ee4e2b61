"""Ops compared with torch, an independent implementation."""

import dataclasses
import inspect
import threading

import numpy
import pytest
import torch

import sluice
from sluice import ops

BACKENDS = ["reference", "cpu"]


@pytest.fixture(autouse=True)
def seed(request):
    value = abs(hash(request.node.name)) % (1 << 31)
    print("seed", value)
    torch.manual_seed(value)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", [(1, 64), (7, 96), (3, 5, 128)])
def test_rms_norm(backend, shape):
    x, weight = torch.randn(shape), torch.randn(shape[-1])
    out = ops.rms_norm(x=x, weight=weight, eps=1e-5, backend=backend)
    assert isinstance(out, torch.Tensor)
    torch.testing.assert_close(out, torch.nn.functional.rms_norm(x, shape[-1:], weight, 1e-5), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_matmul_of_numpy_arrays(backend):
    x, w = numpy.random.default_rng(1).standard_normal((2, 70, 64), numpy.float32)
    x = x[:5]
    out = ops.matmul(x=x, w=w, backend=backend)
    assert isinstance(out, numpy.ndarray) and out.dtype == numpy.float32
    numpy.testing.assert_allclose(out, x @ w.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_bfloat16(backend):
    x, w = torch.randn(5, 64, dtype=torch.bfloat16), torch.randn(32, 64, dtype=torch.bfloat16)
    out = ops.matmul(x=x, w=w, backend=backend)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), x.float() @ w.float().T, rtol=2e-2, atol=1e-1)


def delta_rule_by_torch(q, k, v, g, beta, state):
    """The recurrence by definition, in double precision."""
    q, k, v, g, beta, state = (x.double() for x in (q, k, v, g, beta, state))
    shared = v.shape[1] // k.shape[1]
    q, k = q.repeat_interleave(shared, 1), k.repeat_interleave(shared, 1)
    out = torch.empty_like(v)
    for t in range(q.shape[0]):
        state = state * g[t].exp()[:, None, None]
        u = beta[t][:, None] * (v[t] - torch.einsum("hvk,hk->hv", state, k[t]))
        state = state + torch.einsum("hv,hk->hvk", u, k[t])
        out[t] = torch.einsum("hvk,hk->hv", state, q[t])
    return out, state


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("tokens", [1, 65, 130])
def test_delta_rule(backend, tokens):
    q, k = torch.nn.functional.normalize(torch.randn(2, tokens, 2, 64), dim=-1)
    v, g, beta = torch.randn(tokens, 4, 64), -torch.rand(tokens, 4), torch.rand(tokens, 4)
    state = torch.randn(4, 64, 64)
    given = state.clone()
    made = ops.delta_rule(q=q, k=k, v=v, g=g, beta=beta, state=state, backend=backend)
    assert made._fields == ("state", "out")
    out, after = delta_rule_by_torch(q, k, v, g, beta, state)
    torch.testing.assert_close(made.out, out.float(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(made.state, after.float(), rtol=1e-4, atol=1e-4)
    assert torch.equal(state, given)  # inputs are not written to


@pytest.mark.parametrize("backend", BACKENDS)
def test_attention(backend):
    q, k, v = torch.randn(9, 4, 64), torch.randn(9, 2, 64), torch.randn(9, 2, 64)
    out = ops.attention(q=q, k_cache=k, v_cache=v, start=0, scale=0.125, backend=backend)
    expected = torch.nn.functional.scaled_dot_product_attention(
        q.transpose(0, 1), k.repeat_interleave(2, 1).transpose(0, 1), v.repeat_interleave(2, 1).transpose(0, 1),
        is_causal=True, scale=0.125).transpose(0, 1)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)


def peak_bytes(work):
    """The increase of the process's peak memory during the call."""
    def status(name):
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(name)) << 10

    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # resets the peak
    before = status("VmRSS")
    work()
    return status("VmHWM") - before


@pytest.mark.parametrize("make", [lambda size: numpy.ones(size, numpy.float32), torch.ones])
def test_inputs_are_read_where_they_lie(make):
    big = make(32 << 20)
    rise = peak_bytes(lambda: ops.add(a=big, b=big, backend="cpu"))
    assert big.nbytes * 0.9 < rise < big.nbytes * 1.5  # only the output, no copy of an input


def test_any_address_will_do():
    odd = numpy.zeros(64 * 4 + 2, numpy.uint8)[2:].view(numpy.float32)
    assert ops.add(a=odd, b=odd, backend="cpu").tolist() == [0] * 64


def test_not_contiguous_is_copied():
    x = torch.randn(64, 6).t()
    torch.testing.assert_close(ops.add(a=x, b=x), x + x)
    torch.testing.assert_close(torch.from_numpy(ops.add(a=x.numpy(), b=x.numpy())), x + x)


def test_results_outlive_everything():
    kept = [ops.add(a=numpy.full((4,), n, numpy.float32), b=numpy.ones(4, numpy.float32)) for n in range(200)]
    assert [float(x[0]) for x in kept] == [n + 1 for n in range(200)]
    kept[0][:] = 5  # the caller may write to them


def quantized_by_torch(w, bits):
    """MLX's affine codes as documented, then their values: groups of 32."""
    groups = w.float().reshape(*w.shape[:-1], -1, 32)
    low, high = groups.amin(-1), groups.amax(-1)
    edge = torch.where(low.abs() > high.abs(), low, high)
    scale = torch.clamp((high - low) / (2**bits - 1), min=1e-7) * torch.where(low.abs() > high.abs(), 1.0, -1.0)
    zero = torch.round(edge / scale)
    scale = torch.where(zero != 0, edge / zero, scale)
    bias = torch.where(zero != 0, edge, 0.0)
    codes = torch.clamp(torch.round((groups - bias[..., None]) / scale[..., None]), 0, 2**bits - 1)
    values = codes * scale.to(w.dtype).float()[..., None] + bias.to(w.dtype).float()[..., None]
    return values.reshape(w.shape)


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_quantize(bits, dtype):
    w, x = torch.randn(40, 128).to(dtype), torch.randn(3, 128)
    packed = ops.quantize(w, bits=bits, group_size=32)
    assert packed.weight.shape == (40, 128 * bits // 32) and packed.scales.dtype == dtype and packed.biases.shape == (40, 4)
    values = ops.dequantize(packed)
    torch.testing.assert_close(values, quantized_by_torch(w, bits), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ops.matmul(x=x, w=packed, backend="cpu"), x @ values.T, rtol=1e-4, atol=1e-3)
    with pytest.raises(sluice.InputError):
        ops.quantize(w[:, :100], bits=bits)
    with pytest.raises(sluice.InputError):
        ops.quantize(w, bits=7)


def test_packed_experts_and_rows_are_unpacked_in_their_shape():
    w = torch.randn(3, 40, 128)
    values = ops.dequantize(ops.quantize(w, group_size=32))
    torch.testing.assert_close(values, quantized_by_torch(w, 4), rtol=1e-5, atol=1e-5)
    row = ops.quantize(w[0, 0].numpy())
    assert numpy.array_equal(ops.dequantize(row), ops.dequantize(ops.quantize(w[0, :1].numpy()))[0])


MINIFLOATS = {"mxfp4": (4, 32), "mxfp8": (8, 32), "nvfp4": (4, 16)}


def unpacked(words, bits):
    return ((words[..., None] >> (numpy.arange(32 // bits, dtype=numpy.uint32) * bits)) & ((1 << bits) - 1)).reshape(len(words), -1)


def e4m3(codes):
    return torch.from_numpy(codes.astype(numpy.uint8)).view(torch.float8_e4m3fn).double().numpy()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", MINIFLOATS)
def test_packed_minifloats(mode, backend):
    """By the tables of OCP's formats; omitted settings have the mode's defaults."""
    bits, group = MINIFLOATS[mode]
    random = numpy.random.default_rng(3)
    words = random.integers(0, 1 << 32, (24, 128 * bits // 32), dtype=numpy.uint32)
    if mode == "mxfp8":
        words &= 0xBFBFBFBF  # no NaN
    codes, scales = unpacked(words, bits), random.integers(20, 100, (24, 128 // group), dtype=numpy.uint8)
    if bits == 8:
        values = e4m3(codes)
    else:
        values = numpy.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])[codes & 7] * numpy.where(codes & 8, -1, 1)
    factors = e4m3(scales) if mode == "nvfp4" else numpy.exp2(scales.astype(float) + 50 - 127)
    packed = ops.Quantized(words, scales if mode == "nvfp4" else scales + 50, mode=mode)
    expected = (values.reshape(24, -1, group) * factors[..., None]).reshape(24, 128)
    assert numpy.array_equal(ops.dequantize(packed, backend=backend), expected.astype(numpy.float32))
    assert numpy.array_equal(ops.dequantize(dataclasses.replace(packed, bits=bits, group_size=group)), expected.astype(numpy.float32))
    x = random.standard_normal((3, 128), numpy.float32)
    made = ops.matmul(x=x, w=packed, backend=backend)
    numpy.testing.assert_allclose(made, x @ expected.T, rtol=1e-4, atol=1e-4 * numpy.abs(x @ expected.T).max())


def test_sample_takes_numbers_and_rows():
    logits = torch.randn(3, 50)
    positions = torch.zeros(3, dtype=torch.int32)
    made = ops.sample(logits=logits, positions=positions, logprobs=4)
    assert made.ids.tolist() == logits.argmax(1).tolist() and made.positions.tolist() == [1, 1, 1]
    torch.testing.assert_close(made.top_logprobs[:, :4], logits.log_softmax(1).topk(4).values, rtol=1e-4, atol=1e-4)
    rows = ops.sample(logits=logits, positions=positions, temperature=[0.0, 1.0, 0.5], seed=3)
    assert rows.ids[0] == logits[0].argmax()


def test_every_op_is_a_function_with_a_table():
    catalogue = ops.describe()
    assert len(catalogue) >= 41
    for name, table in catalogue.items():
        function = getattr(ops, name)
        assert table["formula"] in function.__doc__ and name in ops.__all__
        defaults = {name: made.default for name, made in inspect.signature(function).parameters.items()}
        for attribute, _, default, _ in table["attributes"]:
            if default and "." not in attribute:
                assert str(int(defaults[attribute]) if isinstance(defaults[attribute], bool) else defaults[attribute]) == default
        inputs = {field for field, role, _, _ in table["fields"] if not role.startswith("output")}
        assert inputs <= inspect.signature(function).parameters.keys()


@pytest.mark.parametrize("given, message", [
    ({"x": numpy.zeros((2, 64)), "eps": 1e-6}, "elements of float64"),
    ({"x": numpy.zeros((2, 64), numpy.float32), "weight": numpy.zeros(3, numpy.float32), "eps": 1e-6}, "shape"),
    ({"x": numpy.zeros((1,) * 7, numpy.float32), "eps": 1e-6}, "dimensions"),
    ({"x": numpy.zeros((2, 64), numpy.float32), "eps": "much"}, "eps"),
])
def test_bad_calls_are_input_errors(given, message):
    with pytest.raises(sluice.InputError, match=message):
        ops.rms_norm(**given)


def test_missing_and_unknown_arguments_are_type_errors():
    with pytest.raises(TypeError, match="eps"):
        ops.rms_norm(x=numpy.zeros((2, 64), numpy.float32))
    with pytest.raises(TypeError, match="colour"):
        ops.rms_norm(x=numpy.zeros((2, 64), numpy.float32), eps=1, colour=2)


def test_many_threads():
    x = torch.randn(16, 256)
    expected = ops.rms_norm(x=x, eps=1e-6)
    wrong = []

    def work():
        for _ in range(20):
            if not torch.equal(ops.rms_norm(x=x, eps=1e-6), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(20)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong
