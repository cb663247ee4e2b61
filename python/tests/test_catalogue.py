"""Every op of the catalogue against its formula in double precision, on every host backend and for every kind of array."""

import numpy
import pytest
import torch

from sluice import ops

from oracles import CASES, OF_OPS


def doubled(given):
    return {name: value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value for name, value in given.items()}


def fields(made):
    return made._asdict() if isinstance(made, tuple) else {"": made}


def same_bits(a, b):
    return {name: torch.as_tensor(x).numpy().tobytes() for name, x in a.items()} == {name: torch.as_tensor(x).numpy().tobytes() for name, x in b.items()}


@pytest.fixture(params=sorted(OF_OPS))
def case(request):
    torch.manual_seed(sorted(OF_OPS).index(request.param))
    given, expected = OF_OPS[request.param]()
    return getattr(ops, request.param), given, expected


def test_every_op_has_an_oracle():
    assert OF_OPS.keys() == ops.describe().keys() and len(CASES) == len(OF_OPS)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_against_the_formula(case, backend):
    function, given, formula = case
    made, expected = fields(function(**given, backend=backend)), formula(**doubled(given))
    expected = expected if isinstance(expected, dict) else {"": expected}
    assert made.keys() == expected.keys()
    for name, value in expected.items():
        if made[name].is_floating_point():
            torch.testing.assert_close(made[name].double(), value.double(), rtol=1e-4, atol=1e-4)
        else:
            assert torch.equal(made[name].long(), value.long()), name


def strided(value):
    """Every second element of a larger array."""
    made = torch.zeros(*value.shape[:-1], 2 * value.shape[-1], dtype=value.dtype)
    made[..., ::2] = value
    return made[..., ::2]


KINDS = {"numpy": lambda value: value.numpy(), "strided": strided, "fortran": lambda value: numpy.asfortranarray(value.numpy()),
         "grown": lambda value: value.clone().requires_grad_() if value.is_floating_point() else value,
         "64 bits": lambda value: value.long() if value.dtype == torch.int32 else value,
         "16 bits": lambda value: value.to(torch.uint16) if value.dtype == torch.int32 else value.numpy(),
         "frozen": lambda value: numpy.frombuffer(value.numpy().tobytes(), value.numpy().dtype).reshape(value.shape)}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_array_gives_the_same_and_is_not_written(case, kind):
    function, given, _ = case
    expected = fields(function(**given))
    changed = {name: KINDS[kind](value) if isinstance(value, torch.Tensor) else value for name, value in given.items()}
    made = fields(function(**changed))
    assert same_bits(made, expected)
    assert {type(value) for value in made.values()} == {torch.Tensor if any(isinstance(value, torch.Tensor) for value in changed.values()) else numpy.ndarray}
    for name, value in given.items():
        if isinstance(value, torch.Tensor):
            assert numpy.array_equal(numpy.asarray(getattr(changed[name], "detach", lambda: changed[name])()), value.numpy()), f"{name} was written"


def halved(value):
    return value.bfloat16() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def test_bfloat16(case):
    """If a field allows it; results are close to those of float32 for the same numbers."""
    function, given, _ = case
    table = {name: types for name, _, types, _ in ops.describe(function.__name__)["fields"]}
    half = {name: halved(value) if "BF16" in table.get(name, "") or table.get(name) == "weight" else value for name, value in given.items()}
    made = fields(function(**half))
    expected = fields(function(**{name: value.float() if isinstance(value, torch.Tensor) and value.dtype == torch.bfloat16 else value
                                  for name, value in half.items()}))
    for name, value in expected.items():
        if value.is_floating_point():
            error = (made[name].double() - value.double()).abs().nan_to_num(0)
            assert error.max() <= 0.03 * value.double().abs().nan_to_num(0, 0, 0).max() + 0.02, name
