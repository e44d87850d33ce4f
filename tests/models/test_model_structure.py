"""Models whose parts lead nowhere, in circles, or to more than there is are refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgeflare.conform.drafts.model_reading import read_operators
from edgeflare.errors import UserError
from edgeflare.models.model_structure import options_class
from edgeflare.models.model_variables import model_variables
from edgeflare.models.tflite import open_tflite
from edgeflare.models.tflite_file import read_model
from edgeflare.models.tflite_graph import Graph
from mutated_binaries import tflite_objects
from tampering import COMPRESSED

CONTENT = COMPRESSED.read_bytes()
SPARSE = Path(__file__).parents[1] / "cases" / "sparse_densify" / "compressed.tflite"

Edit = Callable[[Any, Any], object]
"""What changes a model and its first graph."""


def edited(edit: Edit, content: bytes = CONTENT) -> bytes:
    model = schema.ModelT.InitFromPackedBuf(content)
    edit(model, model.subgraphs[0])
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def having(at: int, key: str, value: Any) -> Edit:
    """Change a field of an operator."""
    return lambda _, graph: setattr(graph.operators[at], key, value)


def of_tensor(key: str, value: Any) -> Edit:
    return lambda _, graph: setattr(graph.tensors[0], key, value)


def turned(_: Any, graph: Any) -> None:
    graph.operators.reverse()


def read_by_itself(_: Any, graph: Any) -> None:
    one = graph.operators[-1]
    one.inputs = [int(one.outputs[0]), *one.inputs[1:]]


def scaled_unevenly(_: Any, graph: Any) -> None:
    quantized = next(one for one in graph.tensors if one.quantization is not None)
    quantized.quantization.scale = np.ones(777, np.float32)


def with_other_options(_: Any, graph: Any) -> None:
    graph.operators[0].builtinOptions = schema.AddOptionsT()
    graph.operators[0].builtinOptionsType = schema.BuiltinOptions.AddOptions


def with_short_constant(model: Any, graph: Any) -> None:
    for tensor in graph.tensors:
        if model.buffers[tensor.buffer].data is not None:
            model.buffers[tensor.buffer].data = np.zeros(5, np.uint8)


def with_signature(model: Any, _: Any) -> None:
    one = schema.SignatureDefT()
    one.signatureKey, one.inputs, one.outputs, one.subgraphIndex = b"x", [], [], 7
    model.signatureDefs = [one]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda model, _: setattr(model, "subgraphs", None), "it has no graph"),
        (lambda model, _: setattr(model, "operatorCodes", None), "none of its table"),
        (lambda _, graph: setattr(graph, "outputs", [999]), "names number 999 of"),
        (having(0, "opcodeIndex", 99), "is none of its table"),
        (having(0, "inputs", [5000]), "names number 5000 of"),
        (having(0, "inputs", None), "reads 0 tensors"),
        (having(0, "inputs", [0, -1]), "reads 2 tensors"),
        (having(0, "outputs", []), "writes 0"),
        (of_tensor("buffer", 4000), "in a buffer that is not there"),
        (of_tensor("shape", [1 << 20, 1 << 20]), "claims the shape"),
        (of_tensor("shape", [1, -3]), "claims the shape"),
        (scaled_unevenly, "777 scales"),
        (with_short_constant, "fewer values than its shape takes"),
        (with_signature, "a signature names number 7 of 1"),
        (turned, "which is written later"),
        (read_by_itself, "which is written later"),
    ],
)
def test_a_structure_that_no_model_has_is_refused(
    edit: Edit, said: str, refusal: Callable[..., str], tmp_path: Path
) -> None:
    content = edited(edit)
    assert said in refusal(Graph, content, "theirs.tflite")
    path = tmp_path / "theirs.tflite"
    path.write_bytes(content)
    assert said in refusal(open_tflite, path)


def test_what_runtimes_ignore_is_taken_as_absent() -> None:
    first = Graph(CONTENT, "ours.tflite").operators[0].name
    graph = Graph(edited(with_other_options), "theirs.tflite")
    assert graph.options(0) == dict(vars(getattr(schema, f"{options_class(first)}T")()))
    odd = read_model(edited(of_tensor("shapeSignature", [1] * 9)))
    assert odd.subgraphs[0].tensors[0].shapeSignature is None


def test_a_table_that_is_filled_writes_no_tensor() -> None:
    def filling(model: Any, graph: Any) -> None:
        code = schema.OperatorCodeT()
        code.builtinCode = schema.BuiltinOperator.HASHTABLE_IMPORT
        code.deprecatedBuiltinCode = schema.BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES
        one = schema.OperatorT()
        one.opcodeIndex, one.inputs, one.outputs = len(model.operatorCodes), [0, 0, 0], []
        model.operatorCodes.append(code)
        graph.operators.append(one)

    read = read_model(edited(filling))
    assert list(read.subgraphs[0].operators[-1].outputs) == []


def test_graphs_that_call_each_other_in_many_ways_come_to_an_end() -> None:
    def calling(model: Any, _: Any) -> None:
        code = schema.OperatorCodeT()
        code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.WHILE
        model.operatorCodes.append(code)
        model.subgraphs = [model.subgraphs[0], *(schema.SubGraphT() for _ in range(40))]
        for at, graph in enumerate(model.subgraphs):
            graph.tensors, graph.inputs, graph.outputs = graph.tensors or [], [], []
            following = min(at + 1, 40)
            graph.operators = []
            for _ in range(3):
                one = schema.OperatorT()
                one.opcodeIndex = len(model.operatorCodes) - 1
                one.builtinOptionsType = schema.BuiltinOptions.WhileOptions
                one.builtinOptions = schema.WhileOptionsT()
                one.builtinOptions.condSubgraphIndex = following
                one.builtinOptions.bodySubgraphIndex = following
                graph.operators.append(one)

    assert model_variables(edited(calling), "theirs.tflite") == ()


def test_levels_of_a_sparse_constant_that_claim_more_are_refused(
    refusal: Callable[..., str],
) -> None:
    def claiming(_: Any, graph: Any) -> None:
        for tensor in graph.tensors:
            if tensor.sparsity is not None:
                tensor.sparsity.dimMetadata[0].denseSize = 2**31 - 1

    graph = Graph(edited(claiming, SPARSE.read_bytes()), "theirs.tflite")
    sparse = [
        one.index for one in graph.tensors if graph.model.subgraphs[0].tensors[one.index].sparsity
    ]
    assert "is sparse, and cannot be unpacked" in refusal(graph.values, sparse[0])


@pytest.mark.parametrize("number", range(60))
def test_changed_models_are_read_or_refused(number: int) -> None:
    random = Random(number)  # noqa: S311 - no secret
    original = (CONTENT, SPARSE.read_bytes())[number % 2]
    content = tflite_objects(original, random)
    assert content not in (original, edited(lambda *_: None, original))
    for read in (_read_graph, read_operators, model_variables):
        try:
            read(content, "theirs.tflite")
        except UserError as refused:
            assert "\n" not in str(refused)  # noqa: PT017 - most of them are read


def _read_graph(content: bytes, source: str) -> None:
    graph = Graph(content, source)
    for one in graph.layers:
        graph.fed(one), graph.options(one.index)
    for tensor in graph.tensors:
        graph.describe(tensor.index), graph.origin(tensor.index), graph.real_values(tensor.index)
