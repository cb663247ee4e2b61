"""Wrong arguments are reported in one sentence that names them: a sluice.Error or a TypeError."""

import contextlib
import copy
import dataclasses
import fractions
import math
import os
import pathlib
import pickle

import numpy
import pytest
import torch

import sluice
from sluice import ops

TOOL = {"type": "function", "function": {"name": "a", "parameters": {}}}
X = numpy.arange(128, dtype=numpy.float32).reshape(2, 64)
WRONG_SETTINGS = {
    "max_tokens": [-1, 1.5, "3", 10**20], "min_tokens": [-1], "temperature": [math.nan, math.inf, -1, "a", 1e40],
    "top_k": [-1, 1.5, 10**20], "top_p": [0, 2, math.nan], "min_p": [-1, math.nan], "repetition_penalty": [0, math.nan],
    "presence_penalty": [math.inf], "frequency_penalty": [math.nan], "seed": [-1, 1.5, 10**30, "a"], "stop": [[1], 1, ["a", 5], b"x", "\ud800"],
    "logit_bias": [{"a": 1}, {1: "a"}, {-1: 1.0}, {10**20: 1.0}, {1: math.nan}, [(1, 2.0)]], "logprobs": [-5, 1.5, 21],
    "ignore_stop_ids": ["a"], "schema": [1, {"type": "nonsense"}, {"a": math.nan}, {"a": object()}], "regex": [1, "(", "\ud800"],
    "grammar": ["", 1], "choices": [[], [1], "ab"],
}
WRONG_MODELS = {"model": [None, "", 1, "a\0b", b"none", "\ud800", pathlib.Path(os.fsdecode(b"none\xff"))], "parallel": ["a", 1.5], "context": ["a", 1.5], "backend": [None, "", 1], "threads": [None, -1, 1.5, 10**9, 10**20],
                "memory": [None, -1, 1, "", "-1", 1.5, 10**30, "9" * 40 + "GB"], "vram": [-1, 1.5],
                "kv_bits": [None, 0, 7, "4", (4,), (4, 4, 4), (None, 4), 4.0], "exact": [None, "a"]}
WRONG_TEXTS = [None, 3, [1.5], ["a"], [[1, 2]], numpy.array([[1, 2]]), torch.tensor([[1, 2]]), [-1], [10**12], [None], numpy.array([1.0]), b"abc", {}, "a\ud800b"]


def told(work, *names):
    with pytest.raises((sluice.Error, TypeError)) as caught:
        work()
    message = str(caught.value)
    assert message and "\n" not in message and "incompatible function" not in message
    assert any(name in message for name in names or [""]), message


@pytest.mark.parametrize("name", WRONG_SETTINGS)
def test_settings(model, name):
    for value in WRONG_SETTINGS[name]:
        names = [name, "expression", "schema", "choice"]
        told(lambda: model.generate("Once", **{name: value}), *names)
    told(lambda: model.generate("Once", logit_bias={"a": 1}), "logit_bias cannot be {'a': 1}, expected numbers by token ids")
    for prompts in (None, 3, "Once"):
        told(lambda: model.generate_batch(prompts), f"prompts are a sequence of texts or of token ids, not {prompts!r}")
    with model.session(8) as session:
        told(lambda: session.generate("Once", **{name: WRONG_SETTINGS[name][0]}))


@pytest.mark.parametrize("name", WRONG_MODELS)
def test_models(name):
    for value in WRONG_MODELS[name]:
        told(lambda: sluice.Model(**{name: value}))


def test_texts(model):
    with model.session(8) as session:
        for text in WRONG_TEXTS:
            told(lambda: model.generate(text, max_tokens=1))
            told(lambda: model.logits(text))
            told(lambda: session.extend(text))
            if not isinstance(text, str):
                told(lambda: model.tokenize(text), "text")
            told(lambda: model.perplexity(text), "text")
        for name in ("context", "stride"):
            for value in (1.5, "a", 10**20):
                told(lambda: model.perplexity("Once upon a time", **{name: value}), name)
        for token in (None, "a", 1.5, -1, 10**12):
            told(lambda: session.step(token))
            if token != -1:
                told(lambda: model.detokenize([1, token]))
        told(lambda: model.detokenize([1, model.summary["vocab"]]), "not a token of this model, whose ids are 0 to 4095")
        assert model.detokenize([*model.tokenize("Once"), -1]) == "Once"
        for point in (None, session, "a"):
            told(lambda: session.restore(point), "snapshot")
            told(lambda: session.rewind(point), "snapshot")
        told(session.logits, "session is empty")
        for prompts in ("ab", b"ab", None):
            told(lambda: model.generate_batch(prompts))
        for capacity in (-1, 10**9, 10**20):
            told(lambda: model.session(capacity))
        for capacity in (None, 1.5, "a"):
            told(lambda: model.session(capacity), "capacity")
        told(lambda: session.generate("Once", 5), "on_token")


