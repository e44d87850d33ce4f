"""Models made of the user's: with shapes folded, or without rounding between."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.models.compressed_model import dequantized, open_dequantized
from edgeflare.models.evaluator import Invocation
from edgeflare.models.pair import load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.models.shape_folding import (
    asks_for_shapes,
    fold_shapes,
    with_fixed_shapes,
    with_shapes_folded,
)
from edgeflare.models.tflite import TFLiteModel, open_tflite
from edgeflare.models.tflite_graph import Graph
from edgeflare_protos.kernel_sets import TFLITE_KERNEL_SETS
from flattening import FlatteningModel
from graph_writer import GraphWriter
from tampering import COMPRESSED, EXAMPLE, ORIGINAL, InterpreterProbe, example_input, run

Refusal = Callable[..., str]

FLATTEN = ("SHAPE", "STRIDED_SLICE", "PACK")
STEP = 0.03
ELSEWHERE = Invocation("step")
"""A signature that no model here has."""


def names(content: bytes) -> list[str]:
    return [one.name for one in Graph(content).operators]


def flattening(shape: tuple[int, ...], *, twice: bool = False, dynamic: bool = False) -> bytes:
    """LOGISTIC, a flatten, LOGISTIC, and if asked for a flatten of what the first sized.

    `dynamic` leaves the first size of the input open.
    """
    model = FlatteningModel(shape)
    if dynamic:
        model.declare([-1, *shape[1:]], model.x)
    made = model.logistic(model.flatten(model.logistic(model.x), shape))
    if twice:
        made = model.flatten(made, (shape[0], int(np.prod(shape[1:]))))
    return model.content([model.x], [made])


@settings(max_examples=6, deadline=None)
@given(
    shape=st.tuples(*[st.integers(1, 5)] * 4), seed=st.integers(0, 2**32 - 1), twice=st.booleans()
)
def test_it_gives_the_same_to_the_bit_under_all_kernels(
    shape: tuple[int, ...], seed: int, twice: bool
) -> None:
    content = flattening(shape, twice=twice)
    folded = fold_shapes(content)
    assert folded.operators == FLATTEN * (2 if twice else 1)
    assert names(folded.content) == [one for one in names(content) if one not in FLATTEN]
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    for kernels in TFLITE_KERNEL_SETS:
        (own,), (got,) = (run(one, [values], kernels) for one in (content, folded.content))
        assert got.shape == own.shape
        assert got.tobytes() == own.tobytes()


def test_shapes_that_are_fixed_are_those_of_all_tensors() -> None:
    graph = GraphWriter()
    x = graph.tensor("x", (1, 1, 1, 1), "FLOAT32")
    features = graph.tensor("features", (1, 1, 1, 3), "FLOAT32")
    graph.graph.tensors[x].shapeSignature = [1, -1, -1, 1]
    rng = np.random.default_rng(1)
    kernel, bias, weights = (
        graph.constant(f"{size}", rng.normal(size=size).astype(np.float32))
        for size in ((3, 2, 2, 1), (3,), (4, 3))
    )
    convolution = schema.Conv2DOptionsT(strideW=1, strideH=1)
    graph.operator("CONV_2D", [x, kernel, bias], [features], convolution)
    axes = graph.constant("axes", np.array([1, 2], np.int32))
    mean, y = graph.tensor("mean", (1, 3), "FLOAT32"), graph.tensor("y", (1, 4), "FLOAT32")
    graph.operator("MEAN", [features, axes], [mean], schema.ReducerOptionsT())
    graph.operator("FULLY_CONNECTED", [mean, weights], [y], schema.FullyConnectedOptionsT())
    content = graph.content([x], [y])
    fixed = with_fixed_shapes(content, "any.tflite", Invocation(shapes={"x": (1, 6, 5, 1)}))
    shapes = [Graph(fixed).tensors[one.outputs[0]].shape for one in Graph(fixed).operators]
    assert shapes == [(1, 6, 5, 3), (1, 3), (1, 4)]
    run(fixed, [np.zeros((1, 6, 5, 1), np.float32)])
    assert with_fixed_shapes(content, "any.tflite", Invocation()) is content


def test_shapes_that_a_model_computes_are_those_of_its_run() -> None:
    model = FlatteningModel((1, 4, 3))
    flat = model.flatten(model.logistic(model.x), (1, 4, 3))
    made = model.logistic(flat)
    model.declare([-1, -1], flat, made)  # as a converter writes what follows from a shape alone
    for tensor in (flat, made):
        model.graph.tensors[tensor].shape = [1, 1]
    content = model.content([model.x], [made])
    fixed = Graph(with_fixed_shapes(content, "computed.tflite", Invocation()))
    assert [fixed.tensors[one].shape for one in (flat, made)] == [(1, 12), (1, 12)]


def test_the_model_that_ships_keeps_all_but_its_three_operators() -> None:
    content = COMPRESSED.read_bytes()
    folded = fold_shapes(content)
    before, after = Graph(content), Graph(folded.content)
    assert folded.operators == FLATTEN
    assert names(folded.content) == [one for one in names(content) if one not in FLATTEN]
    (reshape,) = (one for one in after.operators if one.name == "RESHAPE")
    assert after.values(reshape.inputs[1]).tolist() == [1, after.tensors[reshape.outputs[0]].size]
    assert (after.inputs, after.outputs) == (before.inputs, before.outputs)
    signatures = [one.signatureKey for one in after.model.signatureDefs]
    assert signatures == [one.signatureKey for one in before.model.signatureDefs]
    (own,), (got,) = (
        InterpreterProbe(one).run([example_input()]) for one in (content, folded.content)
    )
    assert got.tobytes() == own.tobytes()
    assert fold_shapes(content).content == folded.content


def test_shapes_that_the_pair_fixes_are_those_that_are_folded() -> None:
    content = flattening((1, 2, 3), dynamic=True)
    graph = Graph(fold_shapes(content, invocation=Invocation(shapes={"x": (4, 2, 3)})).content)
    (reshape,) = (one for one in graph.operators if one.name == "RESHAPE")
    assert graph.values(reshape.inputs[1]).tolist() == [4, -1]
    assert graph.tensors[graph.inputs[0]].shape == (4, 2, 3)


def test_a_shape_that_values_decide_is_refused_with_the_operator(refusal: Refusal) -> None:
    """A flatten of where the input is not 0, of which nobody knows before how many there are."""
    model = FlatteningModel((6,))
    zero = model.constant("zero", np.zeros((), np.float32))
    unequal = model.tensor("unequal", (6,), "BOOL")
    places = model.tensor("places", (6, 1), "INT64")
    real = model.tensor("real", (6, 1), "FLOAT32")
    casting = schema.CastOptionsT(schema.TensorType.INT64, schema.TensorType.FLOAT32)
    model.operator("NOT_EQUAL", [model.x, zero], [unequal], schema.NotEqualOptionsT())
    model.operator("WHERE", [unequal], [places], schema.WhereOptionsT())
    model.operator("CAST", [places], [real], casting)
    content = model.content([model.x], [model.flatten(real, (6, 1))])
    said = refusal(fold_shapes, content, "mine.tflite")
    assert "mine.tflite: SHAPE (operator 3) asks for a shape that is not fixed" in said
    assert "WHERE (operator 1)" in said


def test_where_there_is_nothing_to_fold_it_says_so(tmp_path: Path, refusal: Refusal) -> None:
    model = FlatteningModel((1, 3))
    path = model.save(tmp_path / "model.tflite", [model.x], [model.logistic(model.x)])
    assert not asks_for_shapes(path)
    assert "nothing to fold: leave --fold-shapes out" in refusal(fold_shapes, path.read_bytes())
    path.write_bytes(fold_shapes(COMPRESSED.read_bytes()).content)
    assert asks_for_shapes(COMPRESSED)
    assert not asks_for_shapes(path)


def test_a_signature_of_another_graph_is_refused(refusal: Refusal) -> None:
    model = FlatteningModel((1, 3))
    y = model.logistic(model.x)
    model.second()
    given = model.tensor("given", (1, 3), "FLOAT32")
    made = model.logistic(given)
    model.first([given], [made])
    model.signature("other", 1, {"a": given}, {"b": made})
    invocation = Invocation(signature="other")
    said = refusal(fold_shapes, model.content([model.x], [y]), invocation=invocation)
    assert "'other' is not of the first graph" in said


def test_what_is_no_model_is_one_line(refusal: Refusal) -> None:
    assert "mine.tflite" in refusal(fold_shapes, b"no model at all", "mine.tflite")


def test_the_folded_file_is_there_while_the_pair_is_open() -> None:
    own = load_pair(EXAMPLE)
    with with_shapes_folded(own) as opened:
        assert opened is own
        assert opened.executed == own.compressed
    pair = load_pair(EXAMPLE, Settings(fold_shapes=True))
    with pytest.raises(ValueError, match="not folded yet"):
        _ = pair.executed
    with with_shapes_folded(pair) as opened:
        assert opened.folded is not None
        assert opened.compressed == pair.compressed
        assert sha256(opened.executed.read_bytes()).hexdigest() == opened.folded.sha256
        assert opened.folded.described().operators == (*FLATTEN,)
        assert opened.fingerprint() == own.fingerprint()
    assert not opened.executed.exists()


def test_what_is_refused_of_a_derived_file_names_the_users_own(
    tmp_path: Path, refusal: Refusal
) -> None:
    pair = load_pair(EXAMPLE, Settings(fold_shapes=True))

    def folded() -> None:
        with with_shapes_folded(pair) as opened:
            open_tflite(opened.executed, invocation=ELSEWHERE)

    def without_rounding() -> None:
        with open_dequantized(two_layers(tmp_path / "model.tflite"), ELSEWHERE):
            pass

    for opened, named in (
        (folded, f"{pair.compressed} with its shapes folded"),
        (without_rounding, f"the dequantized form of {tmp_path / 'model.tflite'}"),
    ):
        assert refusal(opened).startswith(f"{named}: there is no signature")


# Without rounding between.


def two_layers(path: Path, low: float = -1.0) -> Path:
    """Write y = 3 x and z = y + y, int8; y holds from `low` in 255 steps of 0.03."""
    graph = GraphWriter()
    zero = round(-128 - low / STEP)
    x = graph.tensor("x", (1, 5), "INT8", (STEP, 0))
    three = graph.tensor("three", (1, 5), "INT8", (3.0, 0), np.ones((1, 5), np.int8))
    y = graph.tensor("y", (1, 5), "INT8", (STEP, zero))
    z = graph.tensor("z", (1, 5), "INT8", (4 * STEP, 0))
    graph.operator("MUL", [x, three], [y], None, 2)
    graph.operator("ADD", [y, y], [z], None, 2)
    return graph.save(path, [x], [z])


def outputs(model: TFLiteModel, inputs: NDArray[np.int8]) -> NDArray[np.int8]:
    found: NDArray[np.int8] = model.submit(inputs).result().outputs.astype(np.int8)
    return found


def test_what_is_put_out_stays_within_the_ranges_of_the_tensors(tmp_path: Path) -> None:
    low = -0.9
    inputs = np.linspace(-127, 127, 40).astype(np.int8).reshape(8, 5)
    with open_dequantized(two_layers(tmp_path / "model.tflite", low)) as model:
        found = outputs(model, inputs)
    least, most = low, low + 255 * STEP
    expected = 2 * np.clip(3.0 * inputs * STEP, least, most)
    np.testing.assert_allclose(found, expected / (4 * STEP), atol=0.51)


def test_it_takes_and_gives_what_the_model_does_and_rounds_only_at_the_end() -> None:
    with closing(open_tflite(COMPRESSED, "builtin")) as twin, open_dequantized(COMPRESSED) as model:
        assert model.signature == twin.signature
        shape = (20, *twin.signature.input.shape[1:])
        noise = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
        differences = np.abs(outputs(model, noise).astype(int) - outputs(twin, noise))
    assert 0 < differences.max() < 64
    assert differences.mean() < 2


@pytest.mark.parametrize("name", ["fashion_lenet4", "face_detection", "spoken_words"])
def test_no_tensor_between_the_ends_is_quantized(name: str) -> None:
    graph = Graph(dequantized((EXAMPLE.parent / name / "compressed.tflite").read_bytes()))
    ends = {*graph.inputs, *graph.outputs}
    assert [one.name for one in graph.tensors if one.scales and one.index not in ends] == []
    assert {"DEQUANTIZE", "QUANTIZE"} <= {one.name for one in graph.operators}


def test_conversions_between_floats_are_left_out() -> None:
    graph = GraphWriter()
    x, y = (graph.tensor(name, (1, 3), "FLOAT32") for name in "xy")
    inner = graph.tensor("inner", (1, 3), "INT8", (STEP, 0))
    again = graph.tensor("again", (1, 3), "INT8", (2 * STEP, 0))
    graph.operator("QUANTIZE", [x], [inner])
    graph.operator("QUANTIZE", [inner], [again], None, 2)
    graph.operator("DEQUANTIZE", [again], [y], None, 2)
    assert set(names(dequantized(graph.content([x], [y])))) <= {"MINIMUM", "MAXIMUM"}


@pytest.mark.parametrize("nothing", [[], None])
def test_operators_without_inputs_or_outputs_stay(tmp_path: Path, nothing: list[int]) -> None:
    graph = GraphWriter()
    x = graph.tensor("x", (1, 5), "INT8", (STEP, 0))
    variable = graph.tensor("variable", (), "RESOURCE")
    y = graph.tensor("y", (1, 5), "INT8", (STEP, 0))
    z = graph.tensor("z", (1, 5), "INT8", (2 * STEP, 0))
    graph.operator("VAR_HANDLE", nothing, [variable], schema.VarHandleOptionsT())
    graph.operator("ASSIGN_VARIABLE", [variable, x], nothing, schema.AssignVariableOptionsT())
    graph.operator("READ_VARIABLE", [variable], [y], schema.ReadVariableOptionsT())
    graph.operator("ADD", [y, y], [z], None, 2)
    path = graph.save(tmp_path / "variable.tflite", [x], [z])
    inputs = np.arange(-50, 50, dtype=np.int8).reshape(20, 5)
    with open_dequantized(path) as model:
        assert np.array_equal(outputs(model, inputs), inputs)
        assert {"VAR_HANDLE", "ASSIGN_VARIABLE", "READ_VARIABLE"} <= set(model.operators)


def test_a_model_in_float_has_no_such_form(refusal: Refusal) -> None:
    said = refusal(dequantized, ORIGINAL.read_bytes(), "original.tflite")
    assert "no quantized tensors: leave dequantized out of --ensemble" in said
