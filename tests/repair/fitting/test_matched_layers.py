"""The layers of compressed and float networks, matched on real files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.matched_layers import MatchedLayer, matched_layers
from graph_writer import GraphWriter
from networks import Kind, pair_of
from tampering import COMPRESSED, ORIGINAL, edited


def graphs(kind: Kind) -> tuple[Graph, Graph]:
    original, compressed = pair_of(kind)
    return Graph(compressed, "the compressed model"), Graph(original, "the original")


def dequantized(graph: Graph, tensor: int) -> Any:
    return graph.tensors[tensor].real(graph.values(tensor))


def half_a_step(graph: Graph, layer: MatchedLayer, axis: int) -> Any:
    along = [1, 1, 1, 1]
    along[axis] = -1
    return np.asarray(graph.tensors[cast("int", layer.weights)].scales).reshape(along) / 2


@pytest.mark.parametrize("kind", ["mobilenet", "resnet"])
def test_each_layer_has_the_weights_that_its_own_were_rounded_from(kind: Kind) -> None:
    compressed, original = graphs(kind)
    layers = matched_layers(compressed, original)
    assert [one.operator for one in layers] == [one.index for one in compressed.layers]
    convolutions = [one for one in layers if "CONV" in one.name]
    assert convolutions
    for one in convolutions:
        assert one.weights is not None
        assert one.bias is not None
        assert one.float_weights is not None
        axis = 3 if one.name == "DEPTHWISE_CONV_2D" else 0
        off = np.abs(dequantized(compressed, one.weights) - one.float_weights)
        assert (off <= half_a_step(compressed, one, axis) * 1.001).all()
        steps = np.asarray(compressed.tensors[one.bias].scales)
        assert (np.abs(dequantized(compressed, one.bias) - one.float_bias) <= steps * 0.51).all()


def test_layers_without_weights_have_the_activations_of_both_graphs() -> None:
    compressed, original = graphs("resnet")
    sums = [one for one in matched_layers(compressed, original) if one.name == "ADD"]
    assert len(sums) == 3
    for one in sums:
        assert (one.weights, one.bias, one.float_weights, one.float_bias) == (None,) * 4
        assert one.output in compressed.operators[one.operator].outputs
        names = [compressed.tensors[tensor].name for tensor in one.inputs]
        assert names == [original.tensors[tensor].name for tensor in one.original_inputs]


def test_weights_in_half_precision_are_those_that_a_dequantize_reads(tmp_path: Path) -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)

    def dense(half: bool) -> Graph:
        graph = GraphWriter()
        x, y = graph.tensor("x", (1, 4), "FLOAT32"), graph.tensor("y", (1, 3), "FLOAT32")
        weights = graph.tensor("w", (3, 4), "FLOAT32", None, None if half else values / 3)
        if half:
            stored = graph.tensor("half", (3, 4), "FLOAT16", None, (values / 3).astype(np.float16))
            graph.operator("DEQUANTIZE", [stored], [weights], schema.DequantizeOptionsT(), 2)
        graph.operator("FULLY_CONNECTED", [x, weights, -1], [y], schema.FullyConnectedOptionsT())
        return Graph(graph.save(tmp_path / "dense.tflite", [x], [y]).read_bytes())

    for compressed, original in ((True, False), (False, True), (True, True)):
        graph = dense(compressed)
        (layer,) = matched_layers(graph, dense(original))
        assert graph.tensors[cast("int", layer.weights)].constant
        assert layer.float_weights is not None
        assert np.allclose(layer.float_weights, values / 3, rtol=1e-3)
        assert layer.bias is None


def test_a_layer_without_counterpart_is_named(refusal: Callable[..., str]) -> None:
    def widen(model: Any) -> None:
        for tensor in model.subgraphs[0].tensors:
            if list(tensor.shape) == [1, 120]:
                tensor.shape = [1, 60]

    other = edited(ORIGINAL.read_bytes(), widen)
    compressed = Graph(COMPRESSED.read_bytes(), "compressed.tflite")
    message = refusal(matched_layers, compressed, Graph(other, "other.tflite"))
    assert "operator 8, FULLY_CONNECTED" in message
    assert "other.tflite" in message