def test_requests_and_conversations(model):
    for wrong in ({"priority": 1.5}, {"priority": 10**20}, {"timeout": math.nan}, {"timeout": "a"}, {"key": None}):
        told(lambda: model.scheduler.run([model.request("a", **wrong)]), *wrong, "time")
    for wrong in ({"parallel": -1}, {"context": 1.5}, {"queue": 0}, {"queue": -1}, {"token_interval": math.nan}, {"cache_tokens": -1}):
        told(lambda: sluice.Scheduler(model, **wrong))
    told(lambda: sluice.Scheduler(None), "Model")
    told(lambda: model.scheduler.run([1]), "request")
    for wrong in ({"tool_choice": None}, {"tool_choice": "none such"}, {"max_thinking_tokens": -1}, {"max_thinking_tokens": 1.5},
                  {"tools": 1}, {"tools": [{}]}, {"tools": TOOL}, {"variables": 1}, {"variables": {1: 2}}, {"variables": {"a": object()}}):
        told(lambda: model.chat([{"role": "user", "content": "Hello."}], **wrong))
    for messages in (None, [1], [{}], [{"role": "user", "content": object()}], [{"role": 5, "content": "a"}], [{"role": "user", "content": math.nan}]):
        told(lambda: model.chat(messages))
    for value in (1.5, "a", -1, 10**20):
        told(lambda: model.chat([{"role": "user", "content": "Hello."}], max_thinking_tokens=value), "max_thinking_tokens")
    told(lambda: model.chat([{"role": "user", "content": "a\ud800"}]), "messages contains half a character")
    for messages in ("Hello.", {"role": "user", "content": "Hello."}):
        told(lambda: model.chat(messages), "messages are a sequence")


@pytest.mark.parametrize("given", [
    X.astype(object), numpy.array(["a"]), numpy.zeros(3, [("a", "f4")]), "abc", [[1, 2], [3]], torch.eye(4).to_sparse(),
    torch.empty(2, 64, device="meta"), torch.float32, torch, torch.randn(2, 64, dtype=torch.complex64), numpy.float32(1), numpy.ma.masked_array(X, X > 9), X.astype(numpy.float64), numpy.zeros((0, 64), numpy.float32)])
def test_arrays(given):
    told(lambda: ops.rms_norm(x=given, eps=1e-6), "'x'")


def test_none_is_as_if_not_given(model):
    wanted = {"max_tokens": 8, "temperature": 0}
    nothing = {name: None for name in WRONG_SETTINGS if name not in wanted}
    expected = model.generate("Once", **wanted)
    made = model.generate("Once", **wanted, **nothing)
    assert made.ids == expected.ids and made.logprobs is None
    with model.session(16) as session:
        assert session.generate("Once", **wanted, **nothing).tokens == expected.tokens
    assert model.chat([{"role": "user", "content": "Hello."}], **wanted, **nothing).generation.ids


def test_whole_numbers_of_any_width_are_ids():
    expected = ops.embed(table=X, ids=[1, 0])
    for kind in ("i1", "u1", "i2", "u2", ">u2", "u4", "i8", "u8"):
        assert numpy.array_equal(ops.embed(table=X, ids=numpy.array([1, 0], kind)), expected)
    for kind in (torch.int8, torch.uint8, torch.int16, torch.uint16, torch.uint32, torch.uint64):
        assert numpy.array_equal(ops.embed(table=X, ids=torch.tensor([1, 0]).to(kind)), expected)
    for ids in (numpy.array([1, 0]), numpy.array([1, 5, 0, 5])[::2], torch.tensor([1, 0]), torch.tensor([[1, 0], [5, 5]]).t()[:, 0]):
        assert numpy.array_equal(numpy.asarray(ops.embed(table=X, ids=ids)), expected)
    for ids in (numpy.array([1 << 40]), torch.tensor([-1 << 40]), numpy.array([1.0], numpy.float32), numpy.array([2]), torch.tensor([-1])):
        told(lambda: ops.embed(table=X, ids=ids), "ids")


def test_lists_are_not_rounded_to_ids():
    for ids in ([1.5], [0.0], [10**12], [-1], ["a"]):
        told(lambda: ops.embed(table=X, ids=ids), "ids")
    assert ops.embed(table=X, ids=[1]).tolist() == X[1:].tolist()


