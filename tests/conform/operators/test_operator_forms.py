"""What single operators take, refuse, choose and compute, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from edgeflare.conform.operator_graph import (
    GraphValue,
    OperatorGraph,
    Quantization,
    Values,
)
from edgeflare.conform.operators.elementwise.binary_operators import make_values_equal
from edgeflare.conform.operators.one_input_operator import OneInputOperator
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.operators.pools import AVERAGE_POOL, L2_POOL, MAX_POOL
from edgeflare.conform.operators.window_settings import Window, window_values
from edgeflare.conform.specification.activation_tensors import Operand, UnknownOperatorForm
from edgeflare.conform.specification.parameter import Configuration, Setting

ONES: Setting = (1,) * 5
STRIDED: dict[str, Setting] = {
    **dict.fromkeys(("shape", "end", "strides"), ONES),
    **dict.fromkeys(("begin_mask", "end_mask", "shrink_axis_mask"), 0),
    "begin": (0,) * 5,
}


@pytest.mark.parametrize(
    ("operator", "type_", "options", "version"),
    [
        ("TRANSPOSE", "int8", {"shape": (2, 3), "perm": (1, 0)}, 2),
        ("TRANSPOSE", "float32", {"shape": (2,) * 5, "perm": (4, 1, 2, 3, 0)}, 4),
        ("SPLIT", "int32", {"shape": (2, 4), "axis": 1, "parts": 2}, 3),
        ("BROADCAST_TO", "bool", {"shape": (1,), "new_shape": (3,), "index_type": "int32"}, 2),
        ("STRIDED_SLICE", "float32", {**STRIDED, "offset": False}, 4),
        ("STRIDED_SLICE", "float32", {**STRIDED, "offset": True}, 8),
    ],
)
def test_a_model_has_the_lowest_version_that_does(
    operator: str, type_: str, options: dict[str, Setting], version: int
) -> None:
    known = known_operators()[operator]
    quantization = {"input_scale": 0.5, "input_zero_point": 3} if type_ == "int8" else {}
    graph = known.build(type_, {**options, **quantization}, np.random.default_rng(0))
    assert graph.nodes[0].version == version


def test_a_scale_or_an_option_that_no_parameter_stands_in_is_not_known() -> None:
    reshape, rng = known_operators()["RESHAPE"], np.random.default_rng(0)
    graph = reshape.build("int8", reshape.draw("int8", rng), rng)
    (at,) = graph.outputs
    values = list(graph.values)
    values[at] = replace(values[at], quantization=Quantization((3.0,), 1))
    with pytest.raises(UnknownOperatorForm):
        reshape.read(replace(graph, values=tuple(values)))
    concatenation = known_operators()["CONCATENATION"]
    graph = concatenation.build("float32", concatenation.draw("float32", rng), rng)
    bounded = {**graph.nodes[0].options, "fusedActivationFunction": "RELU"}
    with pytest.raises(UnknownOperatorForm):
        concatenation.read(replace(graph, nodes=(replace(graph.nodes[0], options=bounded),)))


QUANTIZED = Quantization((0.5,), 3)


@pytest.mark.parametrize(
    ("operator", "type_", "value"),
    [
        ("MEAN", "int8", GraphValue("float32", (2, 3))),
        ("MEAN", "int8", GraphValue("int8", (2, 3))),
        ("MEAN", "int8", GraphValue("int8", (2, 3), Quantization((0.5, 0.25), 0, 0))),
        ("MEAN", "int16x8", GraphValue("int16", (2, 3), QUANTIZED)),
        ("MEAN", "int8", GraphValue("int8", (), QUANTIZED)),
        ("RESIZE_BILINEAR", "int8", GraphValue("int8", (2, 3, 4), QUANTIZED)),
    ],
)
def test_a_tensor_is_not_taken(operator: str, type_: str, value: GraphValue) -> None:
    specification = known_operators()[operator]
    drawn = specification.draw(type_, np.random.default_rng(1))
    assert specification.with_input(type_, drawn, value) is None


def axes(several: list[int]) -> GraphValue:
    return GraphValue("int32", (len(several),)).constant(np.array(several))


def mean(*operands: GraphValue) -> OperatorGraph:
    return OperatorGraph.of_operator("MEAN", operands, [GraphValue("float32", (2,))])


def softmax(result: GraphValue, *others: GraphValue) -> OperatorGraph:
    operands = [GraphValue("int8", (2, 3), QUANTIZED), *others]
    return OperatorGraph.of_operator("SOFTMAX", operands, [result], {"beta": 1.0}, 2)


@pytest.mark.parametrize(
    ("graph", "why"),
    [
        (softmax(GraphValue("int8", (2, 3), QUANTIZED)), "quantized as"),
        (softmax(GraphValue("int8", (3, 2), Quantization((1 / 256,), -128))), "(3, 2)"),
        (softmax(GraphValue("float32", (2, 3))), "float32"),
        (softmax(GraphValue("int8", (2, 3)), GraphValue("int8", (1,))), "other than one tensor"),
        (mean(GraphValue("float32", (2, 3))), "operand 1 is no constant"),
        (mean(GraphValue("float32", (2, 3)), axes([1, 1])), "twice"),
        (mean(GraphValue("float32", (2,) * 6), axes([1])), "rank 5"),
        (mean(GraphValue("float64", (2, 3)), axes([1])), "float64"),
    ],
)
def test_a_model_of_another_form_is_not_read(graph: OperatorGraph, why: str) -> None:
    with pytest.raises(UnknownOperatorForm) as raised:
        known_operators()[graph.nodes[0].operator].read(graph)
    assert why in str(raised.value)


def test_a_fault_names_what_is_wrong_or_would_fit() -> None:
    known = known_operators()["MEAN"]
    settings: Configuration = {"shape": (2, 3), "keep_dims": False}
    assert known.invalid("float32", {**settings, "axes": (1,)}) is None
    assert "axes (2,)" in str(known.invalid("float32", {**settings, "axes": (2,)}))
    assert "twice" in str(known.invalid("float32", {**settings, "axes": (1, -1)}))
    fault = known_operators()["TRANSPOSE"].invalid("float32", {"shape": (2, 3, 4), "perm": (1, 0)})
    assert fault == "perm is (1, 0), where (1, 0, 2) would fit"


def test_a_version_is_the_lowest_that_does() -> None:
    resize = known_operators()["RESIZE_NEAREST_NEIGHBOR"]
    rng = np.random.default_rng(2)
    drawn = {**resize.draw("uint8", rng), "align_corners": False, "half_pixel_centers": False}
    expected: list[tuple[Configuration, int]] = [({}, 1), ({"align_corners": True}, 3)]
    for changes, version in expected:
        graph = resize.build("uint8", {**drawn, **changes}, rng)
        assert graph.nodes[0].version == version
        # Whatever its version, a model is read as it stands.
        later = replace(graph, nodes=(replace(graph.nodes[0], version=4),))
        assert resize.read(later).configuration == {**drawn, **changes}


TWO_BY_ONE: Configuration = {
    "batch": 1,
    "height": 3,
    "width": 1,
    "channels": 1,
    "kernel_h": 2,
    "kernel_w": 1,
    "stride_h": 2,
    "stride_w": 1,
    "padding": "SAME",
    "activation": "NONE",
}


def pooled(pool: OneInputOperator, activation: str) -> list[float]:
    graph = pool.build("float32", {**TWO_BY_ONE, "activation": activation}, np.random.default_rng())
    raw = np.array([3.0, -4.0, -8.0], np.float32).reshape(1, 3, 1, 1)
    node = graph.nodes[0]
    operand = Operand(graph.values[0], raw)
    (exact,) = pool.exact(node.options, [operand], graph.results(node))
    return [float(one) for one in exact.values.ravel()]


@pytest.mark.parametrize(
    ("pool", "activation", "expected"),
    [
        (MAX_POOL, "NONE", [3.0, -8.0]),
        (MAX_POOL, "RELU6", [3.0, 0.0]),
        (MAX_POOL, "RELU_N1_TO_1", [1.0, -1.0]),
        (AVERAGE_POOL, "NONE", [-0.5, -8.0]),
        (L2_POOL, "NONE", [np.sqrt(12.5), 8.0]),
        (L2_POOL, "RELU6", [np.sqrt(12.5), 6.0]),
    ],
)
def test_a_window_beyond_the_end_has_what_is_there_alone(
    pool: OneInputOperator, activation: str, expected: list[float]
) -> None:
    assert pooled(pool, activation) == pytest.approx(expected)


windows = st.builds(
    Window,
    size=st.integers(0, 20),
    kernel=st.integers(1, 6),
    stride=st.integers(1, 6),
    dilation=st.integers(1, 4),
    padding=st.sampled_from(["SAME", "VALID"]),
)


@given(windows)
def test_windows_hold_the_values_at_their_places(window: Window) -> None:
    assume(window.count >= 0)
    values = np.arange(1.0, window.size + 1).reshape(1, window.size, 1)
    found = window_values(values, [window])
    assert found.shape == (1, window.count, window.kernel, 1)
    for at in range(window.count):
        for tap in range(window.kernel):
            place = at * window.stride + tap * window.dilation - window.before
            expected = values[0, place, 0] if 0 <= place < window.size else 0.0
            assert found[0, at, tap, 0] == expected


@given(windows)
def test_the_last_window_that_fits_is_there_and_no_more(window: Window) -> None:
    end = (window.count - 1) * window.stride + window.reach
    if window.padding == "VALID":
        assume(window.size >= window.reach)
        assert end <= window.size < end + window.stride
    else:
        assert 0 <= (window.count * window.stride) - window.size < window.stride
        assert window.after - window.before in (0, 1)


def operand(shape: tuple[int, ...], seed: int, *, constant: bool = False) -> Operand:
    raw = np.asarray(np.random.default_rng(seed).uniform(size=shape), np.float32)
    value = GraphValue("float32", shape)
    return Operand(value.constant(raw) if constant else value, raw)


def equal(first: Values, second: Values) -> float:
    return float(np.mean(first == second))


@pytest.mark.parametrize(
    "shapes",
    [((2, 4), (2, 4)), ((4,), (3, 4)), ((3, 4), ()), ((3, 1), (1, 4)), ((2, 1, 4), (6, 1))],
)
@pytest.mark.parametrize("constant", [None, 0, 1])
def test_some_values_of_a_comparison_are_equal_and_others_not(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], constant: int | None
) -> None:
    first, second = (operand(shape, at, constant=constant == at) for at, shape in enumerate(shapes))
    before = [one.raw.copy() for one in (first, second)]
    make_values_equal([first, second])
    assert equal(*before) == 0
    assert 0 < equal(first.raw, second.raw) < 1
    if constant is not None:
        assert (first, second)[constant].raw.tobytes() == before[constant].tobytes()


QUANTIZED_VALUES = GraphValue("int8", (4,), Quantization((0.5,), 0))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (operand((0, 3), 0), operand((1, 3), 1)),
        (operand((1,), 0), operand((0,), 1)),
        (operand((4,), 0, constant=True), operand((4,), 1, constant=True)),
        tuple(Operand(QUANTIZED_VALUES, np.arange(at, at + 4, dtype=np.int8)) for at in (0, 9)),
    ],
    ids=["none of the first", "none of the second", "constants", "quantized"],
)
def test_other_operands_stay_as_they_are(first: Operand, second: Operand) -> None:
    before = first.raw.tobytes(), second.raw.tobytes()
    make_values_equal([first, second])
    assert (first.raw.tobytes(), second.raw.tobytes()) == before


def test_a_single_index_ends_one_behind_where_it_begins() -> None:
    """As converters write it; kernels do not look at the end of such an axis."""
    strided, rng = known_operators()["STRIDED_SLICE"], np.random.default_rng(0)
    singles = 0
    for settings in (strided.draw("float32", rng) for _ in range(60)):
        single = settings["shrink_axis_mask"]
        assert isinstance(single, int)
        begin, end = (np.array(settings[name]) for name in ("begin", "end"))
        at = [axis for axis in range(len(begin)) if single >> axis & 1]
        assert (end[at] == (1 if settings["offset"] else begin[at] + 1)).all()
        singles += len(at)
    assert singles
