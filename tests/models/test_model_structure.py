"""A file is read as the schema's own classes read it, and what is no model is refused."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from flatbuffers import number_types

from edgeflare.conform.drafts.model_reading import read_operators
from edgeflare.errors import UserError
from edgeflare.models.flatbuffer_reader import fields_of, unpacked_model
from edgeflare.models.model_structure import options_class
from edgeflare.models.model_variables import model_variables
from edgeflare.models.tflite import open_tflite
from edgeflare.models.tflite_file import read_model
from edgeflare.models.tflite_graph import Graph
from mutated_binaries import packed, tflite_objects
from tampering import COMPRESSED

CONTENT = COMPRESSED.read_bytes()
SPARSE = Path(__file__).parents[1] / "cases" / "sparse_densify" / "compressed.tflite"
TOO_MUCH = "more tables, numbers or texts than it has room for"

Refusal = Callable[..., str]

UNIONS = {"builtinOptions": schema.BuiltinOptions, "builtinOptions2": schema.BuiltinOptions2}


def as_text(part: Any) -> Any:
    """What an object has in all its parts, as something that can be compared."""
    if isinstance(part, np.ndarray):
        return part.dtype, part.tobytes()
    if isinstance(part, list):
        return [as_text(one) for one in part]
    if hasattr(part, "__dict__"):
        return type(part), [(key, as_text(value)) for key, value in vars(part).items()]
    return repr(part)


def require_same(content: bytes) -> None:
    assert as_text(unpacked_model(content)) == as_text(schema.ModelT.InitFromPackedBuf(content))


@pytest.mark.parametrize("path", [COMPRESSED, SPARSE], ids=["dense", "sparse"])
def test_files_are_read_as_the_classes_of_the_schema_read_them(path: Path) -> None:
    valid = path.read_bytes()
    require_same(valid)
    for seed in range(15):
        require_same(tflite_objects(valid, Random(seed)))  # noqa: S311


def filled(name: str) -> Any:
    """Return an object of a class of the schema of which no field has its default."""
    values = {"number": 1, "text": b"a name", "numbers": [1, 0, 1]}
    result = getattr(schema, f"{name}T")()
    for field in fields_of(name):
        setattr(result, field.name, values.get(field.kind))
    return result


@pytest.mark.parametrize("union", UNIONS)
def test_options_of_every_operator_are_read(union: str) -> None:
    model = schema.ModelT.InitFromPackedBuf(CONTENT)
    like = model.subgraphs[0].operators[0]
    names = {at: name for name, at in vars(UNIONS[union]).items() if name[0] != "_" and at}
    model.subgraphs[0].operators = []
    for number, name in names.items():
        operator = schema.OperatorT(inputs=like.inputs, outputs=like.outputs)
        setattr(operator, union, filled(name))
        setattr(operator, f"{union}Type", number)
        model.subgraphs[0].operators.append(operator)
    assert len(names) > 15
    require_same(packed(model))


@pytest.mark.slow
def test_many_small_operators_have_room() -> None:
    """Quantized additions, one after the other."""
    count, steps = 20_000, schema.QuantizationParametersT(scale=[0.5], zeroPoint=[3])
    tensors = [schema.TensorT([1, 4], 0, at, b"%d" % at, steps) for at in range(count + 1)]
    kind, options = schema.BuiltinOptions.AddOptions, schema.AddOptionsT()
    operators = [schema.OperatorT(0, [at, at], [at + 1], kind, options) for at in range(count)]
    graph = schema.SubGraphT(tensors, [0], [count], operators)
    buffers = [schema.BufferT() for _ in tensors]
    model = schema.ModelT(0, [schema.OperatorCodeT()], [graph], None, buffers)
    assert len(read_model(packed(model)).subgraphs[0].operators) == count


def vector(builder: Any, start: Callable[[Any, int], object], parts: Sequence[int]) -> int:
    start(builder, len(parts))
    for part in parts:
        builder.PrependUOffsetTRelative(part)
    return int(builder.EndVector())


def finished(builder: Any, tensors: Sequence[int], operators: Sequence[int] = ()) -> bytes:
    """A file with one graph and one entry in the table of operators, from what it refers to."""
    schema.OperatorCodeStart(builder)
    schema.OperatorCodeAddBuiltinCode(builder, schema.BuiltinOperator.STABLEHLO_CONVOLUTION)
    code = schema.OperatorCodeEnd(builder)
    tensors_at = vector(builder, schema.SubGraphStartTensorsVector, tensors)
    operators_at = vector(builder, schema.SubGraphStartOperatorsVector, operators)
    schema.SubGraphStart(builder)
    schema.SubGraphAddTensors(builder, tensors_at)
    schema.SubGraphAddOperators(builder, operators_at)
    graph = schema.SubGraphEnd(builder)
    graphs = vector(builder, schema.ModelStartSubgraphsVector, [graph])
    codes = vector(builder, schema.ModelStartOperatorCodesVector, [code])
    schema.ModelStart(builder)
    schema.ModelAddSubgraphs(builder, graphs)
    schema.ModelAddOperatorCodes(builder, codes)
    builder.Finish(schema.ModelEnd(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def sharing(tensors: int, text: int = 0, dimensions: int = 0) -> bytes:
    """A file whose vector of tensors names one tensor many times, which has a long name."""
    builder = flatbuffers.Builder(1024)
    name = builder.CreateString(b"n" * text)
    shape = builder.CreateNumpyVector(np.ones(dimensions, np.int32))
    schema.TensorStart(builder)
    schema.TensorAddShape(builder, shape)
    schema.TensorAddName(builder, name)
    return finished(builder, [schema.TensorEnd(builder)] * tensors)


def with_own_tensors(tensors: int) -> bytes:
    """A file with tensors that have nothing."""
    builder = flatbuffers.Builder(1024)
    made = []
    for _ in range(tensors):
        schema.TensorStart(builder)
        made.append(schema.TensorEnd(builder))
    return finished(builder, made)


def with_many(name: str, count: int) -> bytes:
    """A file whose graphs or buffers are one many times, with room for as many."""
    builder = flatbuffers.Builder(1024)
    getattr(schema, f"{name}Start")(builder)
    parts = [getattr(schema, f"{name}End")(builder)] * count
    of = {"Buffer": "Buffers", "SubGraph": "Subgraphs"}[name]
    at = vector(builder, getattr(schema, f"ModelStart{of}Vector"), parts)
    schema.ModelStart(builder)
    getattr(schema, f"ModelAdd{of}")(builder, at)
    builder.Finish(schema.ModelEnd(builder), file_identifier=b"TFL3")
    return bytes(builder.Output()) + bytes(8 * count)


def with_shared_options(operators: int) -> bytes:
    """A file whose vector of operators names one many times, which has many options."""
    builder = flatbuffers.Builder(1024)
    numbers = builder.CreateNumpyVector(np.ones(1, np.int64))
    schema.StablehloConvolutionOptionsStart(builder)
    for name in ("WindowStrides", "Padding", "LhsDilation", "RhsDilation", "WindowReversal"):
        getattr(schema, f"StablehloConvolutionOptionsAdd{name}")(builder, numbers)
    options = schema.StablehloConvolutionOptionsEnd(builder)
    kind = schema.BuiltinOptions2.StablehloConvolutionOptions
    schema.OperatorStart(builder)
    schema.OperatorAddBuiltinOptions2Type(builder, kind)
    schema.OperatorAddBuiltinOptions2(builder, options)
    return finished(builder, [], [schema.OperatorEnd(builder)] * operators)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda: with_many("Buffer", 270_000), "more than 262144 tables"),
        (lambda: with_many("SubGraph", 100_000), "more than 98304 tensors, operators and graphs"),
        (lambda: with_own_tensors(100_000), "more than 98304 tensors, operators and graphs"),
        (lambda: sharing(9000), TOO_MUCH),
        (lambda: sharing(900, 0, 9000), TOO_MUCH),
        (lambda: sharing(900, 100_000), TOO_MUCH),
        (lambda: with_shared_options(9000), TOO_MUCH),
    ],
    ids=["tables", "graphs", "tensors", "shared", "numbers", "texts", "options"],
)
def test_more_than_a_file_has_room_for_is_refused(
    write: Callable[[], bytes], said: str, refusal: Refusal
) -> None:
    assert said in refusal(read_model, write())


def test_tables_that_are_shared_are_read_while_there_is_room() -> None:
    assert len(read_model(sharing(3)).subgraphs[0].tensors) == 3
    assert len(read_model(sharing(40_000) + bytes(1_400_000)).subgraphs[0].tensors) == 40_000


def test_layouts_are_bounded(refusal: Refusal) -> None:
    content = bytearray(with_own_tensors(5000))
    layouts = len(content)
    graph = schema.Model.GetRootAs(content).Subgraphs(0)
    tensors = [graph.Tensors(at)._tab.Pos for at in range(graph.TensorsLength())]
    for number, at in enumerate(tensors):
        content += struct.pack("<HHHH", 8, 4, 0, 1 + number)  # the place of the type
        struct.pack_into("<i", content, at, at - (layouts + 8 * number))
    assert "more than 4096 layouts" in refusal(read_model, bytes(content))


def test_a_file_is_read_without_a_copy_of_it() -> None:
    content = sharing(3) + bytes(2**25)
    tracemalloc.start()
    read_model(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**23


def test_a_vector_that_claims_more_than_the_file_is_refused(refusal: Refusal) -> None:
    content = bytearray(sharing(3))
    at = content.rindex(struct.pack("<I", 3))
    content[at : at + 4] = b"\xff\xff\xff\xff"
    assert TOO_MUCH in refusal(read_model, bytes(content))


def test_a_text_that_runs_past_the_end_is_refused(refusal: Refusal) -> None:
    content = bytearray(CONTENT)
    at = schema.Model.GetRootAs(content)._tab
    place = at.Pos + at.Offset(10)  # of the description
    text = place + struct.unpack_from("<I", content, place)[0]
    struct.pack_into("<I", content, text, len(content) - text - 4)
    read_model(bytes(content))
    struct.pack_into("<I", content, text, len(content) - text - 3)
    assert "a vector or a text leads out of the file" in refusal(read_model, bytes(content))


CLASSES = [name[:-1] for name in vars(schema) if name[-1] == "T" and hasattr(schema, name[:-1])]


def test_every_field_of_every_class_is_known_and_the_classes_of_a_union_by_their_numbers() -> None:
    assert len(CLASSES) > 100
    unions: dict[str, Any] = {}
    for name in CLASSES:
        fields, attributes = fields_of(name), list(vars(getattr(schema, f"{name}T")()))
        assert [field.name for field in fields] == attributes
        assert len({field.slot for field in fields}) == len(attributes)
        unions |= {field.name: field.of for field in fields if field.kind == "union"}
    assert unions["details"][1] == "CustomQuantization"
    assert unions["arraySegments"] == unions["arrayIndices"]
    assert unions["builtinOptions"][11] == "AddOptions"
    for classes in unions.values():
        assert all(hasattr(schema, f"{name}T") for name in classes.values())


class Later:
    """Accessors of what a later schema may have, as the generator writes them."""

    _tab: Any

    def Count(self) -> object:  # noqa: N802
        self._tab.Offset(4)
        return self._tab.Get(number_types.Int32Flags, 0)

    def Words(self, _: int) -> object:  # noqa: N802
        return self._tab.String(self._tab.Vector(self._tab.Offset(6)))

    def WordsLength(self) -> int:  # noqa: N802
        return 0

    def Choice(self) -> None:  # noqa: N802
        self._tab.Union(None, self._tab.Offset(8))


def test_a_field_that_cannot_be_known_is_left_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "Later", Later, raising=False)
    made = lambda: SimpleNamespace(count=0, words=None, choice=None)  # noqa: E731
    monkeypatch.setattr(schema, "LaterT", made, raising=False)
    assert [one.name for one in fields_of("Later")] == ["count"]


Edit = Callable[[Any, Any], object]
"""What changes a model and its first graph."""


def edited(edit: Edit, content: bytes = CONTENT) -> bytes:
    model = schema.ModelT.InitFromPackedBuf(content)
    edit(model, model.subgraphs[0])
    return packed(model)


def having(at: int, key: str, value: Any) -> Edit:
    """Change a field of an operator."""
    return lambda _, graph: setattr(graph.operators[at], key, value)


def of_tensor(key: str, value: Any) -> Edit:
    return lambda _, graph: setattr(graph.tensors[0], key, value)


def read_by_itself(_: Any, graph: Any) -> None:
    one = graph.operators[-1]
    one.inputs = [int(one.outputs[0]), *one.inputs[1:]]


def scaled_unevenly(_: Any, graph: Any) -> None:
    quantized = next(tensor for tensor in graph.tensors if tensor.quantization is not None)
    quantized.quantization.scale = np.ones(777, np.float32)


def with_short_constant(model: Any, graph: Any) -> None:
    for tensor in graph.tensors:
        if model.buffers[tensor.buffer].data is not None:
            model.buffers[tensor.buffer].data = np.zeros(5, np.uint8)


SIGNATURE = schema.SignatureDefT([], [], b"x", 7)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda model, _: setattr(model, "subgraphs", None), "it has no graph"),
        (lambda model, _: setattr(model, "operatorCodes", None), "none of its table"),
        (lambda model, _: setattr(model, "signatureDefs", [SIGNATURE]), "names number 7 of 1"),
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
        (lambda _, graph: graph.operators.reverse(), "which is written later"),
        (read_by_itself, "which is written later"),
    ],
)
def test_a_structure_that_no_model_has_is_refused(
    edit: Edit, said: str, refusal: Refusal, tmp_path: Path
) -> None:
    content = edited(edit)
    assert said in refusal(Graph, content, "theirs.tflite")
    (tmp_path / "theirs.tflite").write_bytes(content)
    assert said in refusal(open_tflite, tmp_path / "theirs.tflite")


def test_what_runtimes_ignore_is_taken_as_absent() -> None:
    def with_other_options(_: Any, graph: Any) -> None:
        graph.operators[0].builtinOptions = schema.AddOptionsT()
        graph.operators[0].builtinOptionsType = schema.BuiltinOptions.AddOptions

    first = Graph(CONTENT, "ours.tflite").operators[0].name
    graph = Graph(edited(with_other_options), "theirs.tflite")
    assert graph.options(0) == dict(vars(getattr(schema, f"{options_class(first)}T")()))
    odd = read_model(edited(of_tensor("shapeSignature", [1] * 9)))
    assert odd.subgraphs[0].tensors[0].shapeSignature is None


def test_a_table_that_is_filled_writes_no_tensor() -> None:
    def filling(model: Any, graph: Any) -> None:
        graph.operators.append(schema.OperatorT(len(model.operatorCodes), [0, 0, 0], []))
        placeholder = schema.BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES
        code = schema.BuiltinOperator.HASHTABLE_IMPORT
        model.operatorCodes.append(schema.OperatorCodeT(placeholder, builtinCode=code))

    read = read_model(edited(filling))
    assert list(read.subgraphs[0].operators[-1].outputs) == []


def test_graphs_that_call_each_other_in_many_ways_come_to_an_end() -> None:
    def calling(model: Any, first: Any) -> None:
        number, kind = schema.BuiltinOperator.WHILE, schema.BuiltinOptions.WhileOptions
        model.operatorCodes.append(schema.OperatorCodeT(number, builtinCode=number))
        model.subgraphs = [first, *(schema.SubGraphT() for _ in range(40))]
        for at, graph in enumerate(model.subgraphs):
            graph.tensors, graph.inputs, graph.outputs = graph.tensors or [], [], []
            options = schema.WhileOptionsT(min(at + 1, 40), min(at + 1, 40))
            code = len(model.operatorCodes) - 1
            graph.operators = [schema.OperatorT(code, [], [], kind, options) for _ in range(3)]

    assert model_variables(edited(calling), "theirs.tflite") == ()


def test_levels_of_a_sparse_constant_that_claim_more_are_refused(refusal: Refusal) -> None:
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
    for layer in graph.layers:
        graph.fed(layer), graph.options(layer.index)
    for tensor in graph.tensors:
        graph.describe(tensor.index), graph.origin(tensor.index), graph.real_values(tensor.index)
