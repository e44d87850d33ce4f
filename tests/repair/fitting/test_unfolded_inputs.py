"""Rows and weights multiply to what the runtime's operators put out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.unfolded_inputs import (
    grouped_weights,
    unfolded_inputs,
    ungrouped_weights,
)
from graph_writer import GraphWriter
from tampering import COMPRESSED, run, whole

_INPUTS = 2


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("operators") / "operator.tflite"


@settings(max_examples=30)
@given(st.data())
def test_a_convolution_is_a_product(path: Path, data: st.DataObject) -> None:
    groups = data.draw(st.integers(1, 3), "groups")
    of_group = data.draw(st.integers(1, 2), "input channels of a group")
    outputs = groups * data.draw(st.integers(1, 2), "output channels of a group")
    height, width, options, spans = _geometry(data, schema.Conv2DOptionsT())
    shape = (outputs, *spans, of_group)
    _check(path, "CONV_2D", (1, height, width, groups * of_group), shape, options, outputs)


@settings(max_examples=30)
@given(st.data())
def test_a_depthwise_convolution_is_a_product_for_each_channel(
    path: Path, data: st.DataObject
) -> None:
    channels, multiplier = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    height, width, options, spans = _geometry(data, schema.DepthwiseConv2DOptionsT())
    options.depthMultiplier = multiplier
    outputs = channels * multiplier
    shape = (1, *spans, outputs)
    _check(path, "DEPTHWISE_CONV_2D", (1, height, width, channels), shape, options, outputs)


@settings(max_examples=20)
@given(given_=st.sampled_from([(1, 6), (3, 6), (1, 2, 3), (2, 3, 6)]), outputs=st.integers(1, 4))
def test_a_dense_layer_is_a_product(path: Path, given_: tuple[int, ...], outputs: int) -> None:
    options = schema.FullyConnectedOptionsT()
    _check(path, "FULLY_CONNECTED", given_, (outputs, 6), options, outputs)


@pytest.mark.parametrize("operator", [0, 2, 8, 9])
def test_real_values_of_the_int8_example_give_its_layers(operator: int) -> None:
    """Zeros pad what a layer reads, also where its zero point is another number."""
    content = COMPRESSED.read_bytes()
    graph = Graph(content)
    rng = np.random.default_rng(1)
    seen = graph.tensors[graph.inputs[0]]
    state = whole(graph, rng.integers(-128, 128, seen.shape).astype(np.int8), "builtin", content)
    one = graph.operators[operator]
    fed, weights, bias = (graph.tensors[tensor] for tensor in one.inputs)
    rows = unfolded_inputs(graph, operator, fed.real(state[fed.index])[None])
    real = grouped_weights(graph, operator, weights.real(graph.values(weights.index)))
    computed = rows[0] @ real[0].T + bias.real(graph.values(bias.index))
    output = graph.tensors[one.outputs[0]]
    got = output.real(state[output.index]).reshape(computed.shape)
    (scale,), (zero_point,) = output.scales, output.zero_points
    low, high = (-128 - zero_point) * scale, (127 - zero_point) * scale
    low = max(low, 0.0) if graph.options(operator)["fusedActivationFunction"] else low
    assert np.abs(np.clip(computed, low, high) - got).max() <= 0.501 * scale


def _geometry(data: st.DataObject, options: Any) -> tuple[int, int, Any, tuple[int, int]]:
    height, width = (data.draw(st.integers(4, 8), "size") for _ in range(2))
    spans = data.draw(st.integers(1, 3), "rows"), data.draw(st.integers(1, 3), "columns")
    options.padding = data.draw(st.sampled_from([schema.Padding.SAME, schema.Padding.VALID]))
    # Kernels for dilated convolutions know no strides beside them.
    dilated = data.draw(st.booleans(), "dilated")
    other = [data.draw(st.integers(1, 3), "stride or dilation") for _ in range(2)]
    if dilated:
        other = [min(size, 3 if span < 3 else 1) for size, span in zip(other, spans, strict=True)]
    options.strideH, options.strideW = (1, 1) if dilated else other
    options.dilationHFactor, options.dilationWFactor = other if dilated else (1, 1)
    return height, width, options, spans


def _check(
    path: Path,
    name: str,
    given_: tuple[int, ...],
    shape: tuple[int, ...],
    options: Any,
    outputs: int,
) -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=shape).astype(np.float32)
    values = rng.normal(size=(_INPUTS, *given_)).astype(np.float32)
    writer = GraphWriter()
    x = writer.tensor("x", given_, "FLOAT32")
    w = writer.tensor("w", shape, "FLOAT32", data=weights)
    b = writer.tensor("b", (outputs,), "FLOAT32", data=np.zeros(outputs, np.float32))
    # The runtime gives the output its shape.
    y = writer.tensor("y", (1, *(1,) * (len(shape) - 2), outputs), "FLOAT32")
    writer.operator(name, [x, w, b], [y], options)
    content = writer.save(path, [x], [y]).read_bytes()
    graph = Graph(content)
    wanted = [run(content, [one], "builtin")[0].reshape(-1, outputs) for one in values]
    rows = unfolded_inputs(graph, 0, values)
    grouped = grouped_weights(graph, 0, weights)
    computed = np.matmul(rows, grouped.transpose(0, 2, 1)).transpose(1, 0, 2)
    np.testing.assert_allclose(
        computed.reshape(-1, outputs), np.concatenate(wanted), rtol=1e-4, atol=1e-5
    )
    assert (ungrouped_weights(graph, 0, grouped) == weights).all()
