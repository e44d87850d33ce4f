"""The float network of an ONNX original, by the example's LeNet with its channels first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgeflare.errors import UserError
from edgeflare.models.in_process import open_onnx
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.onnx_network import network_rows, onnx_network
from edgeflare.repair.fitting.quantized_network import matched_layers
from onnx_models import linear_weights, write_layer_onnx, write_lenet_onnx, write_linear_onnx
from operator_chain import ChainStep, write_tflite

EXAMPLE = Path(__file__).parents[3] / "examples" / "fashion_lenet4"
ORIGINAL, COMPRESSED = (
    (EXAMPLE / name).read_bytes() for name in ("original.tflite", "compressed.tflite")
)
ROWS = np.load(EXAMPLE / "seeds.npz")["images"][:4].reshape(4, 1, 28, 28).astype(np.float32) / 255


@pytest.fixture(params=[False, True], ids=["folded", "normalized"])
def lenet(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write_lenet_onnx(tmp_path / "lenet.onnx", ORIGINAL, normalized=request.param)


def test_it_has_the_weights_and_computes_the_outputs_of_the_onnx_model(lenet: Path) -> None:
    network = onnx_network(COMPRESSED, lenet)
    pairs = zip(
        matched_layers(Graph(COMPRESSED), Graph(network)),
        matched_layers(Graph(COMPRESSED), Graph(ORIGINAL)),
        strict=True,
    )
    for mine, theirs in pairs:
        if theirs.float_weights is not None:
            assert mine.float_weights == pytest.approx(theirs.float_weights, abs=1e-6)
            assert mine.float_bias == pytest.approx(theirs.float_bias, abs=1e-6)
    model = open_onnx(lenet)
    outputs = model.submit(ROWS).result().outputs
    model.close()
    rows = network_rows(lenet, network, ROWS, outputs)
    assert np.array_equal(rows[..., 0], ROWS[:, 0])
    for other in (outputs[::-1], np.full_like(outputs, np.nan)):
        with pytest.raises(UserError, match="computes something else"):
            network_rows(lenet, network, ROWS, other)


def test_a_layer_without_a_counterpart_is_named(tmp_path: Path) -> None:
    other = write_linear_onnx(tmp_path / "linear.onnx", linear_weights())
    with pytest.raises(UserError, match=r"no weights like those of operator 0, CONV_2D 'sequ"):
        onnx_network(COMPRESSED, other)
    other.write_bytes(b"\x08\x99not a model")
    with pytest.raises(UserError, match="cannot be read as an ONNX model"):
        onnx_network(COMPRESSED, other)


@pytest.mark.parametrize("outputs", [1, 5])
@pytest.mark.parametrize("flattened", [True, False])
def test_layers_that_read_a_picture_whole_or_place_by_place(
    tmp_path: Path, outputs: int, flattened: bool
) -> None:
    shape = (outputs, 2, 2, 3) if flattened else (outputs, 3)
    weights = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    channels_first = weights.transpose(0, 3, 1, 2) if flattened else weights
    rows, made = weights.reshape(outputs, -1), (1, outputs) if flattened else (1, 2, 2, outputs)
    step = ChainStep(
        "score", "FULLY_CONNECTED", ("image",), made, rows, np.zeros(outputs, np.float32)
    )
    content = write_tflite([step], (1, 2, 2, 3))
    path = write_layer_onnx(tmp_path / "layer.onnx", channels_first.reshape(outputs, -1).T)
    network = Graph(onnx_network(content, path))
    np.testing.assert_array_equal(network.values(network.layers[0].inputs[1]), rows)
