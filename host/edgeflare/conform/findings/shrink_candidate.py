"""A model that may be smaller than one that fails, and the values that it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.conform.drafts.draft import FRESH, Draft, DraftedModel, drafted
from edgeflare.conform.drafts.node_graphs import NodeGraphs
from edgeflare.conform.execution.kernel_arm import PosedModel
from edgeflare.conform.graphs.operator_graph import GraphValue, OperatorGraph, Values
from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.conform.specification.operand_values import OperandStyle

_FRESH_STYLES: tuple[OperandStyle, ...] = ("uniform", "extreme")
"""Of values that are drawn anew; special ones would let faults be seen as undefined."""


@dataclass(frozen=True, slots=True, eq=False)
class ShrinkCandidate:
    """A model, and what it is given.

    Attributes:
        draft: of one operator or several.
        operands: one array for each input of the draft's whole graph, (rows, *shape) in its dtype.
        rows: of all operands; how often a model is run that is given nothing.

    """

    draft: Draft
    operands: tuple[Values, ...]
    rows: int

    @property
    def elements(self) -> int:
        """Values of all operands, all rows together."""
        return sum(one.size for one in self.operands)

    def posed(self, given: Mapping[int, OperatorGraph]) -> PosedModel:
        """Return the whole graph with its operands, for arms to run.

        Args:
            given: the operators of the model that the user named, by their place in it.

        """
        return PosedModel(drafted(self.draft, given).graph, self.operands, self.rows)


@dataclass(frozen=True, slots=True)
class ShrinkContext:
    """What moves need: the graphs of drafts, and operands for them.

    Attributes:
        given: the operators of the model that the user named, by their place in it.
        rng: draws.
        graphs: builds the nodes of drafts.

    """

    given: Mapping[int, OperatorGraph]
    rng: np.random.Generator
    graphs: NodeGraphs

    def candidate(self, draft: Draft, before: ShrinkCandidate) -> ShrinkCandidate:
        """Return a draft with as many rows as another had.

        The first half of the rows, or the only one, has the other's values as far as they fit; the
        rest are drawn anew, since the fault may need other values now.
        """
        kept = (before.rows + 1) // 2
        fitted = [
            _first_rows(before.operands, at, value, kept)
            for at, value in enumerate(self.values(draft))
        ]
        return self.with_rows(ShrinkCandidate(draft, tuple(fitted), kept), before.rows)

    def with_rows(self, one: ShrinkCandidate, rows: int) -> ShrinkCandidate:
        """Return a candidate with more rows, the further ones drawn anew."""
        model = drafted(one.draft, self.given)
        new = [self._drawn(one.draft, model, at) for at in range(rows - one.rows)]
        operands = [
            np.concatenate([values, *(row[at][None] for row in new)])
            for at, values in enumerate(one.operands)
        ]
        return ShrinkCandidate(one.draft, tuple(operands), max(rows, one.rows))

    def values(self, draft: Draft) -> tuple[GraphValue, ...]:
        """Return the tensors that a draft's whole graph is given."""
        graph = drafted(draft, self.given).graph
        return tuple(graph.values[at] for at in graph.inputs)

    def _drawn(self, draft: Draft, model: DraftedModel, row: int) -> list[Values]:
        style = _FRESH_STYLES[row % len(_FRESH_STYLES)]
        return [
            values
            for node, graph in zip(draft.nodes, model.alone, strict=True)
            for source, values in zip(
                node.sources,
                known_operators()[node.operator].operands(graph, style, self.rng),
                strict=True,
            )
            if source == FRESH
        ]


def _first_rows(operands: Sequence[Values], at: int, value: GraphValue, rows: int) -> Values:
    """Return some rows for a tensor: those of the operand that was in its place, if it fits."""
    if at < len(operands) and operands[at].dtype == value.dtype:
        return fitted_values(operands[at][:rows], value.shape)
    return np.zeros((rows, *value.shape), value.dtype)


def fitted_values(old: Values, shape: Sequence[int]) -> Values:
    """Return rows of values in another shape: cropped, or repeated along each dimension.

    Args:
        old: (rows, *any shape).
        shape: of each row then.

    """
    wanted = (len(old), *shape)
    if old.size == 0:
        return np.zeros(wanted, old.dtype)
    if old.ndim != len(wanted):
        return np.stack([np.resize(row, shape) for row in old]).astype(old.dtype)
    for axis, size in enumerate(wanted[1:], 1):
        old = np.take(old, np.arange(size) % old.shape[axis], axis=axis)
    return old
