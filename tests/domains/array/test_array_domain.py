from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from edgeflare.core.input import Input
from edgeflare.core.input_view import ValuesView
from edgeflare.domains.array.array_domain import DTYPES, ArrayDomain
from edgeflare.errors import UserError

ARRAYS = st.tuples(st.sampled_from(DTYPES), array_shapes(min_dims=1, max_dims=2)).flatmap(
    lambda both: arrays(both[0], both[1])
)


@given(one=ARRAYS)
def test_a_file_keeps_an_array_to_the_bit(one: Input) -> None:
    data = ArrayDomain.encode_file(one)
    kept = ArrayDomain.decode_file(data)
    assert kept is not None
    assert (kept.dtype, kept.shape, kept.tobytes()) == (one.dtype, one.shape, one.tobytes())
    assert ArrayDomain.encode_file(one) == data


def test_a_file_is_shown_within_the_bounds_of_the_domain() -> None:
    domain = ArrayDomain("int16", -5, 9)
    view = domain.view_file(domain.encode_file(np.array([1, 2], np.int16)))
    assert isinstance(view, ValuesView)
    assert view.values.tolist() == [1, 2]
    assert (view.lowest, view.highest) == (-5, 9)


@given(cut=st.integers(0, 199))
def test_a_file_without_its_end_is_none(cut: int) -> None:
    data = ArrayDomain.encode_file(np.arange(30, dtype=np.float32))
    assert ArrayDomain.decode_file(data[:cut]) is None


def test_a_file_of_no_numbers_is_none() -> None:
    assert ArrayDomain.decode_file(ArrayDomain.encode_file(np.array(["a"]))) is None
    assert ArrayDomain.decode_file(b"no archive") is None


@pytest.mark.parametrize(
    ("settings", "lowest", "highest", "level"),
    [
        ({}, -inf, inf, 1.0),
        ({"lowest": -1.0, "highest": 1.0}, -1.0, 1.0, 2 / 255),
        ({"lowest": 0.0}, 0.0, inf, 1.0),
        ({"dtype": "int8"}, -128, 127, 1.0),
        ({"dtype": "int16", "lowest": 0, "highest": 510}, 0, 510, 2.0),
        ({"lowest": -1.0, "highest": 1.0, "level": 0.5}, -1.0, 1.0, 0.5),
    ],
)
def test_bounds_and_level_have_defaults(
    settings: dict[str, Any], lowest: float, highest: float, level: float
) -> None:
    space = ArrayDomain(**settings).space
    assert (space.lowest, space.highest) == (lowest, highest)
    assert space.level == pytest.approx(level)
    assert space.dtype == settings.get("dtype", "float32")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"dtype": "float64"}, "dtype has to be one of float32, int8, .*, not 'float64'"),
        ({"lowest": 1.0, "highest": 1.0}, "lower bound has to be below the upper one, not 1 and 1"),
        ({"lowest": nan}, "lower bound has to be below the upper one, not nan"),
        ({"dtype": "uint8", "highest": 300}, "beyond what uint8 holds, 0 to 255"),
        ({"dtype": "uint8", "highest": 0.5}, "whole numbers, not 0 and 0.5"),
        ({"level": 0.0}, "level has to be a finite number above 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint) as caught:
        ArrayDomain(**settings)
    assert "\n" not in str(caught.value)


@given(one=arrays("int16", (4, 3), elements=st.integers(-200, 300)))
def test_the_space_keeps_integers_within_the_bounds(one: Input) -> None:
    space = ArrayDomain("int16", -100, 200).space
    inside = space.nearest(space.levels(one))
    assert inside.dtype == np.int16
    assert np.array_equal(inside, np.clip(one, -100, 200))
    assert space.cells(one.shape) == (4,)


def test_near_duplicates_differ_by_levels() -> None:
    domain = ArrayDomain(lowest=0.0, highest=255.0)
    rng = np.random.default_rng(0)
    others = [rng.uniform(0, 255, (20, 3)).astype(np.float32) for _ in range(4)]
    near = others[0] + rng.uniform(-1, 1, (20, 3)).astype(np.float32)
    prints = [domain.fingerprint(one) for one in others]
    assert domain.count_near(prints) == 0
    assert domain.count_near([*prints, domain.fingerprint(near)]) == 2
    assert domain.count_near([]) == 0
