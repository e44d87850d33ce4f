"""DARE: weights of slices alone, tuned towards the original's layer before the last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

pytest.importorskip("jax", reason="needs the extra whitebox")

from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.fake_quantization import FakeQuantizedNetwork
from edgeflare.repair.fitting.gradient_descent import Tuning
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.post_training import dare
from edgeflare.repair.post_training.dare import fit_dare
from edgeflare.repair.post_training.layer_regression import Oracle, tuned
from edgeflare.repair.post_training.network_slice import group_slices, network_slice
from fitted_networks import judged, require_progress, structure, untold
from graph_writer import GraphWriter

pytestmark = [pytest.mark.whitebox, pytest.mark.slow]


def layer_error(content: bytes) -> float:
    """Of the layer before the last on images that are not fitted to, by the original's."""
    example = judged("example")
    values = []
    for graph, rows in (
        (Graph(content), example.rows),
        (example.network.original_graph, example.original_rows),
    ):
        layer = [one for one in graph.layers if one.name == "FULLY_CONNECTED"][-2]
        values += FakeQuantizedNetwork(graph, layer.outputs).evaluate(rows)
    return float(np.square(values[0] - values[1]).mean())


def test_the_layer_comes_nearer_to_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dare, "_TUNING", Tuning(steps=200, rate=0.1))
    network = judged("example").network
    damaged = replace(network, content=_with_damage(network.content))
    told: list[tuple[int, int]] = []
    rng = np.random.default_rng(0)
    made = fit_dare(damaged, 50.0, rng, lambda done, of: told.append((done, of)))
    assert structure(made) == structure(network.content)
    assert len(made) == len(network.content)
    assert layer_error(made) < 0.7 * layer_error(damaged.content)
    require_progress(told)


def _with_damage(content: bytes) -> bytes:
    """The weights of the second convolution, each off by up to 12 steps."""
    graph = Graph(content)
    network = FakeQuantizedNetwork(graph, graph.outputs)
    weights = dict(network.parameters.weights)
    tensor = [one for one in graph.layers if one.name == "CONV_2D"][1].inputs[1]
    drawn = np.random.default_rng(1).uniform(-12, 12, weights[tensor].shape)
    weights[tensor] = weights[tensor] + drawn
    return network.written(content, network.parameters._replace(weights=weights))


def test_a_network_of_two_inputs_is_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dare, "_TUNING", Tuning(steps=60, rate=1.0))
    content, original = (_of_two_inputs(factor) for factor in (1.0, 1.2))
    rows = np.random.default_rng(3).normal(size=(80, 5)).astype(np.float32)
    network = QuantizedNetwork(content, original, rows, rows)
    made = fit_dare(network, 100.0, np.random.default_rng(0), untold)
    layers = (Graph(each).layers[1].outputs for each in (original, content, made))
    (wanted,), *sides = (
        FakeQuantizedNetwork(Graph(each), layer).evaluate(rows)
        for each, layer in zip((original, content, made), layers, strict=True)
    )
    errors = [float(np.square(values - wanted).mean()) for (values,) in sides]
    assert errors[1] < 0.5 * errors[0]


def _of_two_inputs(factor: float) -> bytes:
    """A network that joins two inputs, (1, 3) and (1, 2), before two layers."""
    rng, writer = np.random.default_rng(2), GraphWriter()
    given = [writer.tensor(name, (1, size), "FLOAT32") for name, size in (("a", 3), ("b", 2))]
    last = writer.tensor("joined", (1, 5), "FLOAT32")
    joining = schema.ConcatenationOptionsT()
    joining.axis = 1
    writer.operator("CONCATENATION", given, [last], joining)
    for name, shape in (("hidden", (4, 5)), ("scores", (2, 4))):
        weights = factor * rng.normal(size=shape).astype(np.float32)
        read = [last, writer.constant(f"{name}/weights", weights.astype(np.float32))]
        last = writer.tensor(name, (1, shape[0]), "FLOAT32")
        writer.operator("FULLY_CONNECTED", read, [last], schema.FullyConnectedOptionsT())
    return writer.content(given, [last])


def test_a_network_of_one_layer_is_refused() -> None:
    writer = GraphWriter()
    rows = np.ones((4, 3), np.float32)
    given = writer.tensor("given", (1, 3), "FLOAT32")
    inputs = [given, writer.constant("weights", np.ones((2, 3), np.float32))]
    made = writer.tensor("made", (1, 2), "FLOAT32")
    writer.operator("FULLY_CONNECTED", inputs, [made], schema.FullyConnectedOptionsT())
    content = writer.content([given], [made])
    network = replace(
        judged("example").network,
        content=content,
        original=content,
        rows=rows,
        original_rows=rows,
    )
    with pytest.raises(UserError, match="no layer before the last has weights"):
        fit_dare(network, None, np.random.default_rng(0), untold)


