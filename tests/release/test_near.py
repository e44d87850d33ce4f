"""A compression of an original that is made on the spot."""

from __future__ import annotations

import numpy as np
import pytest

from called_commands import EXAMPLES
from edgeflare.errors import UserError
from edgeflare.models.model_probe import HostProbe
from edgeflare.models.tflite_graph import Graph
from edgeflare.release.near import reference_int8
from public_cases import CASES

EXAMPLE = EXAMPLES / "fashion_lenet4"


def test_a_float_model_becomes_one_of_8_bits() -> None:
    original = (EXAMPLE / "original.tflite").read_bytes()
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        rows = (arrays["images"][:20] / 255).astype(np.float32)
    made = reference_int8(original, rows)
    assert len(made) < 0.5 * len(original)
    weights = [one.dtype for one in Graph(made).tensors if one.constant and len(one.shape) == 4]
    assert set(weights) == {"int8"}
    decided = []
    for content in (original, made):
        tensor = Graph(content).tensors[Graph(content).inputs[0]]
        real = rows[0].reshape(tensor.shape).astype(np.float64)
        given = tensor.raw(real) if tensor.scales else rows[0].reshape(tensor.shape)
        decided.append(HostProbe(content, "xnnpack").run([given])[0].argmax())
    assert decided[0] == decided[1]


def test_other_originals_are_not_quantized() -> None:
    content = (CASES / "label_order" / "compressed.tflite").read_bytes()
    with pytest.raises(UserError, match="one input of float32"):
        reference_int8(content, np.zeros((2, 16, 16, 1), np.int8))
