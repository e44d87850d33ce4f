"""Laws of all operators: models say their configurations, and settings follow others."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drafting import fresh
from edgeflare.conform.operator_graph import GraphValue, OperatorGraph
from edgeflare.conform.operators.elementwise.result_scales import drawn_output
from edgeflare.conform.operators.operator_catalogue import (
    AGGREGATE_OPERATORS,
    ELEMENTWISE_OPERATORS,
    MOVEMENT_OPERATORS,
    known_operators,
)
from edgeflare.conform.specification.activation_tensors import INT8, INT16
from edgeflare.conform.specification.operator_specification import OperatorSpecification

KNOWN = list(known_operators().values())
FOLLOWING = (*MOVEMENT_OPERATORS, *AGGREGATE_OPERATORS)
"""Operators some of whose settings depend on others."""

CHOOSY = (*MOVEMENT_OPERATORS, *ELEMENTWISE_OPERATORS)
"""Operators that may have no model that takes a tensor which another one of theirs takes."""

each = pytest.mark.parametrize("known", KNOWN, ids=lambda one: one.operator)
DRAWN = 30
"""Settings of each type."""


def built(known: OperatorSpecification, type_: str, rng: np.random.Generator) -> OperatorGraph:
    return known.build(type_, fresh((known.operator, type_), rng), rng)


@each
def test_most_of_what_is_drawn_is_valid_and_is_read_as_it_was_built(
    known: OperatorSpecification,
) -> None:
    rng = np.random.default_rng(0)
    for type_ in known.types:
        drawn = [known.draw(type_, rng) for _ in range(DRAWN)]
        valid = [one for one in drawn if known.invalid(type_, one) is None]
        assert len(valid) >= 0.9 * DRAWN
        for one in valid[:10]:
            graph = known.build(type_, one, rng)
            reading = known.read(graph)
            assert (reading.type, dict(reading.configuration)) == (type_, dict(one))
            assert max(value.size for value in graph.values) <= 10_000


@pytest.mark.parametrize("known", FOLLOWING, ids=lambda one: one.operator)
def test_what_depends_on_a_changed_setting_follows_it(known: OperatorSpecification) -> None:
    rng = np.random.default_rng(1)
    faults = []
    for type_ in known.types * 2:
        drawn = known.draw(type_, rng)
        for parameter in known.parameters(type_):
            simpler = islice(parameter.simpler(drawn[parameter.name]), 3)
            for setting in (*simpler, parameter.draw(rng)):
                changed = {**drawn, parameter.name: setting}
                followed = known.adapted(type_, changed, parameter.name)
                assert known.adapted(type_, followed, parameter.name) == followed
                faults.append(known.invalid(type_, followed))
    assert faults.count(None) >= 0.95 * len(faults)
    if known in AGGREGATE_OPERATORS:
        assert all("size 0" in one for one in faults if one is not None)


def check_taken(
    known: OperatorSpecification, type_: str, value: GraphValue, rng: np.random.Generator
) -> bool:
    """Return whether there is a model that takes a tensor, which then takes just that."""
    fed = known.with_input(type_, known.draw(type_, rng), value)
    if fed is not None and known.invalid(type_, fed) is None:
        graph = known.build(type_, fed, rng)
        read = graph.values[graph.inputs[0]]
        assert (read.dtype, read.shape, read.quantization) == (
            value.dtype,
            value.shape,
            value.quantization,
        )
    return fed is not None


@each
def test_an_operator_takes_the_tensor_of_another_model(known: OperatorSpecification) -> None:
    rng = np.random.default_rng(2)
    for type_ in known.types:
        graphs = [built(known, type_, rng) for _ in range(4)]
        taken = [
            check_taken(known, type_, one.values[one.inputs[0]], rng)
            for one in graphs
            if one.inputs
        ]
        assert known in CHOOSY or all(taken)
        assert not taken or any(taken) or known.operator == "EMBEDDING_LOOKUP"  # within its rows
        for at in rng.integers(len(KNOWN), size=6):
            other = KNOWN[at]
            graph = built(other, type_ if type_ in other.types else other.types[0], rng)
            check_taken(known, type_, graph.results(graph.nodes[0])[0], rng)


@given(
    st.sampled_from((INT8, INT16)),
    st.floats(1.1, 100.0),  # below it, the least scale cuts the finest off
    st.sampled_from((-1.0, 1.0)),
    st.integers(min_value=0),
)
def test_the_range_of_a_result_has_zero_in_it_and_grows_with_its_values(
    type_: str, size: float, sign: float, seed: int
) -> None:
    value = sign * size
    alone, beside_zero, doubled = (
        drawn_output(type_, np.array(values), np.random.default_rng(seed))
        for values in ([value], [0.0, value], [2 * value])
    )
    assert alone == beside_zero
    assert doubled == {**alone, "output_scale": 2 * float(alone["output_scale"])}  # type: ignore[arg-type]
