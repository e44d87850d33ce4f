"""Recurrent operators: their states in files, and what a kernel may do wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from conforming import check_seen
from drafting import fresh
from edgeflare.conform.drafts.draft import DraftNode, NodeGraphs
from edgeflare.conform.drafts.model_reading import read_operators
from edgeflare.conform.graph_file import graph_file
from edgeflare.conform.graphs.graph_builder import GraphBuilder
from edgeflare.conform.operator_graph import OperatorGraph
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.operators.recurrent.bounded_reals import BoundedReals
from edgeflare.conform.specification.activation_tensors import UnknownOperatorForm
from edgeflare.conform.specification.parameter import Setting, Settings
from edgeflare.models.tflite_file import read_model
from edgeflare.models.tflite_graph import Graph
from edgeflare.models.tflite_writer import written
from public_cases import CASES

PLAIN: Settings = {
    "batch": 2,
    "steps": 4,
    "features": 5,
    "units": 6,
    "outputs": 6,
    "backward_units": 6,
    "coupled": False,
    "normalized": False,
    "projection": "none",
    "peephole": True,
    "activation": "TANH",
    "cell_clip": 0.0,
    "projection_clip": 0.0,
    "auxiliary": "none",
}


def built(operator: str, type_: str, **changes: Setting) -> OperatorGraph:
    rng = np.random.default_rng(1)
    known = known_operators()[operator]
    settings = {**fresh((operator, type_), rng), **PLAIN, **changes}
    names = {parameter.name for parameter in known.parameters(type_)}
    return known.build(type_, {name: one for name, one in settings.items() if name in names}, rng)


def swapped(graph: OperatorGraph, *pairs: tuple[int, int]) -> OperatorGraph:
    """Return a graph in which an operator reads some operands in the place of others."""
    (node,) = graph.nodes
    inputs = list(node.inputs)
    for one, other in pairs:
        inputs[one], inputs[other] = inputs[other], inputs[one]
    return replace(graph, nodes=(replace(node, inputs=tuple(inputs)),))


def without(graph: OperatorGraph, *places: int) -> OperatorGraph:
    """Return a graph in which some operands are zeros."""
    (node,), values = graph.nodes, list(graph.values)
    for at in places:
        tensor = node.inputs[at]
        values[tensor] = values[tensor].constant(np.zeros(values[tensor].shape))
    return replace(graph, values=tuple(values))


LSTM_FAULTS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "input for forget": ((1, 2), (5, 6), (9, 10), (12, 13)),
    "cell for output": ((3, 4), (7, 8), (14, 15)),
}


@pytest.mark.parametrize("type_", ["float32", "dynamic", "int8"])
@pytest.mark.parametrize("fault", LSTM_FAULTS)
def test_gates_that_are_taken_for_each_other_are_seen(type_: str, fault: str) -> None:
    peephole = type_ != "int8"
    graph = built("UNIDIRECTIONAL_SEQUENCE_LSTM", type_, peephole=peephole)
    pairs = LSTM_FAULTS[fault]
    check_seen(graph, swapped(graph, *(one for one in pairs if peephole or one[0] != 9)), type_)


def test_an_int8_lstm_that_loses_its_state_is_seen() -> None:
    graph = built("UNIDIRECTIONAL_SEQUENCE_LSTM", "int8", peephole=False)
    check_seen(graph, without(graph, 5, 6, 7, 8), "int8")


@pytest.mark.parametrize(
    ("operator", "recurrent"),
    [
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", (5, 6, 7, 8)),
        ("BIDIRECTIONAL_SEQUENCE_LSTM", (22, 23, 24, 25)),
        ("UNIDIRECTIONAL_SEQUENCE_RNN", (2,)),
        ("BIDIRECTIONAL_SEQUENCE_RNN", (6,)),
    ],
)
@pytest.mark.parametrize("type_", ["float32", "dynamic"])
def test_a_state_that_is_lost_between_steps_is_seen(
    operator: str, recurrent: tuple[int, ...], type_: str
) -> None:
    graph = built(operator, type_)
    check_seen(graph, without(graph, *recurrent), type_)


@pytest.mark.parametrize(
    ("changes", "places"),
    [
        ({}, (9, 10, 11)),
        ({"projection": "bias", "outputs": 4}, (17,)),
        ({"normalized": True}, (13,)),
    ],
)
def test_what_a_gate_sees_besides_is_not_left_out(
    changes: Mapping[str, Setting], places: tuple[int, ...]
) -> None:
    graph = built("UNIDIRECTIONAL_SEQUENCE_LSTM", "float32", **changes)
    check_seen(graph, without(graph, *places), "float32")


def test_states_are_variables_that_no_other_operator_has() -> None:
    graph = built("UNIDIRECTIONAL_SEQUENCE_LSTM", "float32")
    content = Graph(graph_file(graph))
    assert [one.variable for one in content.tensors].count(True) == 2
    assert not any(one.constant for one in content.tensors if one.variable)
    (node,) = graph.nodes
    assert graph.inputs == (node.inputs[0],)
    builder, graphs = GraphBuilder(np.random.default_rng(0), NodeGraphs()), NodeGraphs()
    settings = known_operators()[node.operator].read(graph).configuration
    for _ in range(2):
        added = DraftNode(node.operator, "float32", settings, 0, ())
        assert builder.add(added, {}, shared=True) is not None
    states = [at for at, value in enumerate(builder.values) if value.variable]
    assert len(states) == 4
    # Their weights are shared, since both are drawn alike.
    assert builder.nodes[0].inputs[1] == builder.nodes[1].inputs[1]
    assert graphs.graph(added).values is not None


def test_recurrent_operators_of_converted_models_are_read() -> None:
    reading = read_operators((CASES / "lstm_state" / "original.tflite").read_bytes())
    known = {one.operator: one.reading for one in reading.known}
    lstm = known["UNIDIRECTIONAL_SEQUENCE_LSTM"]
    assert lstm.type == "float32"
    assert (lstm.configuration["units"], lstm.configuration["cell_clip"]) == (24, 10.0)
    reading = read_operators((CASES / "lstm_state" / "compressed.tflite").read_bytes())
    assert not reading.unknown
    lstm = reading.known[0].reading
    assert (lstm.type, lstm.configuration["cell_exponent"]) == ("int8", -11)


def test_an_int8_lstm_whose_product_has_a_scale_of_its_own_is_no_form_that_is_known() -> None:
    model = read_model((CASES / "lstm_state" / "compressed.tflite").read_bytes())
    tensor = model.subgraphs[0].operators[0].intermediates[-1]
    known = model.subgraphs[0].tensors[tensor].quantization
    known.scale = known.scale * 2
    reading = read_operators(written(model))
    assert [one.reason for one in reading.unknown] == ["it has intermediate tensors"]


def test_an_lstm_that_lacks_a_gate_is_no_form_that_is_known() -> None:
    graph = built("UNIDIRECTIONAL_SEQUENCE_LSTM", "float32")
    (node,) = graph.nodes
    inputs = (*node.inputs[:5], -1, *node.inputs[6:])
    with pytest.raises(UnknownOperatorForm, match="other tensors"):
        known_operators()[node.operator].read(replace(graph, nodes=(replace(node, inputs=inputs),)))


def test_a_bound_holds_for_float32_and_is_not_much_wider() -> None:
    rng = np.random.default_rng(5)
    rows = rng.uniform(-8, 8, (50, 9)).astype(np.float32)
    matrix = rng.uniform(-1, 1, (7, 9)).astype(np.float32)
    exact = BoundedReals.exactly(rows.astype(np.float64)).times(
        matrix.astype(np.float64), rounds=False
    )
    for found, answer in (
        (exact.activated("TANH"), np.tanh(rows @ matrix.T)),
        (exact.logistic(), 1 / (1 + np.exp(-(rows @ matrix.T)))),
        (exact * exact, (rows @ matrix.T) ** 2),
    ):
        away = np.abs(answer.astype(np.float64) - found.values)
        assert (away <= found.bound).all()
        assert found.bound.max() < 1e4 * away.max() < 1