def test_arrays_of_any_kind_that_can_be_read():
    expected = ops.rms_norm(x=X, eps=1e-6)
    frozen = X.copy()
    frozen.flags.writeable = False
    for given in (X.astype(">f4"), frozen, numpy.asfortranarray(X), numpy.repeat(X, 2, 1)[:, ::2], X[:, ::-1].copy()[:, ::-1], memoryview(X),
                  X.tolist(), torch.tensor(X, requires_grad=True), torch.tensor(X).t().contiguous().t()):
        assert numpy.array_equal(numpy.asarray(ops.rms_norm(x=given, eps=1e-6)), expected)


class Foreign:
    """An array of an unknown library."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, **how):
        return self._tensor.__dlpack__(**how)

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


def test_arrays_of_other_libraries():
    expected = ops.rms_norm(x=X, eps=1e-6)
    for given in (torch.tensor(X), torch.tensor(X).t().contiguous().t(), torch.tensor(X[:1]).expand(2, 64)):
        made = ops.rms_norm(x=Foreign(given), eps=1e-6)
        assert type(made) is numpy.ndarray and numpy.array_equal(made, expected[:1].repeat(2, 0) if given.stride(0) == 0 else expected)
    assert numpy.array_equal(ops.embed(table=X, ids=Foreign(torch.tensor([1, 0]))), X[[1, 0]])
    short = torch.tensor(X).bfloat16()
    made = ops.rms_norm(x=Foreign(short), eps=1e-6)  # numpy has no bfloat16
    assert torch.equal(made, ops.rms_norm(x=short, eps=1e-6))
    assert torch.equal(ops.quantize(Foreign(short)).scales, ops.quantize(short).scales)


def test_arrays_of_other_libraries_on_a_device_are_asked_for_by_the_current_stream(monkeypatch):
    """As torch requests them; here without a device."""
    class OnDevice(Foreign):
        def __dlpack_device__(self):
            return (2, 0)

    asked = []
    monkeypatch.setattr(torch.cuda, "device", lambda index: contextlib.nullcontext(asked.append(index)))
    monkeypatch.setattr(torch, "from_dlpack", lambda array: array._tensor)
    made = ops.rms_norm(x=OnDevice(torch.tensor(X)), eps=1e-6)
    assert asked == [0] and numpy.array_equal(made.numpy(), ops.rms_norm(x=X, eps=1e-6))
    monkeypatch.undo()
    if not torch.cuda.is_available():
        told(lambda: ops.rms_norm(x=OnDevice(torch.tensor(X)), eps=1e-6), "'x' is on a CUDA device")
        told(lambda: ops.quantize(OnDevice(torch.tensor(X))), "'values' is on a CUDA device")


def test_arrays_of_the_host_are_computed_on_the_device_that_torch_has_chosen(monkeypatch):
    made = ops._backend("auto", 0, True, 0)
    assert ops._backend("auto", 0, True, ops._current_device()) is made
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert ops._current_device() == 1 and ops._backend("auto", 0, True, 1) is not made


class Tensor(torch.Tensor):
    """A custom subclass."""


def test_tensors_of_any_kind():
    expected = ops.rms_norm(x=X, eps=1e-6)
    for given in (torch.tensor(X).as_subclass(Tensor).requires_grad_(), torch.nn.Parameter(torch.tensor(X)),
                  torch.complex(torch.tensor(X), torch.tensor(-X)).conj().imag):
        made = ops.rms_norm(x=given, eps=1e-6)
        assert isinstance(made, torch.Tensor) and not made.requires_grad and numpy.array_equal(made.numpy(), expected)


def test_calls_say_which_op_and_what_it_takes():
    for work in (lambda: ops.rms_norm(X, eps=1e-6), lambda: ops.rms_norm(x=X), lambda: ops.rms_norm(x=X, eps=1e-6, colour=2)):
        with pytest.raises(TypeError, match=r"^rms_norm\(\).* x, weight, eps"):
            work()


def test_the_table_that_is_given_is_a_copy():
    ops.describe("rms_norm")["fields"].clear()
    ops.describe().clear()
    assert ops.describe("rms_norm")["fields"] and "x" in ops.rms_norm.__doc__


def test_what_cannot_be_read_is_told_by_its_name():
    class Unreadable:
        dtype = "nothing"

        def __dlpack__(self, **_):
            raise BufferError("no")

    told(lambda: ops.rms_norm(x=Unreadable(), eps=1e-6), "'x' Unreadable of nothing")
    told(lambda: torch.vmap(lambda x: ops.rms_norm(x=x, eps=1e-6))(torch.ones(3, 2, 64)), "'x'")
    told(lambda: ops.rms_norm(x=ops.quantize(X), eps=1e-6), "'x' is not a weight")


def test_numbers_of_numpy_and_torch_are_numbers(model):
    expected = model.generate("Once", max_tokens=3, temperature=0, ignore_stop_ids=True)
    for given in ({"max_tokens": numpy.int64(3), "temperature": numpy.float32(0), "ignore_stop_ids": numpy.True_},
                  {"max_tokens": torch.tensor(3), "temperature": torch.tensor(0.0), "ignore_stop_ids": True}):
        assert model.generate("Once", **given).ids == expected.ids
    with sluice.Model(kv_bits=numpy.int64(8), threads=numpy.int64(1), memory=numpy.int64(8 << 30)), sluice.Model(memory=8e9, kv_bits=(8, 4)):
        pass
    expected = ops.rms_norm(x=X, eps=0.25)
    for eps in (numpy.float32(0.25), numpy.array(0.25), torch.tensor(0.25)):
        assert numpy.array_equal(ops.rms_norm(x=X, eps=eps, threads=numpy.int64(1), exact=numpy.True_), expected)
    packed = ops.quantize(X, bits=numpy.int64(4), group_size=numpy.int32(32))
    assert numpy.array_equal(ops.dequantize(packed), ops.dequantize(ops.quantize(X, group_size=32)))


def test_studies(tmp_path):
    for wrong in ({"bits": "4"}, {"quantize": "a"}, {"threads": 1.5}, {"mixed": 1}):
        told(lambda: sluice.convert("delta-story", tmp_path / "out", **wrong), *wrong)
    for wrong in ({"bits": "a"}, {"sequences": "a"}, {"sequences": 10**20}, {"memory": 1.5}):
        told(lambda: sluice.plan("qwen3.6-35b-a3b", **{"bits": 4, **wrong}), *wrong, "size")
    for name in (None, 1, b"none", pathlib.Path(os.fsdecode(b"none\xff"))):
        for work in (sluice.inspect, sluice.plan, sluice.serve, lambda name: sluice.convert(name, tmp_path / "out")):
            told(lambda: work(name), "none", "PathLike")
        told(lambda: sluice.plan(name, bits=4), "geometry", "PathLike")
        told(lambda: sluice.random(name, tmp_path / "out"), "geometry")
    for wrong in ({"bits": "a"}, {"zipf": "a"}):
        told(lambda: sluice.random("qwen3.6-35b-a3b", tmp_path / "out", **wrong), *wrong)
        told(lambda: sluice.Model.random("qwen3.6-35b-a3b", bits="a"), "bits")
    for wrong in ({"options": "--parallel 1"}, {"options": None}, {"options": ["--parallel", 1]}, {"host": None}, {"port": "a"}, {"port": 1.5}):
        told(lambda: sluice.serve(**wrong), *wrong)
    assert not (tmp_path / "out").exists()


def test_options_of_ops():
    for wrong in ({"backend": None}, {"backend": "abacus"}, {"threads": None}, {"threads": -1}, {"threads": 1.5}, {"exact": "no"}, {"exact": None}, {"eps": [1e-6]}, {"eps": fractions.Fraction(1, 4)}, {"eps": math.nan}, {"eps": 1j}):
        told(lambda: ops.rms_norm(x=X, **{"eps": 1e-6, **wrong}), *wrong)
    for wrong in ({"bits": 1.5}, {"bits": None}, {"bits": 10**12}, {"group_size": 0}, {"group_size": -64}):
        told(lambda: ops.quantize(X, **wrong))
    told(lambda: ops.quantize(None))
    told(lambda: ops.dequantize(X), "Quantized")
    packed = ops.quantize(X)
    for wrong in ({"weight": [1]}, {"scales": None}, {"scales": [1.0]}, {"biases": 1}, {"mode": 5}):
        told(lambda: ops.dequantize(dataclasses.replace(packed, **wrong)), *wrong, "words")
    assert packed != ops.quantize(X) and packed in {packed}
    for name in ("none such", 5, []):
        told(lambda: ops.describe(name), f"no op {name!r}")


def test_what_holds_threads_cannot_be_copied(model):
    chat = model.chat_stream([{"role": "user", "content": "Hello."}], max_tokens=1)
    for one in (model, model.session(8), model.scheduler, model.stream("a", max_tokens=1), chat):
        for work in (pickle.dumps, copy.copy, copy.deepcopy):
            told(lambda: work(one), f"a {type(one).__name__} can neither be copied nor pickled")


def test_results_can_be_pickled(model):
    made = ops.add_rms_norm(residual=X, delta=X, weight=X[0], eps=1e-6)
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is ops.AddRmsNormResult and numpy.array_equal(again.out, made.out)
    answer = model.generate("Once", max_tokens=2, logprobs=1)
    assert pickle.loads(pickle.dumps(answer)) == answer
    assert repr(answer).startswith(f"Generation(text={answer.text!r}, finish_reason=") and "Token(" not in repr(answer)
    assert pickle.loads(pickle.dumps(sluice.InputError("x"))).args == ("x",)
