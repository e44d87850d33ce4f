"""Graphs and their values are read as they are, and parts of them do what they do in the whole."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.core.query import Arm
from edgeflare.core.task import OutputMaker
from edgeflare.errors import UserError
from edgeflare.models.graph_parts import crossing_tensors, extract, extract_tails, isolate
from edgeflare.models.model_probe import Values
from edgeflare.models.model_variables import model_variables
from edgeflare.models.non_finite_values import NonFiniteOnset, non_finite_onset, said_of_arms
from edgeflare.models.quantized_range import (
    QuantizedRange,
    least_error_range,
    range_of,
    squared_errors,
)
from edgeflare.models.run_pair import Variable
from edgeflare.models.tflite_graph import Graph, GraphTensor
from edgeflare_protos.kernel_sets import Kernels
from graph_writer import GraphWriter
from networks import Kind, pair_of
from prepared_weights import compressed_along, with_prepared_weights
from public_cases import CASES
from state_pairs import write_variable_pair
from tampering import (
    COMPRESSED,
    ORIGINAL,
    edited,
    example_input,
    original_input,
    residual_model,
    run,
    whole,
)


def test_a_graph_is_read_as_it_is() -> None:
    graph = Graph(COMPRESSED.read_bytes())
    assert graph.operators[0].name == "CONV_2D"
    assert graph.operators[-1].name == "SOFTMAX"
    assert graph.preparing == frozenset()
    image, kernel, bias = (graph.tensors[tensor] for tensor in graph.operators[0].inputs)
    assert image.shape == (1, 28, 28, 1)
    assert image.dtype == kernel.dtype == "int8"
    assert not image.constant
    assert kernel.constant
    assert len(kernel.scales) == kernel.shape[kernel.axis] > 1
    real = kernel.real(graph.values(kernel.index))
    original = Graph(ORIGINAL.read_bytes())
    wanted = original.values(original.operators[0].inputs[1]).astype(np.float64)
    steps = np.reshape(kernel.scales, (-1, 1, 1, 1))
    assert (np.abs(real - wanted) <= 0.501 * steps).all()
    assert bias.dtype == "int32"


def test_what_is_no_graph_is_said_in_one_line() -> None:
    content = COMPRESSED.read_bytes()
    with pytest.raises(UserError, match=r"^half\.tflite: its graph cannot be read: [^\n]*$"):
        Graph(content[: len(content) // 3], "half.tflite")


def test_outputs_are_from_the_operator_before_conversions_and_reshapes() -> None:
    graph = Graph((CASES / "detection_postprocess" / "compressed.tflite").read_bytes())
    name = "TFLite_Detection_PostProcess"
    made = [OutputMaker(15, name, at, reads="strided_slice1") for at in range(4)]
    assert [graph.origin(tensor) for tensor in graph.outputs] == made
    named = graph.signature_outputs("serving_default")
    assert [named[name] for name in ("boxes", "classes", "scores", "count")] == [33, 34, 35, 36]
    (slice_of,) = graph.operators[11].outputs
    assert graph.operators[12].inputs == (slice_of,)
    assert graph.origin(graph.operators[12].outputs[0]) == graph.origin(slice_of)
    assert graph.origin(graph.inputs[0]) is None


# Parts.
@cache
def model(name: str) -> tuple[bytes, NDArray[Any]]:
    """A file, and an input of it."""
    if name == "residual":
        return residual_model(), np.array([[1, -2, 3, 0.5]], np.float32)
    if name == "float":
        return ORIGINAL.read_bytes(), original_input()
    return (COMPRESSED.read_bytes() if name == "int8" else pair_of("mobilenet")[1]), example_input()


MODELS = ("int8", "float", "residual", "mobilenet")


@pytest.mark.parametrize("kernels", ["xnnpack", "builtin", "reference"])
@pytest.mark.parametrize("name", MODELS)
def test_the_whole_range_is_the_model(name: str, kernels: Kernels) -> None:
    content, values = model(name)
    graph = Graph(content)
    part = extract(graph, 0, len(graph.operators) - 1)
    assert (part.inputs, part.outputs) == (graph.inputs, graph.outputs)
    (wanted,), (got,) = run(content, [values], kernels), run(part.content, [values], kernels)
    assert got.tobytes() == wanted.tobytes()


@settings(max_examples=12, deadline=None)
@given(st.data())
@pytest.mark.parametrize("name", MODELS)
def test_a_beginning_and_the_rest_are_the_model(name: str, data: st.DataObject) -> None:
    """Also where residual connections cross the cut."""
    content, values = model(name)
    graph = Graph(content)
    last = len(graph.operators) - 1
    cut = data.draw(st.integers(0, last - 1))
    beginning, rest = extract(graph, 0, cut), extract(graph, cut + 1, last)
    state = dict(zip(beginning.outputs, run(beginning.content, [values]), strict=True))
    state[graph.inputs[0]] = values
    (got,) = run(rest.content, [state[tensor] for tensor in rest.inputs])
    assert got.tobytes() == run(content, [values])[0].tobytes()


def test_what_skips_over_a_cut_crosses_it() -> None:
    graph = Graph(residual_model())
    assert [graph.tensors[t].name for t in extract(graph, 0, 1).outputs] == ["a", "b"]
    assert [graph.tensors[t].name for t in extract(graph, 2, 3).inputs] == ["a", "b", "x"]


@pytest.mark.parametrize("name", MODELS)
def test_isolated_operators_and_exposed_tensors_are_those_of_the_whole(name: str) -> None:
    content, values = model(name)
    graph = Graph(content)
    state = whole(graph, values, "xnnpack", content)
    everything = [tensor for one in graph.layers for tensor in one.outputs]
    exposed = extract(graph, 0, len(graph.operators) - 1, expose=everything)
    assert set(exposed.outputs) == set(everything)
    for part in (exposed, isolate(graph, [one.index for one in graph.layers])):
        outputs = run(part.content, [state[tensor] for tensor in part.inputs])
        for tensor, got in zip(part.outputs, outputs, strict=True):
            assert got.tobytes() == state[tensor].tobytes()


def test_an_isolated_operator_reads_nothing_of_the_others() -> None:
    part = isolate(Graph(residual_model()), [0, 2])
    zero, one = np.zeros((1, 4), np.float32), np.ones((1, 4), np.float32)
    negated, added = run(part.content, [one, zero, one])
    assert (negated == -1).all()
    assert (added == 1).all()


def test_inputs_of_isolated_operators_have_names_of_their_own() -> None:
    """The GPU accelerator refuses a model with two inputs of one name."""
    graph = Graph(residual_model())
    part = isolate(graph, [one.index for one in graph.layers])
    assert len(set(part.inputs)) < len(part.inputs)
    cut = Graph(part.content)
    names = [cut.tensors[tensor].name for tensor in cut.inputs]
    assert len(set(names)) == len(names)


def test_a_part_is_small_and_a_model_of_its_own() -> None:
    content, _ = model("int8")
    part = extract(Graph(content), 1, 1)
    assert len(part.content) < len(content) / 20
    assert [one.name for one in Graph(part.content).operators] == ["MAX_POOL_2D"]


def test_what_cannot_be_cut_is_said_in_one_line() -> None:
    content, _ = model("int8")

    def unread(model: Any) -> None:
        made = model.subgraphs[0].operators[0].outputs[0]
        tensor = model.subgraphs[0].tensors[made]
        tensor.type, tensor.name = schema.TensorType.COMPLEX64, b"Stateful/" * 20 + b"FFT"

    graph = Graph(edited(content, unread), "odd.tflite")
    words = (
        r"odd\.tflite cannot be cut.*: tensor '….{37}FFT' of CONV_2D \(operator 0\), "
        "complex64, cannot be read"
    )
    with pytest.raises(UserError, match=words):
        extract(graph, 0, 0)
    with pytest.raises(UserError, match=words):
        isolate(graph, [0, 2])
    assert extract(graph, 0, 1).outputs == graph.operators[1].outputs
    with pytest.raises(ValueError, match="no operators"):
        extract(Graph(content), 3, 99)


def test_what_prepares_constants_goes_along() -> None:
    """Float16 weights: a DEQUANTIZE makes what the next operator reads."""
    content, values = with_prepared_weights(ORIGINAL.read_bytes(), ["DEQUANTIZE"]), original_input()
    graph = Graph(content)
    first = graph.layers[0]
    assert first.name == "CONV_2D"
    assert graph.preparing == set(range(first.index))
    state = whole(graph, values, "builtin", content)
    part = extract(graph, first.index, first.index)
    assert part.inputs == graph.inputs
    (got,) = run(part.content, [values], "builtin")
    assert got.tobytes() == state[part.outputs[0]].tobytes()
    with pytest.raises(ValueError, match="only prepare"):
        extract(graph, 0, 0)


@pytest.mark.parametrize("kind", ["mobilenet", "resnet"])
def test_ends_that_begin_in_the_middle_end_as_the_whole_does(kind: Kind) -> None:
    """Side by side in one model, with what residual connections bring along."""
    content = pair_of(kind)[0]
    graph = Graph(content)
    state = whole(graph, original_input(), "xnnpack", content)
    starts = [one.index for one in graph.layers[:-1]]
    part = extract_tails(graph, starts, graph.outputs)
    assert part.outputs == graph.outputs * len(starts)
    assert part.inputs == tuple(
        tensor for start in starts for tensor in crossing_tensors(graph, start, graph.outputs)
    )
    assert max(len(crossing_tensors(graph, start, graph.outputs)) for start in starts) > 1
    for values in run(part.content, [state[tensor] for tensor in part.inputs]):
        wanted = state[graph.outputs[0]].astype(np.float32)
        np.testing.assert_allclose(values.astype(np.float32), wanted, atol=1e-5)


# Variables.
def found(file: Path | bytes, signature: str = "") -> list[Variable]:
    content = file if isinstance(file, bytes) else file.read_bytes()
    return list(model_variables(content, "theirs.tflite", signature))


def test_states_of_fused_operators_are_variables_in_float_and_quantized_files() -> None:
    for name in ("original", "compressed", "dynamic"):
        first, second = found(CASES / "lstm_state" / f"{name}.tflite")
        assert first.name != second.name
        assert {first.operator, second.operator} == {"UNIDIRECTIONAL_SEQUENCE_LSTM"}
    assert found(CASES / "gru_dynamic" / "compressed.tflite") == []


def test_a_resource_is_one_where_an_inference_writes_it(tmp_path: Path) -> None:
    """What CALL_ONCE writes at the beginning is the same; one that is only read is a constant."""
    pair = write_variable_pair(tmp_path / "pair", resource=True)
    assert found(pair / "compressed.tflite") == [Variable("sum", "ASSIGN_VARIABLE", 4)]
    graph = GraphWriter()
    handle, read = graph.tensor("handle", (), "RESOURCE"), graph.tensor("y", (1, 3), "FLOAT32")
    graph.operator("VAR_HANDLE", [], [handle], schema.VarHandleOptionsT())
    graph.operator("READ_VARIABLE", [handle], [read], schema.ReadVariableOptionsT())
    assert found(graph.content([], [read])) == []


def test_what_a_branch_writes_is_found_under_the_name_of_the_resource() -> None:
    graph = GraphWriter()
    condition, handle = graph.tensor("if", (), "BOOL"), graph.tensor("handle", (), "RESOURCE")
    x, y = (graph.tensor(name, (3,), "FLOAT32") for name in "xy")
    graph.operator("VAR_HANDLE", [], [handle], schema.VarHandleOptionsT(sharedName="kept"))
    graph.operator("IF", [condition, handle, x], [y], schema.IfOptionsT(1, 2))
    for writes in (True, False):
        graph.second()
        inner, given = graph.tensor("inner", (), "RESOURCE"), graph.tensor("v", (3,), "FLOAT32")
        if writes:
            options = schema.AssignVariableOptionsT()
            graph.operator("ASSIGN_VARIABLE", [inner, given], [], options)
        graph.first([inner, given], [given])
    assert found(graph.content([condition, x], [y])) == [Variable("kept", "ASSIGN_VARIABLE", 0)]


def test_a_signature_has_the_variables_of_its_own_graph() -> None:
    graph = GraphWriter()
    x, y = (graph.tensor(name, (1, 2), "FLOAT32") for name in "xy")
    graph.operator("NEG", [x], [y], schema.NegOptionsT())
    graph.signature("plain", 0, {"v": x}, {"w": y})
    graph.second()
    given, made = graph.tensor("given", (1, 1, 2), "FLOAT32"), graph.tensor("m", (1, 2), "FLOAT32")
    w, bias = (graph.constant("", np.ones(size, np.float32)) for size in ((2, 2), (2,)))
    state = graph.tensor("", (1, 2), "FLOAT32")
    graph.graph.tensors[state].isVariable = True
    graph.operator("RNN", [given, w, w, bias, state], [made], schema.RNNOptionsT())
    graph.signature("recurrent", 1, {"v": given}, {"w": made})
    graph.first([given], [made])
    content = graph.content([x], [y])
    assert found(content) == found(content, "plain") == []
    assert found(content, "recurrent") == [Variable("tensor 4", "RNN", 0)]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.sampled_from([1, 2]), st.integers(0))
def test_a_sparse_tensor_is_read_as_densify_writes_it(
    sizes: list[int], block: int, seed: int
) -> None:
    shape, rng = (*sizes[:-1], sizes[-1] * block), np.random.default_rng(seed)
    values = (rng.normal(size=shape) * rng.integers(0, 2, shape)).astype(np.float32)
    values.flat[-1] = 1.0
    order = rng.permutation(len(shape)).tolist()
    writer = GraphWriter()
    sparsity, kept = compressed_along(values, order, seed % len(shape), block)
    stored = writer.tensor("stored", shape, "FLOAT32", data=kept)
    writer.graph.tensors[stored].sparsity = sparsity
    given, dense, made = (writer.tensor(name, shape, "FLOAT32") for name in ("x", "w", "y"))
    writer.operator("DENSIFY", [stored], [dense])
    writer.operator("ADD", [given, dense], [made], schema.AddOptionsT())
    content = writer.content([given], [made])
    read = Graph(content).real_values(dense)
    assert read is not None
    assert np.array_equal(read, values)
    assert np.array_equal(run(content, [np.zeros(shape, np.float32)])[0], values)


@pytest.mark.parametrize(
    ("dtype", "numbers", "limits"),
    [
        ("INT4", [1, -8, 7], (-8, 7)),
        ("UINT4", [1, 15, 8], (0, 15)),
        ("INT2", [1, -2, -1, 0, 1], (-2, 1)),
    ],
)
def test_numbers_of_few_bits_are_unpacked_lowest_first(
    dtype: str, numbers: list[int], limits: tuple[int, int]
) -> None:
    bits = int(dtype[-1])
    packed = sum((one & (2**bits - 1)) << bits * at for at, one in enumerate(numbers))
    writer, shape = GraphWriter(), (len(numbers), 1)
    raw = np.frombuffer(packed.to_bytes(2, "little"), np.uint8)
    tensor = writer.tensor("weights", shape, dtype, (0.5, 0), raw)
    graph = Graph(writer.content([], []))
    assert graph.values(tensor).tolist() == [[one] for one in numbers]
    real = graph.real_values(tensor)
    assert real is not None
    assert real.ravel().tolist() == [one / 2 for one in numbers]
    assert graph.tensors[tensor].limits == limits


SEEDS = st.integers(0, 2**32 - 1)


def drawn(seed: int) -> NDArray[np.float64]:
    """Values with tails of some length, half of them cut off at zero or not."""
    rng = np.random.default_rng(seed)
    values = rng.standard_t(rng.integers(2, 30), 4000) * 10 ** rng.uniform(-3, 3)
    return np.asarray(np.maximum(values, 0) if seed % 2 else values)


@settings(max_examples=25)
@given(SEEDS, st.floats(0.1, 1.2), st.floats(0.1, 1.2), st.sampled_from([255, 65535]))
def test_the_error_is_that_of_quantizing(seed: int, low: float, high: float, steps: int) -> None:
    values = drawn(seed)
    tried = QuantizedRange(low * min(0.0, values.min()), high * values.max(), steps)
    (found,) = squared_errors(np.sort(values), np.array([[tried.low, tried.high]]), steps)
    wanted = tried.squared_error(values) * len(values)
    assert found == pytest.approx(wanted, rel=0.15)


@settings(max_examples=25)
@given(SEEDS)
def test_the_chosen_range_is_no_worse_than_the_known_one_or_all_values(seed: int) -> None:
    values = drawn(seed)
    known = QuantizedRange(0.6 * min(0.0, values.min()), 0.6 * values.max())
    whole = QuantizedRange(min(0.0, values.min()), values.max())
    found = least_error_range(values, known)
    assert found.low <= 0 <= found.high
    assert -128 <= found.quantization[1] <= 127
    error = found.squared_error(values)
    for other in (known, whole):
        assert error <= 1.1 * other.squared_error(values)


@settings(max_examples=25)
@given(SEEDS)
def test_a_range_of_16_bits_stays_the_same_on_both_sides_of_zero(seed: int) -> None:
    values = drawn(seed)
    found = least_error_range(values, QuantizedRange(-1e9, 1e9, 65535))
    assert found.low == -found.high
    assert found.squared_error(values) < QuantizedRange(-1e9, 1e9, 65535).squared_error(values)


@given(st.floats(1e-6, 1e6), st.integers(-128, 127))
def test_a_range_has_the_quantization_that_it_is_of(scale: float, zero_point: int) -> None:
    scale = float(np.float32(scale))
    tensor = GraphTensor(0, "y", (1,), "int8", (scale,), (zero_point,), 0, constant=False)
    known = range_of(tensor)
    assert known is not None
    found, point = known.quantization
    assert found == pytest.approx(scale, rel=1e-6)
    assert point == zero_point
    raw = np.arange(-128, 128, dtype=np.int8)
    assert known.nearest(tensor.real(raw)) == pytest.approx(tensor.real(raw), rel=1e-9)


def test_values_that_are_all_zero_keep_the_known_range() -> None:
    known = QuantizedRange(-1.0, 2.0)
    assert least_error_range(np.zeros(10), known) == known


LARGE = np.array([[100.0, 0.0]], np.float32)
SMALL = np.array([[1.0, 0.0]], np.float32)


Layer = tuple[str, float | str | None]

EXP: Layer = ("EXP", None)
ABS: Layer = ("ABS", None)
WITH_ITSELF: Layer = ("SUB", "itself")


def onset(
    given: NDArray[np.float32], *layers: Layer, unseen: int | None = None
) -> NonFiniteOnset | None:
    """Where it begins in layers that each take the one before.

    Args:
        given: the input.
        layers: an operator, and its other operand: a constant, "itself", or None.
        unseen: the layer whose output is not observed.

    """
    kinds = {"MUL": schema.MulOptionsT, "SUB": schema.SubOptionsT}
    graph = GraphWriter()
    tensors = [graph.tensor("x", (1, 2), "FLOAT32")]
    for at, (name, operand) in enumerate(layers):
        read = [tensors[-1]]
        if operand == "itself":
            read *= 2
        elif operand is not None:
            read.append(graph.constant(f"constant {at}", np.array([operand], np.float32)))
        tensors.append(graph.tensor(f"y{at}", (1, 2), "FLOAT32"))
        graph.operator(name, read, [tensors[-1]], kinds[name]() if name in kinds else None)
    content = graph.content(tensors[:1], tensors[-1:])
    seen: dict[int, Values] = whole(Graph(content), given, "builtin", content)
    if unseen is not None:
        del seen[tensors[unseen + 1]]
    return non_finite_onset(Graph(content), seen)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_constant_that_is_not_finite_is_named(value: float) -> None:
    """Infinity by zero is NaN, by one infinity."""
    kind = "NaN" if np.isnan(value) else "infinity"
    assert onset(SMALL, ABS, ("MUL", value)) == NonFiniteOnset(
        "NaN", 1, "MUL", f"whose constant 'constant 1' holds {kind}"
    )


def test_infinity_matters_where_it_comes_out_and_nan_of_it_names_where_it_begins() -> None:
    assert onset(LARGE, EXP, ("MINIMUM", 1.0)) is None
    assert onset(LARGE, EXP, ABS) == NonFiniteOnset("infinity", 0, "EXP", "whose inputs are finite")
    assert onset(SMALL, EXP, WITH_ITSELF, ABS) is None
    assert onset(LARGE, EXP, WITH_ITSELF, ABS) == NonFiniteOnset(
        "NaN",
        1,
        "SUB",
        "which is given infinity; that begins in EXP (operator 0), whose inputs are finite",
    )


def test_what_the_model_is_given_or_is_not_seen_is_no_operators_fault() -> None:
    given = np.array([[np.nan, 1.0]], np.float32)
    assert onset(given, ABS) == NonFiniteOnset("NaN", None, "", "the model is given it")
    assert onset(LARGE, EXP, WITH_ITSELF, ABS, unseen=1) == NonFiniteOnset(
        "NaN", None, "", "the operator in which it begins is not seen"
    )


def test_arms_are_named_together_where_it_begins_alike() -> None:
    one = NonFiniteOnset("NaN", 3, "EXP", "whose inputs are finite")
    other = NonFiniteOnset("infinity", 5, "MUL", "whose constant 'c' holds infinity")
    begins = "it begins in EXP (operator 3), whose inputs are finite"
    assert said_of_arms({Arm.ORIGINAL: None, Arm.TWIN: None, Arm.DEVICE: None}) == ""
    assert said_of_arms({Arm.ORIGINAL: None, Arm.TWIN: None, Arm.DEVICE: one}) == (
        f"NaN on device: {begins}; original and twin are finite"
    )
    assert said_of_arms({Arm.ORIGINAL: other, Arm.TWIN: one, Arm.DEVICE: one}) == (
        "infinity on original: it begins in MUL (operator 5), whose constant 'c' holds infinity;"
        f" NaN on twin and device: {begins}"
    )
