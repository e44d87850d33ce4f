"""Which variables a file has: what an inference writes and the next one reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgeflare.models.model_variables import Variable, model_variables
from graph_writer import GraphWriter
from public_cases import CASES
from state_pairs import write_variable_pair


def found(path: Path, signature: str = "") -> list[Variable]:
    return list(model_variables(path.read_bytes(), path.name, signature))


def test_states_of_fused_operators_are_variables_in_float_and_quantized_files() -> None:
    folder = CASES / "lstm_state"
    for name in ("original", "compressed", "dynamic"):
        first, second = found(folder / f"{name}.tflite")
        assert first.name != second.name
        assert {first.operator, second.operator} == {"UNIDIRECTIONAL_SEQUENCE_LSTM"}
    assert found(CASES / "gru_dynamic" / "compressed.tflite") == []


def test_a_resource_is_one_where_an_inference_writes_it(tmp_path: Path) -> None:
    pair = write_variable_pair(tmp_path / "pair", resource=True)
    # What CALL_ONCE writes at the beginning is the same resource.
    assert found(pair / "compressed.tflite") == [Variable("sum", "ASSIGN_VARIABLE", 4)]


def test_a_resource_that_is_only_read_is_a_constant(tmp_path: Path) -> None:
    graph = GraphWriter()
    handle, read = graph.tensor("handle", (), "RESOURCE"), graph.tensor("y", (1, 3), "FLOAT32")
    graph.operator("VAR_HANDLE", [], [handle], schema.VarHandleOptionsT())
    graph.operator("READ_VARIABLE", [handle], [read], schema.ReadVariableOptionsT())
    assert found(graph.save(tmp_path / "read.tflite", [], [read])) == []


def test_what_a_branch_writes_is_found_under_the_name_of_the_resource(tmp_path: Path) -> None:
    graph = GraphWriter()
    condition, x = graph.tensor("if", (), "BOOL"), graph.tensor("x", (3,), "FLOAT32")
    handle, y = graph.tensor("handle", (), "RESOURCE"), graph.tensor("y", (3,), "FLOAT32")
    named, branches = schema.VarHandleOptionsT(), schema.IfOptionsT()
    named.sharedName = "kept"
    branches.thenSubgraphIndex, branches.elseSubgraphIndex = 1, 2
    graph.operator("VAR_HANDLE", [], [handle], named)
    graph.operator("IF", [condition, handle, x], [y], branches)
    for writes in (True, False):
        graph.second()
        inner, given = graph.tensor("inner", (), "RESOURCE"), graph.tensor("v", (3,), "FLOAT32")
        if writes:
            options = schema.AssignVariableOptionsT()
            graph.operator("ASSIGN_VARIABLE", [inner, given], [], options)
        graph.first([inner, given], [given])
    path = graph.save(tmp_path / "branch.tflite", [condition, x], [y])
    assert found(path) == [Variable("kept", "ASSIGN_VARIABLE", 0)]


def test_a_signature_has_the_variables_of_its_own_graph(tmp_path: Path) -> None:
    graph = GraphWriter()
    x, y = graph.tensor("x", (1, 2), "FLOAT32"), graph.tensor("y", (1, 2), "FLOAT32")
    graph.operator("NEG", [x], [y], schema.NegOptionsT())
    graph.signature("plain", 0, {"v": x}, {"w": y})
    graph.second()
    given, made = graph.tensor("given", (1, 1, 2), "FLOAT32"), graph.tensor("m", (1, 2), "FLOAT32")
    w = graph.tensor("w", (2, 2), "FLOAT32", data=np.eye(2, dtype=np.float32))
    bias = graph.tensor("bias", (2,), "FLOAT32", data=np.zeros(2, np.float32))
    state = graph.tensor("", (1, 2), "FLOAT32")
    graph.graph.tensors[state].isVariable = True
    graph.operator("RNN", [given, w, w, bias, state], [made], schema.RNNOptionsT())
    graph.signature("recurrent", 1, {"v": given}, {"w": made})
    graph.first([given], [made])
    path = graph.save(tmp_path / "two.tflite", [x], [y])
    assert found(path) == found(path, "plain") == []
    assert found(path, "recurrent") == [Variable("tensor 4", "RNN", 0)]
