"""Operators that move data: models that are read as they were built, and rules of what fits."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.conform.graphs.operator_graph import (
    GraphValue,
    OperatorGraph,
    Quantization,
    Values,
)
from edgeflare.conform.operators.movement.movement_operators import MOVEMENT_OPERATORS
from edgeflare.conform.operators.movement.movement_specification import MovementSpecification
from edgeflare.conform.specification.operator_specification import Operand, UnknownOperatorForm
from edgeflare.conform.specification.settings import Setting
from kernel_rows import kernel_answers

CELLS = [(one, type_) for one in MOVEMENT_OPERATORS for type_ in one.types]
seeds = st.integers(0, 2**32 - 1)


@given(cell=st.sampled_from(CELLS), seed=seeds)
def test_a_model_is_read_as_it_was_built(
    cell: tuple[MovementSpecification, str], seed: int
) -> None:
    known, type_ = cell
    rng = np.random.default_rng(seed)
    drawn = known.draw(type_, rng)
    if known.invalid(type_, drawn) is None:
        reading = known.read(known.build(type_, drawn, rng))
        assert (reading.type, dict(reading.configuration)) == (type_, dict(drawn))


@pytest.mark.parametrize("known", MOVEMENT_OPERATORS, ids=lambda one: one.operator)
def test_most_of_what_is_drawn_is_valid(known: MovementSpecification) -> None:
    rng = np.random.default_rng(0)
    drawn = [known.invalid(one, known.draw(one, rng)) for one in known.types for _ in range(20)]
    assert drawn.count(None) >= 0.9 * len(drawn)


@pytest.mark.parametrize("known", MOVEMENT_OPERATORS, ids=lambda one: one.operator)
def test_what_depends_on_a_changed_setting_follows_it(known: MovementSpecification) -> None:
    rng = np.random.default_rng(1)
    faults = []
    for type_ in known.types * 2:
        drawn = known.draw(type_, rng)
        for parameter in known.parameters(type_):
            simpler = [*islice(parameter.simpler(drawn[parameter.name]), 3)]
            for setting in (*simpler, parameter.draw(rng)):
                changed = {**drawn, parameter.name: setting}
                followed = known.adapted(type_, changed, parameter.name)
                assert known.adapted(type_, followed, parameter.name) == followed
                faults.append(known.invalid(type_, followed))
    assert faults.count(None) >= 0.95 * len(faults)


@given(cell=st.sampled_from(CELLS), seed=seeds)
def test_an_operator_takes_the_tensor_of_another(
    cell: tuple[MovementSpecification, str], seed: int
) -> None:
    known, type_ = cell
    rng = np.random.default_rng(seed)
    value = GraphValue("int8", (3, 4, 6, 8), Quantization((0.5,), -3))
    fitting = known.with_input(type_, known.draw(type_, rng), value)
    if fitting is not None and known.invalid(type_, fitting) is None:
        graph = known.build(type_, fitting, rng)
        first = graph.values[graph.inputs[0]]
        assert (first.dtype, first.shape) == (value.dtype, value.shape)
        assert first.quantization == value.quantization


def _raw(graph: OperatorGraph, given_: dict[int, Values], at: int) -> Values:
    values = given_[at] if at in given_ else graph.values[at].values
    assert values is not None
    return values


def test_kernels_answer_what_data_movement_means(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    models = [
        (known, known.build(type_, drawn, rng))
        for known, type_ in CELLS
        for drawn in (known.draw(type_, rng) for _ in range(4))
        if known.invalid(type_, drawn) is None
    ]
    given_ = [known.operands(graph, "uniform", rng) for known, graph in models]
    answers = kernel_answers([graph for _, graph in models], given_, tmp_path)
    for (known, graph), values, results in zip(models, given_, answers, strict=True):
        (node,) = graph.nodes
        raw = dict(zip(graph.inputs, values, strict=True))
        operands = [Operand(graph.values[at], _raw(graph, raw, at)) for at in node.inputs]
        right = known.exact(node.options, operands, graph.results(node))
        for value, one, answer in zip(graph.results(node), right, results, strict=True):
            assert answer.shape == value.shape, (known.operator, node.options)
            if one.kind == "bits":
                np.testing.assert_array_equal(answer, one.values, known.operator)
            elif one.kind == "reals":
                assert np.all(np.abs(answer - one.values) <= one.slack), known.operator
            else:
                assert value.quantization is not None
                step = one.values / value.quantization.scales[0] + value.quantization.zero_point
                assert np.all(np.abs(np.clip(step, 0, 255) - answer) < 0.51), known.operator


@pytest.mark.parametrize(
    ("operator", "type_", "options", "version"),
    [
        ("TRANSPOSE", "int8", {"shape": (2, 3), "perm": (1, 0)}, 2),
        ("TRANSPOSE", "float32", {"shape": (2,) * 5, "perm": (4, 1, 2, 3, 0)}, 4),
        ("SPLIT", "int32", {"shape": (2, 4), "axis": 1, "parts": 2}, 3),
        ("BROADCAST_TO", "bool", {"shape": (1,), "new_shape": (3,), "index_type": "int32"}, 2),
    ],
)
def test_a_model_has_the_lowest_version_that_does(
    operator: str, type_: str, options: dict[str, Setting], version: int
) -> None:
    known = next(one for one in MOVEMENT_OPERATORS if one.operator == operator)
    quantization = {"input_scale": 0.5, "input_zero_point": 3} if type_ == "int8" else {}
    graph = known.build(type_, {**options, **quantization}, np.random.default_rng(0))
    assert graph.nodes[0].version == version


def test_a_fault_names_what_would_fit() -> None:
    transpose = next(one for one in MOVEMENT_OPERATORS if one.operator == "TRANSPOSE")
    fault = transpose.invalid("float32", {"shape": (2, 3, 4), "perm": (1, 0)})
    assert fault == "perm is (1, 0), where (1, 0, 2) would fit"


def test_another_scale_than_that_of_what_is_moved_is_not_known() -> None:
    reshape = next(one for one in MOVEMENT_OPERATORS if one.operator == "RESHAPE")
    rng = np.random.default_rng(0)
    graph = reshape.build("int8", reshape.draw("int8", rng), rng)
    (at,) = graph.outputs
    values = list(graph.values)
    values[at] = replace(values[at], quantization=Quantization((3.0,), 1))
    with pytest.raises(UnknownOperatorForm):
        reshape.read(replace(graph, values=tuple(values)))


def test_an_option_that_no_parameter_stands_in_is_not_known() -> None:
    concatenation = next(one for one in MOVEMENT_OPERATORS if one.operator == "CONCATENATION")
    rng = np.random.default_rng(0)
    graph = concatenation.build("float32", concatenation.draw("float32", rng), rng)
    bounded = {**graph.nodes[0].options, "fusedActivationFunction": "RELU"}
    with pytest.raises(UnknownOperatorForm):
        concatenation.read(replace(graph, nodes=(replace(graph.nodes[0], options=bounded),)))
