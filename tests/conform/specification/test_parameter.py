"""Parameters of operators: what is drawn is in range, and what is simpler leads to the simplest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.conform.operators.elementwise.unary_operators import Slope
from edgeflare.conform.specification.parameter import (
    Choice,
    Dimensions,
    OperatorParameter,
    ScaleParameter,
    Whole,
    ZeroPoint,
)

PARAMETERS: list[OperatorParameter] = [
    Choice("padding", ("SAME", "VALID")),
    Choice("bias", (False, True)),
    Whole("stride", 1, 4),
    Whole("height", 0, 40, rare=(0,)),
    ScaleParameter("scale"),
    Slope("slope"),
    ZeroPoint("zero_point", "int8"),
    ZeroPoint("zero_point", "uint8"),
    Dimensions("shape"),
    Dimensions("shape", (2, 2)),
]
each = pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda one: type(one).__name__)


@each
def test_every_bucket_is_drawn_and_nothing_else(parameter: OperatorParameter) -> None:
    rng = np.random.default_rng(1)
    drawn = [parameter.draw(rng) for _ in range(2000)]
    assert {parameter.bucket(one) for one in drawn} == set(parameter.buckets)
    assert not any(map(parameter.fault, drawn))


@each
@given(seed=st.integers(0, 2**32 - 1))
def test_simpler_settings_end_at_settings_without_simpler_ones(
    parameter: OperatorParameter, seed: int
) -> None:
    setting = parameter.draw(np.random.default_rng(seed))
    for _ in range(200):
        simpler = next(parameter.simpler(setting), None)
        if simpler is None:
            break
        assert parameter.fault(simpler) is None
        setting = simpler
    assert next(parameter.simpler(setting), None) is None


@pytest.mark.parametrize(
    ("parameter", "setting"),
    [
        (Choice("padding", ("SAME", "VALID")), "HALF"),
        (Whole("stride", 1, 4), 5),
        (Whole("stride", 1, 4), "many"),
        (ScaleParameter("scale"), 0.0),
        (ZeroPoint("zero_point", "int8"), 128),
        (Dimensions("shape", (2, 2)), (1, 2, 3)),
        (Dimensions("shape"), (1, -2)),
    ],
)
def test_a_setting_out_of_range_is_said_by_name(
    parameter: OperatorParameter, setting: str | int
) -> None:
    assert parameter.name in str(parameter.fault(setting))


def test_the_size_zero_is_rare() -> None:
    rng = np.random.default_rng(2)
    height = Whole("height", 0, 40, rare=(0,))
    zeros = sum(height.draw(rng) == 0 for _ in range(4000))
    assert 80 < zeros < 280
