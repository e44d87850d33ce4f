"""Which tensors have to be quantized alike, in real files and in small graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgeflare.diagnose.tied_tensors import tied_tensors
from edgeflare.models.tflite_graph import Graph
from fitted_networks import NETS, Net, judged
from graph_writer import GraphWriter, write_state_model
from tampering import COMPRESSED


def test_pools_and_reshapes_tie_and_the_rest_does_not() -> None:
    found = tied_tensors(Graph(COMPRESSED.read_bytes()))
    assert [one.tensors for one in found] == [(12, 13), (14, 15, 19), (20,), (21,)]
    assert [one.sources for one in found] == [(12,), (14,), (20,), (21,)]


@pytest.mark.parametrize("net", NETS)
def test_tied_tensors_are_quantized_alike_in_files_of_converters(net: Net) -> None:
    graph = judged(net).network.graph
    groups = tied_tensors(graph)
    assert groups
    for group in groups:
        assert len({graph.tensors[one].scales for one in group.tensors}) == 1
    every = [one for group in groups for one in group.tensors]
    assert len(every) == len(set(every))
    assert not {*graph.inputs, *graph.outputs} & set(every)


@pytest.mark.parametrize(("name", "movable"), [("ADD", True), ("MAXIMUM", False), ("CEIL", False)])
def test_what_is_tied_to_a_constant_or_not_known_stays(
    name: str, movable: bool, tmp_path: Path
) -> None:
    graph = GraphWriter()
    x, first, second, y = (
        graph.tensor(one, (1, 4), "INT8", (0.1, 0)) for one in ("x", "first", "second", "y")
    )
    constant = graph.tensor("c", (1, 4), "INT8", (0.1, 0), np.ones((1, 4), np.int8))
    graph.operator("ADD", [x, x], [first], schema.AddOptionsT(), 2)
    inputs = [first] if name == "CEIL" else [first, constant]
    graph.operator(name, inputs, [second])
    graph.operator("ADD", [second, second], [y], schema.AddOptionsT(), 2)
    content = graph.save(tmp_path / "model.tflite", [x], [y]).read_bytes()
    found = {one for group in tied_tensors(Graph(content)) for one in group.tensors}
    assert found == ({first, second} if movable else set())


def test_states_stay(tmp_path: Path) -> None:
    content = write_state_model(tmp_path / "state.tflite", "INT8").read_bytes()
    assert tied_tensors(Graph(content)) == ()
