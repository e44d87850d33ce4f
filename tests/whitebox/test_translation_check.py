from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax", reason="needs the extra whitebox")

from edgeflare.errors import UserError
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.tflite_graph import Graph
from edgeflare.whitebox.differentiable_network import DifferentiableNetwork
from edgeflare.whitebox.translation_check import excess, require_equal

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.whitebox, pytest.mark.slow]

COMPRESSED = ROOT / "examples" / "fashion_lenet4" / "compressed.tflite"


def rows() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return list(rng.integers(-128, 128, (3, 1, 28, 28, 1)).astype(np.int8))


def test_the_shipped_model_passes() -> None:
    content = COMPRESSED.read_bytes()
    require_equal(DifferentiableNetwork(Graph(content)), content, "xnnpack", rows())


def test_another_model_is_refused_with_the_layer_where_it_begins() -> None:
    """The runtime is given other weights in the second convolution than the translation has."""
    content = COMPRESSED.read_bytes()
    graph = Graph(content)
    second = [one for one in graph.layers if one.name == "CONV_2D"][1]
    edit = InPlaceEdit(content)
    weights = graph.values(second.inputs[1])
    edit.set_values(second.inputs[1], np.ascontiguousarray(-np.maximum(weights, -127)))
    with pytest.raises(UserError, match=f"operator {second.index}, CONV_2D"):
        require_equal(DifferentiableNetwork(graph), edit.content(), "xnnpack", rows())


def test_one_unit_is_allowed_and_a_ten_thousandth() -> None:
    graph = Graph(COMPRESSED.read_bytes())
    quantized = graph.tensors[graph.outputs[0]]
    zeros = np.zeros(quantized.shape, np.int8)
    assert excess(quantized, zeros + 1, zeros) == 1.0
    assert excess(quantized, zeros + 2, zeros) == 2.0
    original = Graph((COMPRESSED.parent / "original.tflite").read_bytes())
    real = original.tensors[original.outputs[0]]
    assert excess(real, zeros + 1e-4, zeros.astype(np.float32)) == pytest.approx(1.0)
    assert excess(real, zeros + np.nan, zeros.astype(np.float32)) == np.inf
