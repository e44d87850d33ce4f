"""Drafts of a few operators, drawn for tests, and what devices make of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgeflare.conform.drafts.cell_pairs import allowed_pairs
from edgeflare.conform.drafts.cells import Cell, chosen_cells, drawn_configuration
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft import (
    FRESH,
    Draft,
    DraftNode,
    DraftOutcome,
    NodeGraphs,
    drafted,
)
from edgeflare.conform.drafts.draft_mutation import MutationContext
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.parameter import Configuration, Setting

OPERATORS = ("ABS", "ADD", "CONCATENATION", "MEAN", "RELU", "RESHAPE", "SUM", "TRANSPOSE")


def few_cells() -> tuple[Cell, ...]:
    """Return cells of operators that reshape, merge, reduce or do none of that."""
    return chosen_cells(OPERATORS, ("float32", "int8"))


def few_covered() -> Coverage:
    """Return coverage of these cells and their pairs, with nothing covered."""
    return Coverage(few_cells(), allowed_pairs(few_cells()))


def mutating(seed: int) -> MutationContext:
    """Return what mutations of these cells draw with."""
    return MutationContext(few_covered(), NodeGraphs(), np.random.default_rng(seed))


def taken(draft: Draft) -> DraftOutcome:
    """Return the outcome of a draft that the device took, alone and whole."""
    return DraftOutcome((True,) * len(draft.nodes), True)


def refused(draft: Draft) -> DraftOutcome:
    """Return the outcome of a draft that the device refused, each node alone as well."""
    return DraftOutcome((False,) * len(draft.nodes), False)


def check_sound(draft: Draft) -> None:
    """Fail unless each node is valid and fits what feeds it, and no node is fed by a later one."""
    for at, node in enumerate(draft.nodes):
        assert all(source == FRESH or source < at for source in node.sources)
        if node.given is None:
            specification = known_operators()[node.operator]
            assert specification.invalid(node.type, node.configuration) is None
    drafted(draft)


def relu_chain(shapes: Sequence[tuple[int, ...]]) -> Draft:
    """Return RELU of one float shape after the other, each fed by the one before where they fit."""
    nodes = []
    for at, shape in enumerate(shapes):
        source = at - 1 if at and shapes[at - 1] == shape else FRESH
        nodes.append(relu(shape, source))
    return Draft(tuple(nodes))


def relu(shape: tuple[int, ...], source: int = FRESH) -> DraftNode:
    """Return a float RELU of a shape."""
    return DraftNode("RELU", "float32", {"shape": shape}, 0, (source,))


def chain(*operators: str, shape: tuple[int, ...] = (2, 3)) -> Draft:
    """Return float operators of one operand, each fed by the one before."""
    return Draft(
        tuple(
            DraftNode(operator, "float32", {"shape": shape}, at, (at - 1 if at else FRESH,))
            for at, operator in enumerate(operators)
        )
    )


def binary(operator: str, *sources: int, shape: tuple[int, ...] = (2, 3)) -> DraftNode:
    """Return a float operator of two operands of a shape, such as ADD."""
    settings: dict[str, Setting] = {
        "shape": shape,
        "first_broadcast": "none",
        "second_broadcast": "none",
        "constant": "none",
        "activation": "NONE",
    }
    return DraftNode(operator, "float32", settings, 0, sources)


def fresh(cell: Cell, rng: np.random.Generator) -> Configuration:
    """Return a valid configuration at random."""
    while True:
        if (drawn := drawn_configuration(cell, rng)) is not None:
            return drawn
