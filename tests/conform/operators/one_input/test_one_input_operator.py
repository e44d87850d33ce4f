"""Laws of all operators of one tensor: models say their configurations, settings follow others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.conform.graphs.operator_graph import GraphValue, OperatorGraph, Quantization
from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.conform.operators.one_input.constants_and_options import constant
from edgeflare.conform.operators.one_input.one_input_operator import OneInputOperator
from edgeflare.conform.operators.one_input.one_input_operators import ONE_INPUT_OPERATORS
from edgeflare.conform.specification.operator_specification import UnknownOperatorForm
from edgeflare.conform.specification.settings import Configuration

Cell = tuple[OneInputOperator, str]
CELLS: list[Cell] = [(one, type_) for one in ONE_INPUT_OPERATORS for type_ in one.types]
SEEDS = st.integers(0, 2**32 - 1)
QUANTIZED = Quantization((0.5,), 3)


@given(cell=st.sampled_from(CELLS), seed=SEEDS)
def test_a_model_is_read_as_it_was_built(cell: Cell, seed: int) -> None:
    specification, type_ = cell
    rng = np.random.default_rng(seed)
    drawn = specification.draw(type_, rng)
    if specification.invalid(type_, drawn) is None:
        reading = specification.read(specification.build(type_, drawn, rng))
        assert (reading.type, dict(reading.configuration)) == (type_, dict(drawn))


@pytest.mark.parametrize("cell", CELLS, ids=lambda one: f"{one[0].operator}-{one[1]}")
def test_nearly_all_that_is_drawn_is_valid_and_small(cell: Cell) -> None:
    specification, type_ = cell
    rng = np.random.default_rng(0)
    drawn = [specification.draw(type_, rng) for _ in range(60)]
    valid = [one for one in drawn if specification.invalid(type_, one) is None]
    assert len(valid) >= 54
    graphs = [specification.build(type_, one, rng) for one in valid]
    assert max(value.size for graph in graphs for value in graph.values) <= 1000


@given(cell=st.sampled_from(CELLS), seed=SEEDS)
def test_settings_follow_one_that_was_changed(cell: Cell, seed: int) -> None:
    specification, type_ = cell
    rng = np.random.default_rng(seed)
    configuration, other = specification.draw(type_, rng), specification.draw(type_, rng)
    changed = str(rng.choice(sorted(configuration)))
    mixed = {**configuration, changed: other[changed]}
    followed = specification.adapted(type_, mixed, changed)
    assert specification.adapted(type_, followed, changed) == followed
    if (fault := specification.invalid(type_, followed)) is not None:
        assert "size 0" in fault


@given(cell=st.sampled_from(CELLS), seed=SEEDS)
def test_an_operator_takes_the_tensor_that_another_model_is_given(cell: Cell, seed: int) -> None:
    specification, type_ = cell
    rng = np.random.default_rng(seed)
    one, other = (specification.draw(type_, rng) for _ in range(2))
    if specification.invalid(type_, other) is None:
        graph = specification.build(type_, other, rng)
        wanted = graph.values[graph.inputs[0]]
        fed = specification.with_input(type_, one, wanted)
        assert fed is not None
        if specification.invalid(type_, fed) is None:
            model = specification.build(type_, fed, rng)
            read = model.values[model.inputs[0]]
            assert (read.shape, read.quantization) == (wanted.shape, wanted.quantization)


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
        (softmax(GraphValue("int8", (2, 3)), GraphValue("int8", (1,))), "more than one tensor"),
        (mean(GraphValue("float32", (2, 3))), "of 1 operands"),
        (mean(GraphValue("float32", (2, 3)), constant([1, 1])), "twice"),
        (mean(GraphValue("float32", (2,) * 6), constant([1])), "6 dimensions"),
        (mean(GraphValue("float64", (2, 3)), constant([1])), "float64"),
    ],
)
def test_a_model_of_another_form_is_not_read(graph: OperatorGraph, why: str) -> None:
    with pytest.raises(UnknownOperatorForm) as raised:
        known_operators()[graph.nodes[0].operator].read(graph)
    assert why in str(raised.value)


def test_axes_beyond_the_rank_are_a_fault() -> None:
    known = known_operators()["MEAN"]
    settings: Configuration = {"shape": (2, 3), "keep_dims": False}
    assert known.invalid("float32", {**settings, "axes": (1,)}) is None
    assert "axes (2,)" in str(known.invalid("float32", {**settings, "axes": (2,)}))
    assert "twice" in str(known.invalid("float32", {**settings, "axes": (1, -1)}))


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
