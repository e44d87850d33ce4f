"""What the benchmark of calibration sets changes in a model: tests/support/calibration.py."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration import recalibrated
from edgeflare.core.tensor import dequantize
from edgeflare.domains.image.preprocess import ImageEncoder, preset
from edgeflare.models.tflite import open_tflite
from edgeflare.models.tflite_graph import Graph
from example_compressions import EXAMPLE

COMPRESSED = EXAMPLE / "compressed.tflite"


def encoded(count: int) -> NDArray[np.generic]:
    with np.load(EXAMPLE / "seeds.npz") as arrays, closing(open_tflite(COMPRESSED)) as model:
        return ImageEncoder(preset("unit"), model.signature.input).encode(arrays["images"][:count])


def answers(path: Path, inputs: NDArray[np.generic]) -> NDArray[np.float64]:
    with closing(open_tflite(path)) as model:
        return dequantize(model.submit(inputs).result().outputs, model.signature.output)


@pytest.mark.slow
def test_a_model_calibrated_anew_answers_nearly_the_same_with_narrower_scales(
    tmp_path: Path,
) -> None:
    content, inputs = COMPRESSED.read_bytes(), encoded(60)
    path = tmp_path / "anew.tflite"
    path.write_bytes(recalibrated(content, inputs[:3]))
    before, after = answers(COMPRESSED, inputs), answers(path, inputs)
    assert (before.argmax(1) == after.argmax(1)).mean() > 0.9
    assert np.abs(before - after).mean() < 0.02
    assert (before != after).any()
    old, new = Graph(content), Graph(path.read_bytes())
    narrower = [
        now.scales[0] / then.scales[0]
        for then, now in zip(old.tensors, new.tensors, strict=True)
        if then.dtype == "int8" and not then.constant
    ]
    assert max(narrower) < 1.01
    assert min(narrower) < 0.9
    # What goes into the model and what comes out of it is read as before.
    for tensor in (*old.inputs, *old.outputs):
        assert new.tensors[tensor].scales == old.tensors[tensor].scales