def moving(*, flat: bool) -> Graph:
    """A convolution of 4 channels on 3 × 4 places, moved to channels first before the last layer.

    Args:
        flat: whether the last layer reads all values, instead of the rows of 4 places alone.

    """
    writer = GraphWriter()
    given = writer.tensor("given", (1, 3, 4, 2), "FLOAT32")
    weights = writer.constant("weights", np.ones((4, 1, 1, 2), np.float32))
    bias = writer.constant("bias", np.zeros(4, np.float32))
    made = writer.tensor("made", (1, 3, 4, 4), "FLOAT32")
    options = schema.Conv2DOptionsT(strideW=1, strideH=1, dilationWFactor=1, dilationHFactor=1)
    writer.operator("CONV_2D", [given, weights, bias], [made], options)
    order = writer.constant("order", np.array([0, 3, 1, 2], np.int32))
    moved = writer.tensor("moved", (1, 4, 3, 4), "FLOAT32")
    writer.operator("TRANSPOSE", [made, order], [moved], schema.TransposeOptionsT())
    count = 48 if flat else 4
    rows = writer.tensor("rows", (48 // count, count), "FLOAT32")
    shape = writer.constant("shape", np.array([48 // count, count], np.int32))
    writer.operator("RESHAPE", [moved, shape], [rows], schema.ReshapeOptionsT())
    last = np.zeros((2, count), np.float32)
    last[0, 24:36] = last[0, :1] = 1  # all places of the third channel, and one of the first
    scores = writer.tensor("scores", (48 // count, 2), "FLOAT32")
    inputs = [rows, writer.constant("last", last)]
    writer.operator("FULLY_CONNECTED", inputs, [scores], schema.FullyConnectedOptionsT())
    return Graph(writer.content([given], [scores]))


def test_channels_that_are_moved_before_the_last_layer_are_followed() -> None:
    graph = moving(flat=True)
    rows = np.random.default_rng(0).normal(size=(20, 3, 4, 2)).astype(np.float32)
    scores, given = graph.outputs[0], np.eye(2)[np.zeros(20, int)]
    found = group_slices(graph, rows, np.zeros(20, np.int64), (scores, given), 0.25)[0]
    assert found.neurons[graph.operators[0].outputs[0]].tolist() == [False, False, True, False]


def test_a_layer_whose_channels_cannot_be_followed_is_refused() -> None:
    graph = moving(flat=False)
    rows, groups = np.ones((4, 3, 4, 2), np.float32), np.zeros(4, np.int64)
    scores, layer = graph.outputs[0], graph.operators[0].outputs[0]
    slices = group_slices(graph, rows, groups, (scores, np.eye(2)[groups]), 0.5)
    network = FakeQuantizedNetwork(graph, (layer,))
    oracle = Oracle(rows, np.zeros((4, 1, 3, 4, 4), np.float32), groups)
    with pytest.raises(UserError, match=r"tensor 'made' of CONV_2D .* cannot be followed"):
        tuned(network, oracle, slices, Tuning(1, 0.1), np.random.default_rng(0), untold)


def test_a_factor_of_one_channel_gets_what_all_channels_contribute() -> None:
    """By hand: the first channel contributes on both rows, and so does the first input."""
    writer = GraphWriter()
    names = {"given": (1, 2), "one": (1, 1), "made": (1, 2)}
    given, one, made = (writer.tensor(name, shape, "FLOAT32") for name, shape in names.items())
    weights = writer.constant("weights", np.ones((1, 2), np.float32))
    writer.operator("FULLY_CONNECTED", [given, weights], [one], schema.FullyConnectedOptionsT())
    writer.operator("MUL", [given, one], [made], schema.MulOptionsT())
    graph = Graph(writer.content([given], [made]))
    reactions = np.array([[1.0, -2.0], [1.0, 3.0]])
    neurons = {given: reactions, one: reactions.sum(axis=1, keepdims=True), made: reactions**2}
    criterion = np.array([[1.0, 0.0], [1.0, 0.0]])
    found = network_slice(graph, graph.operators, neurons, (made, criterion), 0.5)
    assert found.neurons[one].tolist() == [True]
    assert found.synapses[weights].tolist() == [[True, False]]


def chain() -> tuple[Graph, int, int, int]:
    """Two inputs, two hidden neurons and two outputs; each hidden one feeds one output."""
    writer = GraphWriter()
    given, hidden, made = (
        writer.tensor(name, (1, 2), "FLOAT32") for name in ("given", "hidden", "made")
    )
    first = writer.constant("first", np.array([[1, -1], [1, 1]], np.float32))
    second = writer.constant("second", np.array([[1, 0], [0, 1]], np.float32))
    writer.operator("FULLY_CONNECTED", [given, first], [hidden], schema.FullyConnectedOptionsT())
    writer.operator("FULLY_CONNECTED", [hidden, second], [made], schema.FullyConnectedOptionsT())
    return Graph(writer.content([given], [made])), first, second, made


def sliced(share: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    graph, first, second, made = chain()
    given, hidden = graph.inputs[0], graph.operators[0].outputs[0]
    reactions = np.array([[1.0, -2.0], [1.0, 3.0]])  # of the inputs, of two rows
    neurons = {
        given: reactions,
        hidden: reactions @ graph.values(first).T,
        made: reactions @ graph.values(first).T,
    }
    criterion = np.array([[1.0, 0.0], [1.0, 0.0]])  # the first output
    found = network_slice(graph, graph.operators, neurons, (made, criterion), share)
    return found.synapses[first], found.synapses[second]


def test_the_synapses_are_kept_that_feed_the_criterion() -> None:
    """By hand: of both rows the first hidden neuron contributes, and by the second input most."""
    first, second = sliced(0.25)
    assert first.tolist() == [[False, True], [False, False]]
    assert second.tolist() == [[True, False], [False, False]]


def test_a_share_of_1_keeps_all() -> None:
    assert all(kept.all() for kept in sliced(1.0))
