"""The smallest model that still fails, and the fewest operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from drafting import chain, fresh
from edgeflare.conform.drafts.cells import Cell, drawn_seed
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode, NodeGraphs, drafted
from edgeflare.conform.findings.model_shrinking import (
    MOST_RUNS,
    shrinking,
)
from edgeflare.conform.findings.shrinking_moves import (
    ShrinkCandidate,
    ShrinkContext,
    fitted_values,
)
from edgeflare.conform.operator_graph import OperatorGraph
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.parameter import number
from simulated_faults import SimulatedFault, drawn_fault

CELLS: list[Cell] = [
    ("CONV_2D", "int8"),
    ("ADD", "uint8"),
    ("AVERAGE_POOL_2D", "float32"),
    ("FULLY_CONNECTED", "int8"),
    ("CONCATENATION", "int8"),
    ("TRANSPOSE", "float32"),
    ("BATCH_MATMUL", "float32"),
    ("STRIDED_SLICE", "int8"),
]


class Device:
    """Fails where a test says; checks that each model is given what its graph takes."""

    def __init__(
        self,
        fails: Callable[[ShrinkCandidate], bool],
        operators: dict[int, OperatorGraph] | None = None,
    ) -> None:
        self.fails, self.operators, self.runs = fails, operators or {}, 0

    def __call__(self, models: Sequence[ShrinkCandidate]) -> list[bool]:
        self.runs += len(models)
        assert models
        for one in models:
            graph = drafted(one.draft, self.operators).graph
            taken = [(graph.values[at].shape, graph.values[at].dtype) for at in graph.inputs]
            assert [(each.shape[1:], each.dtype.name) for each in one.operands] == taken
            assert all(len(each) == one.rows for each in one.operands)
        return [self.fails(one) for one in models]


def shrunk(
    device: Device, start: ShrinkCandidate, context: ShrinkContext, most_runs: int = MOST_RUNS
) -> ShrinkCandidate:
    """Return the smallest model that was found."""
    asking = shrinking(start, context, most_runs)
    try:
        asked = next(asking)
        while True:
            asked = asking.send(device(asked))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def shows(one: ShrinkCandidate) -> bool:
    """Return whether a row has two values that differ: no fault shows on plain ones."""
    return any(
        len(set(operand[at].ravel().tolist())) > 1
        for operand in one.operands
        for at in range(one.rows)
    )


def first_model(
    nodes: Sequence[DraftNode], operators: dict[int, OperatorGraph]
) -> tuple[ShrinkCandidate, ShrinkContext]:
    context = ShrinkContext(operators, np.random.default_rng(7), NodeGraphs(operators))
    whole = []
    for node in nodes:
        sources = node.sources or (FRESH,) * len(context.graphs.operands(node))
        whole.append(replace(node, sources=sources))
    draft = Draft(tuple(whole))
    empty = ShrinkCandidate(
        draft, tuple(np.zeros((0, *one.shape), one.dtype) for one in context.values(draft)), 0
    )
    return context.with_rows(empty, 4), context


def shrunk_fault(
    fault: SimulatedFault, rng: np.random.Generator
) -> tuple[ShrinkCandidate, ShrinkCandidate, Device]:
    device = Device(lambda one: fault.meets(one.draft.nodes[0].configuration) and shows(one))
    while True:
        node = DraftNode(*fault.cell, fresh(fault.cell, rng), drawn_seed(rng), ())
        start, context = first_model([node], {})
        if device.fails(start):
            return start, shrunk(device, start, context), device


@pytest.mark.slow
def test_what_is_found_is_small_and_still_fails_within_the_runs_that_are_allowed() -> None:
    elements = []
    for seed in range(len(CELLS)):
        rng = np.random.default_rng(seed)
        fault = drawn_fault(CELLS[seed], rng)
        start, small, device = shrunk_fault(fault, rng)
        assert device.fails(small)
        assert device.runs <= MOST_RUNS
        assert small.elements <= start.elements
        elements.append(small.elements)
    assert median(elements) <= 8


def wide_stride() -> SimulatedFault:
    return SimulatedFault(
        CELLS[0], "stride", lambda one: number(one, "stride_w") > number(one, "kernel_w"), 1.0
    )


def test_all_that_the_fault_does_not_need_becomes_default() -> None:
    _, small, _ = shrunk_fault(wide_stride(), np.random.default_rng(3))
    (node,) = small.draft.nodes
    simplest = {one.name: one.simplest for one in known_operators()["CONV_2D"].parameters("int8")}
    changed = {name for name, one in node.configuration.items() if one != simplest[name]}
    assert "stride_w" in changed
    assert changed <= {"stride_w", "width", "channels", "height", "batch"}
    assert (small.rows, small.elements) == (1, 2)


def test_no_more_models_are_run_than_are_allowed() -> None:
    start, context = first_model(chain("ABS", "NEG", "RELU").nodes, {})
    device = Device(lambda _: True)
    shrunk(device, start, context, most_runs=17)
    assert device.runs <= 17


def test_shrinking_follows_from_the_generator() -> None:
    first, second = (shrunk_fault(wide_stride(), np.random.default_rng(3))[1] for _ in range(2))
    assert first.draft == second.draft
    for one, other in zip(first.operands, second.operands, strict=True):
        np.testing.assert_array_equal(one, other)


def _names(one: ShrinkCandidate) -> list[str]:
    return [node.operator for node in one.draft.nodes]


@pytest.mark.parametrize("needed", [["NEG"], ["NEG", "RELU"]])
def test_the_operators_that_a_fault_needs_are_kept_and_still_fit(needed: list[str]) -> None:
    start, context = first_model(chain("ABS", "NEG", "RELU").nodes, {})
    device = Device(lambda one: any(_names(one)[at:][: len(needed)] == needed for at in range(3)))
    small = shrunk(device, start, context)
    assert (_names(small), small.elements) == (needed, 1)


def given_convolution() -> tuple[DraftNode, dict[int, OperatorGraph]]:
    rng = np.random.default_rng(9)
    configuration = fresh(CELLS[0], rng)
    graph = known_operators()["CONV_2D"].build("int8", configuration, rng)
    return DraftNode("CONV_2D", "int8", configuration, 4, (), given=0), {0: graph}


@pytest.mark.parametrize("needed", [False, True])
def test_constants_of_the_user_are_kept_only_where_the_fault_needs_them(needed: bool) -> None:
    node, operators = given_convolution()
    start, context = first_model([node], operators)
    device = Device(lambda one: not needed or one.draft.nodes[0].given == 0, operators)
    small = shrunk(device, start, context)
    (left,) = small.draft.nodes
    assert left.given == (0 if needed else None)
    if needed:
        assert left.configuration == node.configuration


@given(
    st.data(),
    st.lists(st.integers(0, 5), max_size=3),
    st.lists(st.integers(0, 5), max_size=3),
)
def test_fitted_values_are_those_that_were_there(
    data: st.DataObject, old: list[int], new: list[int]
) -> None:
    values = data.draw(arrays.arrays(np.int8, (2, *old)))
    fitted = fitted_values(values, new)
    assert (fitted.shape, fitted.dtype) == ((2, *new), values.dtype)
    if values.size:
        for row, before in zip(fitted, values, strict=True):
            assert set(row.ravel().tolist()) <= set(before.ravel().tolist())
    if old == new:
        np.testing.assert_array_equal(fitted, values)


NAMES = ("ABS", "NEG", "RELU", "ABS", "NEG", "TANH", "RELU", "NEG")


def candidate(*operators: str) -> tuple[ShrinkCandidate, ShrinkContext]:
    """Return operators each fed by the one before, with two rows of values."""
    values = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    context = ShrinkContext({}, np.random.default_rng(0), NodeGraphs())
    return ShrinkCandidate(chain(*operators), (values,), 2), context
