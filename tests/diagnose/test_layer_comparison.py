"""Layers of two files: matched by their place, compared by what rounding explains, and tied."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from edgeflare.diagnose.constant_error import ConstantError, compare_constants
from edgeflare.diagnose.layer_difference import difference
from edgeflare.diagnose.layer_matching import match_layers
from edgeflare.diagnose.rounding_noise import clipped
from edgeflare.diagnose.tensor_ties import tied_tensors
from edgeflare.models.graph_parts import extract
from edgeflare.models.tflite_graph import Graph, GraphTensor
from fitted_networks import NETS, Net, judged
from graph_writer import GraphWriter, write_state_model
from public_cases import CASES
from requantizing import CONVERTERS, Converter, requantized
from tampering import COMPRESSED, ORIGINAL, constant_of, edited, with_constant

CONTENT, FLOAT = COMPRESSED.read_bytes(), ORIGINAL.read_bytes()
MODELS = {
    "example": (COMPRESSED, ORIGINAL),
    **{
        name: (CASES / name / "compressed.tflite", CASES / name / "original.tflite")
        for name in ("detection_postprocess", "fp16_mask_nan", "gru_dynamic", "yolo_concat")
    },
}


def nameless(model: Any) -> None:
    for tensor in model.subgraphs[0].tensors:
        tensor.name = b""


def reordered(content: bytes, rng: np.random.Generator) -> tuple[bytes, list[int]]:
    """A model whose operators are in another order of execution, and the old positions."""
    graph, order = Graph(content), list[int]()
    needs = {one.index: {graph.made_by.get(t) for t in one.inputs} for one in graph.operators}
    while waiting := [one for one in needs if one not in order]:
        ready = [one for one in waiting if needs[one] - {None} <= set(order)]
        order.append(int(rng.choice(ready)))

    def change(model: Any) -> None:
        operators = model.subgraphs[0].operators
        model.subgraphs[0].operators = [operators[one] for one in order]

    return edited(content, change), order


def partners(compressed: bytes, original: bytes) -> dict[int, int]:
    found = match_layers(Graph(compressed), Graph(original))
    assert list(found) == sorted(found)
    return {op: there for op, (there, _) in found.items()}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("named", [True, False])
def test_no_order_of_operators_changes_a_match(model: str, named: bool) -> None:
    content, original = (path.read_bytes() for path in MODELS[model])
    wanted, graph = partners(content, original), Graph(content)
    layers = [one for one in graph.layers if one.name not in ("QUANTIZE", "DEQUANTIZE", "CAST")]
    assert set(wanted) == {one.index for one in layers}
    if not named:
        content, original = edited(content, nameless), edited(original, nameless)
    rng = np.random.default_rng(1)
    for _ in range(3):
        changed, order = reordered(content, rng)
        assert {order[op]: there for op, there in partners(changed, original).items()} == wanted


@st.composite
def _drawn(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], int]:
    """What each operator of a network reads, the input being -1, and a seed for all else."""
    size = draw(st.integers(3, 25))
    reads = [
        tuple(draw(st.integers(max(-1, at - 6), at - 1)) for _ in range(draw(st.integers(1, 2))))
        for at in range(size)
    ]
    return reads, draw(st.integers(0, 2**32 - 1))


def _written(reads: list[tuple[int, ...]], convert: Any, names: list[str]) -> bytes:
    """A network of ADDs and RELUs, with a DEQUANTIZE behind a QUANTIZE where `convert` says so."""
    writer, shape = GraphWriter(), (1, 4)
    given = writer.tensor("x", shape, "FLOAT32")
    made: dict[int, int] = {-1: given}
    for at, sources in enumerate(reads):
        taken = {source: made[source] for source in sources}
        for source, tensor in taken.items():
            if convert():
                low = writer.tensor("", shape, "INT8", (0.1, 0))
                taken[source] = writer.tensor("", shape, "FLOAT32")
                writer.operator("QUANTIZE", [tensor], [low], None, 1)
                writer.operator("DEQUANTIZE", [low], [taken[source]], None, 2)
        read = [taken[source] for source in sources]
        made[at] = writer.tensor(names[at], shape, "FLOAT32")
        options = schema.AddOptionsT() if len(read) > 1 else None
        writer.operator("ADD" if len(read) > 1 else "RELU", read, [made[at]], options, 1)
    used = {source for sources in reads for source in sources}
    ends = [made[at] for at in range(len(reads)) if at not in used]
    return writer.content([given], ends)


@settings(max_examples=25, deadline=None)
@given(_drawn())
def test_in_any_network_with_any_conversions_each_layer_is_found(
    drawn: tuple[list[tuple[int, ...]], int],
) -> None:
    reads, seed = drawn
    rng = np.random.default_rng(seed)
    names = [f"layer {at}" for at in range(len(reads))]
    original = _written(reads, lambda: False, names)
    converted = _written(reads, lambda: rng.random() < 0.3, names)
    twin, order = reordered(converted, rng)
    graph, known = Graph(twin), {f"layer {at}": at for at in range(len(reads))}
    layers = [one for one in graph.layers if one.name in ("ADD", "RELU")]
    wanted = {one.index: known[graph.tensors[one.outputs[0]].name] for one in layers}
    assert partners(twin, original) == wanted
    assert len(order) == len(graph.operators)


def test_names_mislead_nobody_where_the_structure_tells_layers_apart() -> None:
    graph = Graph(CONTENT)

    def exchanged(model: Any) -> None:
        made = [model.subgraphs[0].tensors[one.outputs[0]] for one in graph.layers]
        for tensor, other in zip(made, [one.name for one in reversed(made)], strict=True):
            tensor.name = other

    assert partners(edited(CONTENT, exchanged), FLOAT) == partners(CONTENT, FLOAT)


def test_heads_of_one_shape_that_changed_places_are_told_apart_by_name() -> None:
    paths = (CASES / "output_swapped" / name for name in ("compressed.tflite", "original.tflite"))
    compressed, original = (Graph(path.read_bytes()) for path in paths)
    found = match_layers(compressed, original)
    names = [
        [
            graph.tensors[graph.operators[at].outputs[0]].name
            for graph, at in ((compressed, op), (original, there))
        ]
        for op, (there, by) in found.items()
        if by == "name"
    ]
    assert len(names) == 2
    assert all(one == other for one, other in names)


def test_a_layer_that_was_left_out_leaves_the_others_matched() -> None:
    """The original without its softmax, as many are trained."""
    original = Graph(FLOAT)
    logits = Graph(extract(original, 0, original.layers[-2].index).content)
    found = match_layers(Graph(CONTENT), logits)
    assert len(found) == len(logits.layers)
    assert Graph(CONTENT).layers[-1].index not in found


# Tensors.

QUANTIZED = GraphTensor(0, "t", (2, 3), "int8", (0.5,), (3,), 0, constant=False)
REAL = replace(QUANTIZED, dtype="float32", scales=(), zero_points=())
INT8 = arrays.arrays(np.int8, (2, 3))


@given(INT8, INT8)
def test_units_real_values_and_noise_fit_together(a: NDArray[np.int8], b: NDArray[np.int8]) -> None:
    found = difference(QUANTIZED, a, b)
    assert found.max_error_steps is not None
    assert found.max_error_steps == np.abs(a.astype(int) - b).max()
    assert found.max_error == pytest.approx(0.5 * found.max_error_steps)
    assert found.rmse <= found.max_error + 1e-9
    assert -1.0 <= found.cosine <= 1.0
    assert found.parted == (a != b).any()
    assert (found.snr_db is None) == (not found.parted)
    json.dumps(asdict(found), allow_nan=False)


def test_differences_are_in_units_that_do_not_wrap_around_and_decibels() -> None:
    """Float sums taken in another order have not parted."""
    low, high = np.full((2, 3), -128, np.int8), np.full((2, 3), 127, np.int8)
    assert difference(QUANTIZED, low, high).max_error_steps == 255
    wanted = np.full((2, 3), 100, np.float32)
    little, much = difference(REAL, wanted, wanted + 1), difference(REAL, wanted, wanted + 10)
    assert little.snr_db is not None
    assert much.snr_db is not None
    assert little.snr_db - much.snr_db == pytest.approx(20)
    wanted = np.array([[1e3, 1, 0], [0, 0, 0]], np.float32)
    assert not difference(REAL, wanted, wanted * np.float32(1 + 1e-6)).parted
    assert difference(REAL, wanted, wanted + np.float32(0.1)).parted
    place = np.array([2_000_000], np.int32)
    assert difference(replace(REAL, dtype="int32"), place, place + 1).parted


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_as_far_as_can_be(value: float) -> None:
    wanted = np.ones((2, 3), np.float32)
    got = wanted.copy()
    got[0, 0] = value
    found = difference(REAL, wanted, got)
    assert found.parted
    json.dumps(asdict(found), allow_nan=False)
    again = got.copy()
    again[1, 1] *= np.float32(1 + 1e-6)
    assert not difference(REAL, got, again).parted  # as far as both are alike


def test_values_have_the_scale_and_are_clipped_to_the_range_of_their_own_channel() -> None:
    tensor = GraphTensor(0, "", (1, 2), "int8", (0.01, 1.0), (0, -128), 1, constant=False)
    assert tensor.real(np.array([[1, 1]], np.int8)).tolist() == [[0.01, 129.0]]
    assert clipped(tensor, np.array([[9.0, 9.0]])).tolist() == [[1.27, 9.0]]
    assert clipped(tensor, np.array([[-9.0, -9.0]])).tolist() == [[-1.28, 0.0]]


# Constants.

LAYER = 0
LAYER_INT8, LAYER_FLOAT = (
    extract(Graph(path.read_bytes()), LAYER, LAYER).content for path in (COMPRESSED, ORIGINAL)
)
"""The first layer alone, a convolution."""
ORIGINAL_BIAS = Graph(LAYER_FLOAT).operators[LAYER].inputs[2]
CHANNELS = Graph(LAYER_FLOAT).tensors[ORIGINAL_BIAS].shape[0]


def compared(compressed: bytes, original: bytes) -> ConstantError:
    found = compare_constants(Graph(compressed), LAYER, Graph(original), LAYER)
    assert found is not None
    return found


def with_bias(values: NDArray[np.float32]) -> bytes:
    """The original, with another bias in its first layer."""
    return with_constant(LAYER_FLOAT, constant_of(LAYER_FLOAT, LAYER, 2), lambda _: values)


def _set_first(value: np.int64, raw: NDArray[Any]) -> NDArray[Any]:
    """The lowest bits of a value in the place of the first one."""
    return np.concatenate([[value.astype(raw.dtype)], raw[1:]])


def test_a_bias_that_its_integers_cannot_hold_overflows() -> None:
    """Whether a converter clips it or lets it wrap; one that just fits does not."""
    graph = Graph(LAYER_INT8)
    step = graph.tensors[graph.operators[LAYER].inputs[2]].scales[0]
    name = constant_of(LAYER_INT8, LAYER, 2)
    bias = np.zeros(CHANNELS, np.float32)
    for steps, overflows in ((2.0e9, False), (1.0e10, True)):
        bias[0] = steps * step
        original = with_bias(bias)
        clipped = requantized(original, LAYER_INT8, Converter())
        wrapped = with_constant(clipped, name, partial(_set_first, np.int64(steps)))
        for file in (clipped, wrapped):
            found = compared(file, original)
            assert (found.beyond, found.overflows) == (overflows, overflows)


@pytest.mark.slow
@pytest.mark.parametrize("converter", CONVERTERS.values(), ids=CONVERTERS)
@settings(max_examples=20)
@given(
    steps=st.lists(
        st.floats(-1e9, 1e9, width=32) | st.floats(-1e5, 1e5, width=32),
        min_size=CHANNELS,
        max_size=CHANNELS,
    )
)
def test_what_a_converter_rounds_is_explained_and_a_step_more_is_not(
    converter: Converter, steps: list[float]
) -> None:
    """Biases of any number of steps: of many, float32 arithmetic loses whole ones."""
    graph = Graph(LAYER_INT8)
    scales = graph.tensors[graph.operators[LAYER].inputs[2]].scales
    bias = (np.array(steps) * np.array(scales)).astype(np.float32)
    original = with_bias(bias)
    compressed = requantized(original, LAYER_INT8, converter)
    assert not compared(compressed, original).beyond
    if np.abs(steps).max() < 1e5:
        wrong = with_constant(compressed, constant_of(LAYER_INT8, LAYER, 2), lambda raw: raw + 2)
        assert compared(wrong, original).beyond


def test_a_bias_that_float32_brought_over_half_a_step_is_explained() -> None:
    """As in a published int8 ResNet-8: .50157 steps, where its last place is .0053 of them."""
    graph = Graph(LAYER_INT8)
    step = graph.tensors[graph.operators[LAYER].inputs[2]].scales[0]
    bias, below = np.zeros(CHANNELS, np.float32), np.zeros(CHANNELS, np.int32)
    bias[0] = np.float32(60_000.5 * step) * np.float32(1 + 2**-22)
    assert 0.501 < float(bias[0]) / step - 60_000 < 0.52
    found = []
    for steps in (60_000, 59_999):
        below[0] = steps
        name = constant_of(LAYER_INT8, LAYER, 2)
        compressed = with_constant(LAYER_INT8, name, lambda _: below)
        found.append(compared(compressed, with_bias(bias)))
    assert not found[0].beyond
    assert found[1].steps > 1.5


def test_weights_beyond_the_largest_step_are_cut_off_to_it() -> None:
    """Scales that are chosen by least error, not by the largest weight, cut the largest off."""
    name = constant_of(LAYER_FLOAT, LAYER)

    def larger(weights: Any) -> Any:
        changed = weights.copy()
        at = np.abs(weights[0]).argmax()
        changed[0].flat[at] *= 1.2
        return changed

    assert not compared(LAYER_INT8, with_constant(LAYER_FLOAT, name, larger)).beyond
    assert compared(
        LAYER_INT8, with_constant(LAYER_FLOAT, name, lambda weights: weights * 1.2)
    ).beyond


def test_an_original_that_is_quantized_itself_may_be_off_by_half_its_steps_too() -> None:
    """Both were rounded from weights that neither has."""
    coarse, fine = Converter(per_tensor=True), Converter()
    one, other = (requantized(LAYER_FLOAT, LAYER_INT8, how) for how in (fine, coarse))
    found = compared(one, other)
    assert 0.5 < found.steps <= found.explained
    moved = with_constant(one, constant_of(one, LAYER), lambda raw: np.roll(raw, 1, axis=1))
    assert compared(moved, other).beyond


def test_constants_that_are_dequantized_as_the_model_runs_have_their_stored_steps() -> None:
    int8 = Graph(requantized(LAYER_FLOAT, LAYER_INT8, Converter()))
    weights = int8.tensors[int8.operators[LAYER].inputs[1]]

    def prepared(model: Any) -> None:
        """Store the weights as int8 behind a DEQUANTIZE, as weight-only files do."""
        writer = GraphWriter(model)
        stored = writer.constant("stored", int8.values(weights.index).astype(np.int8))
        writer.graph.tensors[stored].quantization = schema.QuantizationParametersT(
            scale=np.array(weights.scales, np.float32),
            zeroPoint=np.zeros(len(weights.scales), np.int64),
        )
        real = writer.tensor("real", weights.shape, "FLOAT32")
        convolution = writer.graph.operators[LAYER]
        given, _, bias = convolution.inputs
        convolution.inputs = [int(given), real, int(bias)]
        dequantize = writer.detached("DEQUANTIZE", [stored], [real], version=2)
        writer.graph.operators.insert(LAYER, dequantize)

    weight_only = Graph(edited(LAYER_FLOAT, prepared))
    found = compare_constants(weight_only, LAYER + 1, Graph(LAYER_FLOAT), LAYER)
    assert found is not None
    assert 0.4 < found.steps <= 0.5
    assert not found.beyond


# Tensors that have to be quantized alike.


def test_pools_and_reshapes_tie_and_the_rest_does_not(tmp_path: Path) -> None:
    """States stay."""
    found = tied_tensors(Graph(COMPRESSED.read_bytes()))
    assert [one.tensors for one in found] == [(12, 13), (14, 15, 19), (20,), (21,)]
    assert [one.sources for one in found] == [(12,), (14,), (20,), (21,)]
    content = write_state_model(tmp_path / "state.tflite", "INT8").read_bytes()
    assert tied_tensors(Graph(content)) == ()


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
def test_what_is_tied_to_a_constant_or_not_known_stays(name: str, movable: bool) -> None:
    graph = GraphWriter()
    x, first, second, y = (
        graph.tensor(one, (1, 4), "INT8", (0.1, 0)) for one in ("x", "first", "second", "y")
    )
    constant = graph.constant("c", np.ones((1, 4), np.int8), (0.1, 0))
    graph.operator("ADD", [x, x], [first], schema.AddOptionsT(), 2)
    graph.operator(name, [first] if name == "CEIL" else [first, constant], [second])
    graph.operator("ADD", [second, second], [y], schema.AddOptionsT(), 2)
    groups = tied_tensors(Graph(graph.content([x], [y])))
    found = {one for group in groups for one in group.tensors}
    assert found == ({first, second} if movable else set())
