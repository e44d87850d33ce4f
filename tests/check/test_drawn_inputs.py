"""A compressed model alone: inputs that are drawn for it, and what a device makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.check.drawn_inputs import drawn_inputs
from edgeflare.core.tensor import Tensor
from edgeflare.models.tflite_graph import Graph
from public_cases import CASES

PICTURE = Tensor("picture", (1, 16, 16, 3), "int8", 0.1, -3)


def test_whole_numbers_with_a_scale_reach_over_all_of_their_type() -> None:
    (drawn,) = drawn_inputs(None, [PICTURE], 20)
    assert drawn.shape == (20, 1, 16, 16, 3)
    assert drawn.dtype == np.int8
    assert drawn.min() == -128
    assert drawn.max() == 127
    (again,) = drawn_inputs(None, [PICTURE], 20)
    assert np.array_equal(drawn, again)


def test_every_second_picture_is_smooth() -> None:
    (drawn,) = drawn_inputs(None, [PICTURE], 20)
    rough = np.abs(np.diff(drawn.astype(float), axis=2)).mean(axis=(1, 2, 3, 4))
    assert rough[::2].max() < 0.5 * rough[1::2].min()


@pytest.mark.parametrize(
    ("tensor", "low", "high"),
    [
        (Tensor("tokens", (1, 8), "int32"), 0, 100),
        (Tensor("flags", (1, 8), "bool"), 0, 1),
        (Tensor("values", (1, 8), "float32"), -1, 1),
    ],
)
def test_other_inputs_are_drawn_by_their_type(tensor: Tensor, low: float, high: float) -> None:
    (drawn,) = drawn_inputs(None, [tensor], 50)
    assert drawn.dtype == tensor.dtype
    assert low <= drawn.min() < drawn.max() <= high


def test_floats_are_drawn_within_what_the_graph_quantizes_them_to() -> None:
    graph = Graph((CASES / "odd_inputs/argmax_inside/compressed.tflite").read_bytes())
    known = graph.tensors[graph.inputs[0]]
    assert known.dtype == "float32"
    (drawn,) = drawn_inputs(graph, [Tensor(known.name, known.shape, known.dtype)], 20)
    assert drawn.min() == pytest.approx(0.0, abs=0.01)
    assert drawn.max() == pytest.approx(1.0, abs=0.01)
