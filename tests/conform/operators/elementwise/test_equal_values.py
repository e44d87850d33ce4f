from __future__ import annotations

import numpy as np
import pytest

from edgeflare.conform.graphs.operator_graph import GraphValue, Quantization, Values
from edgeflare.conform.operators.elementwise.equal_values import make_values_equal
from edgeflare.conform.specification.operator_specification import Operand


def operand(shape: tuple[int, ...], seed: int, *, constant: bool = False) -> Operand:
    raw = np.asarray(np.random.default_rng(seed).uniform(size=shape), np.float32)
    value = GraphValue("float32", shape)
    return Operand(value.constant(raw) if constant else value, raw)


def equal(first: Values, second: Values) -> float:
    return float(np.mean(first == second))


@pytest.mark.parametrize(
    "shapes",
    [((2, 4), (2, 4)), ((4,), (3, 4)), ((3, 4), ()), ((3, 1), (1, 4)), ((2, 1, 4), (6, 1))],
)
@pytest.mark.parametrize("constant", [None, 0, 1])
def test_some_values_of_a_comparison_are_equal_and_others_not(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], constant: int | None
) -> None:
    first, second = (operand(shape, at, constant=constant == at) for at, shape in enumerate(shapes))
    before = [one.raw.copy() for one in (first, second)]
    make_values_equal([first, second])
    assert equal(*before) == 0
    assert 0 < equal(first.raw, second.raw) < 1
    if constant is not None:
        assert (first, second)[constant].raw.tobytes() == before[constant].tobytes()


@pytest.mark.parametrize(("shape", "other"), [((0, 3), (1, 3)), ((1,), (0,))])
def test_operands_without_values_stay_as_they_are(
    shape: tuple[int, ...], other: tuple[int, ...]
) -> None:
    first, second = operand(shape, 0), operand(other, 1)
    before = first.raw.tobytes(), second.raw.tobytes()
    make_values_equal([first, second])
    assert (first.raw.tobytes(), second.raw.tobytes()) == before


def test_quantized_values_stay_as_they_are() -> None:
    value = GraphValue("int8", (4,), Quantization((0.5,), 0))
    first, second = (Operand(value, np.arange(at, at + 4, dtype=np.int8)) for at in (0, 9))
    make_values_equal([first, second])
    assert second.raw.tolist() == [9, 10, 11, 12]


def test_two_constants_stay_as_they_are() -> None:
    first, second = (operand((4,), at, constant=True) for at in (0, 1))
    make_values_equal([first, second])
    assert equal(first.raw, second.raw) == 0
