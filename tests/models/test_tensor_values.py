"""Values of tensors: as files store them, within ranges, and where they are not finite."""

from __future__ import annotations

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.core.arm import Arm
from edgeflare.models.model_probe import Values
from edgeflare.models.non_finite_values import NonFiniteOnset, non_finite_onset, said_of_arms
from edgeflare.models.quantized_range import (
    QuantizedRange,
    least_error_range,
    range_of,
    squared_errors,
)
from edgeflare.models.tflite_graph import Graph, GraphTensor
from graph_writer import GraphWriter
from prepared_weights import compressed_along
from tampering import run, whole


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
