"""A file is read as the schema's own classes read it, and what is more than a model is refused."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgeflare.models.flatbuffer_reader import unpacked_model
from edgeflare.models.schema_fields import fields_of
from edgeflare.models.tflite_file import read_model
from mutated_binaries import tflite_objects
from tampering import COMPRESSED

CONTENT = COMPRESSED.read_bytes()
SPARSE = Path(__file__).parents[1] / "cases" / "sparse_densify" / "compressed.tflite"
TOO_MUCH = "more tables, numbers or texts than it has room for"

UNIONS = {"builtinOptions": schema.BuiltinOptions, "builtinOptions2": schema.BuiltinOptions2}


def packed(model: Any) -> bytes:
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


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


@pytest.mark.parametrize("valid", [CONTENT, SPARSE.read_bytes()])
def test_files_are_read_as_the_classes_of_the_schema_read_them(valid: bytes) -> None:
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


def chain(operators: int) -> bytes:
    """A file with as many quantized additions, one after the other."""
    model = schema.ModelT(operatorCodes=[schema.OperatorCodeT()])
    model.buffers = [schema.BufferT() for _ in range(operators + 1)]
    steps = schema.QuantizationParametersT(scale=[0.5], zeroPoint=[3])
    graph = schema.SubGraphT(inputs=[0], outputs=[operators])
    graph.tensors = [
        schema.TensorT(name=b"%d" % at, shape=[1, 4], buffer=at, quantization=steps)
        for at in range(operators + 1)
    ]
    options = {
        "builtinOptionsType": schema.BuiltinOptions.AddOptions,
        "builtinOptions": schema.AddOptionsT(),
    }
    graph.operators = [
        schema.OperatorT(inputs=[at, at], outputs=[at + 1], **options) for at in range(operators)
    ]
    model.subgraphs = [graph]
    return packed(model)


def test_many_small_operators_have_room() -> None:
    model = read_model(chain(40_000))
    assert len(model.subgraphs[0].operators) == 40_000


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


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (with_many("Buffer", 270_000), "more than 262144 tables"),
        (with_many("SubGraph", 100_000), "more than 98304 tensors, operators and graphs"),
        (with_own_tensors(100_000), "more than 98304 tensors, operators and graphs"),
        (sharing(9000), TOO_MUCH),
        (sharing(900, 0, 9000), TOO_MUCH),
        (sharing(900, 100_000), TOO_MUCH),
        (with_shared_options(9000), TOO_MUCH),
    ],
    ids=["tables", "graphs", "tensors", "shared", "numbers", "texts", "options"],
)
def test_more_than_a_file_has_room_for_is_refused(
    content: bytes, said: str, refusal: Callable[..., str]
) -> None:
    assert said in refusal(read_model, content)


def test_tables_that_are_shared_are_read_while_there_is_room() -> None:
    assert len(read_model(sharing(3)).subgraphs[0].tensors) == 3
    assert len(read_model(sharing(40_000) + bytes(1_400_000)).subgraphs[0].tensors) == 40_000


def test_layouts_are_bounded(refusal: Callable[..., str]) -> None:
    content = bytearray(with_own_tensors(5000))
    layouts = len(content)
    for number, at in enumerate(_tensors(content)):
        content += struct.pack("<HHHH", 8, 4, 0, 1 + number)  # the place of the type
        struct.pack_into("<i", content, at, at - (layouts + 8 * number))
    assert "more than 4096 layouts" in refusal(read_model, bytes(content))


def _tensors(content: bytearray) -> list[int]:
    """Return where the tensors of the first graph lie."""
    graph = schema.Model.GetRootAs(content).Subgraphs(0)
    return [graph.Tensors(at)._tab.Pos for at in range(graph.TensorsLength())]


def test_a_file_is_read_without_a_copy_of_it() -> None:
    content = sharing(3) + bytes(2**25)
    tracemalloc.start()
    read_model(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**23


def test_a_vector_that_claims_more_than_the_file_is_refused(refusal: Callable[..., str]) -> None:
    content = bytearray(sharing(3))
    at = content.rindex(struct.pack("<I", 3))
    content[at : at + 4] = b"\xff\xff\xff\xff"
    assert TOO_MUCH in refusal(read_model, bytes(content))


def test_a_text_that_runs_past_the_end_is_refused(refusal: Callable[..., str]) -> None:
    content = bytearray(CONTENT)
    at = schema.Model.GetRootAs(content)._tab
    place = at.Pos + at.Offset(10)  # of the description
    text = place + struct.unpack_from("<I", content, place)[0]
    struct.pack_into("<I", content, text, len(content) - text - 4)
    read_model(bytes(content))
    struct.pack_into("<I", content, text, len(content) - text - 3)
    assert "a vector or a text leads out of the file" in refusal(read_model, bytes(content))
