"""A network executed part by part computes what it computes as a whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting import stepwise_execution
from edgeflare.repair.fitting.stepwise_execution import StepwiseExecution
from graph_writer import GraphWriter, write_state_model
from networks import pair_of
from tampering import COMPRESSED, constant_of, example_input, whole, with_constant

_INPUTS = np.concatenate([example_input(0), example_input(1)])


@pytest.mark.slow
def test_every_operator_reads_what_it_reads_in_the_whole() -> None:
    """The residual network's shortcuts skip over parts."""
    content = pair_of("resnet")[1]
    graph = Graph(content)
    states = [whole(graph, one[None], "builtin", content) for one in _INPUTS]
    execution = StepwiseExecution(graph, _INPUTS)
    for one in graph.layers:
        if one.name in ("ADD", "FULLY_CONNECTED"):
            execution.advance(graph, one.index)
            for tensor in graph.fed(one):
                wanted = np.stack([state[tensor] for state in states])
                assert (execution.values(tensor) == wanted).all()


def test_what_was_executed_keeps_its_constants_and_what_follows_has_the_new_ones() -> None:
    content = COMPRESSED.read_bytes()
    changed = content
    for operator in (0, 2):
        changed = with_constant(changed, constant_of(content, operator, 2), lambda bias: bias + 99)
    second_only = with_constant(content, constant_of(content, 2, 2), lambda bias: bias + 99)
    graph, both = Graph(content), Graph(changed)
    execution = StepwiseExecution(graph, _INPUTS)
    execution.advance(graph, 2)
    execution.advance(both, 8)
    (given,) = graph.fed(graph.operators[8])
    for number, one in enumerate(_INPUTS):
        state = whole(Graph(second_only), one[None], "builtin", second_only)
        assert (execution.values(given)[number] == state[given]).all()
        assert (state[given] != whole(both, one[None], "builtin", changed)[given]).any()


def test_large_tensors_lie_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph(COMPRESSED.read_bytes())
    one = next(one for one in graph.layers if one.name == "FULLY_CONNECTED")
    made = []
    for most in (10**9, 0):
        monkeypatch.setattr(stepwise_execution, "_IN_MEMORY", most)
        execution = StepwiseExecution(graph, _INPUTS)
        execution.advance(graph, one.index)
        made.append(execution.values(one.inputs[0]))
    assert isinstance(made[1], np.memmap)
    assert not isinstance(made[0], np.memmap)
    assert (made[0] == made[1]).all()


def test_tensors_that_nothing_reads_any_more_are_dropped() -> None:
    graph = Graph(COMPRESSED.read_bytes())
    execution = StepwiseExecution(graph, _INPUTS)
    execution.advance(graph, 3)
    with pytest.raises(KeyError):
        execution.values(graph.inputs[0])
    execution.advance(graph, 3)  # nothing is left to do
    assert execution.values(graph.operators[3].inputs[0]).shape == (
        2,
        *graph.tensors[graph.operators[3].inputs[0]].shape,
    )


def test_a_network_with_several_inputs_is_refused(
    tmp_path: Path, refusal: Callable[..., str]
) -> None:
    graph = Graph(write_state_model(tmp_path / "step.tflite", "INT8").read_bytes())
    assert "2 inputs" in refusal(StepwiseExecution, graph, np.zeros((1, 3), np.int8))


def test_an_input_that_the_network_cannot_take_is_named(
    tmp_path: Path, refusal: Callable[..., str]
) -> None:
    """A part that fails: here a GATHER of an element that is not there."""
    writer = GraphWriter()
    x = writer.tensor("x", (1, 1), "INT32")
    table = writer.tensor("table", (4, 2), "FLOAT32", data=np.zeros((4, 2), np.float32))
    y = writer.tensor("y", (1, 1, 2), "FLOAT32")
    writer.operator("GATHER", [table, x], [y], schema.GatherOptionsT())
    z = writer.tensor("z", (1, 1, 2), "FLOAT32")
    writer.operator("NEG", [y], [z])
    graph = Graph(writer.save(tmp_path / "gather.tflite", [x], [z]).read_bytes())
    execution = StepwiseExecution(graph, np.array([[[3]], [[7]]], np.int32))
    assert "input 1" in refusal(execution.advance, graph, 1)
