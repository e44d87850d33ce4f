"""How inputs are shown where a domain does not say it."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.core.input_space import InputSpace
from edgeflare.core.input_view import CurvesView, ValuesView, view_by_shape

SPACE = InputSpace("float32", -2.0, 3.0, cell_axes=1)


@pytest.mark.parametrize("shape", [(4,), (), (1,)])
def test_a_single_axis_is_values(shape: tuple[int, ...]) -> None:
    one = np.full(shape, 1.5, np.float32)
    view = view_by_shape(one, SPACE)
    assert isinstance(view, ValuesView)
    assert view.values.tolist() == one.ravel().tolist()
    assert (view.lowest, view.highest) == (-2.0, 3.0)


@pytest.mark.parametrize(
    ("shape", "curves"), [((5, 2), (5, 2)), ((5, 2, 3), (5, 6)), ((0, 2), (0, 2))]
)
def test_several_axes_are_curves_along_the_first(
    shape: tuple[int, ...], curves: tuple[int, ...]
) -> None:
    one = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    view = view_by_shape(one, SPACE)
    assert isinstance(view, CurvesView)
    assert view.values.shape == curves
    assert view.values.ravel().tolist() == one.ravel().tolist()
