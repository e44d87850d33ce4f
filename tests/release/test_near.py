"""A compression of an original that is made on the spot."""

from __future__ import annotations

import sys
from unittest.mock import MagicMock

import numpy as np
import pytest

from called_commands import EXAMPLES
from edgeflare.errors import UserError
from edgeflare.models.model_probe import HostProbe
from edgeflare.models.pair import load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.models.tflite_graph import Graph
from edgeflare.release.near import reference_int8, require_quantizable
from edgeflare.release.phases.measurement_phases import search_near
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
    content = CASES / "label_order" / "compressed.tflite"
    pair = load_pair(content.parent, Settings(original=str(content)))
    with pytest.raises(UserError, match="one input of float32"):
        require_quantizable(pair)


def test_a_search_that_cannot_be_made_is_not_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litert_quantizer", None)
    record, opened = MagicMock(), MagicMock(pair=load_pair(EXAMPLE))
    record.figures.near = None
    search_near(record, opened)
    record.begin.assert_not_called()
    name, why = record.refuse.call_args.args
    assert name == "near"
    assert "pip install 'edgeflare[repair]'" in why
