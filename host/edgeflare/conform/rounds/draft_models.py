"""The models of a draft, and the values that they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.conform.drafts.draft import FRESH, Draft, DraftedModel, DraftNode, drafted
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel
from edgeflare.conform.operator_graph import OperatorGraph, Values
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.operand import OPERAND_STYLES

ROWS = len(OPERAND_STYLES)
"""Each model is run on one input of each style."""

_OPERANDS = 1
"""Second part of the seed of a node's operands, which tells it from that of its constants."""


@dataclass(frozen=True, slots=True)
class PosedDraft:
    """The models of a draft with fresh values for all that they are given.

    Attributes:
        draft: the draft as it was drawn.
        model: the draft's graphs.
        operands: one array for each input of each node alone, (rows, *shape); those that another
            node feeds are to be replaced by its answer.

    """

    draft: Draft
    model: DraftedModel
    operands: tuple[tuple[Values, ...], ...]

    @property
    def whole(self) -> PosedModel:
        """The whole graph."""
        fresh = [
            values
            for node, operands in zip(self.draft.nodes, self.operands, strict=True)
            for source, values in zip(node.sources, operands, strict=True)
            if source == FRESH
        ]
        return PosedModel(self.model.graph, tuple(fresh))

    def alone(self, at: int, answers: Sequence[ModelAnswer | None]) -> PosedModel | None:
        """Return one node, with the answers of the nodes that feed it.

        Args:
            at: position of the node.
            answers: those of the nodes before it; None or without outputs where one gave none.

        Returns:
            None if what feeds it gave no answer.

        """
        operands = []
        for source, fresh in zip(self.draft.nodes[at].sources, self.operands[at], strict=True):
            if source == FRESH:
                operands.append(fresh)
                continue
            answer = answers[source]
            if answer is None or not answer.outputs:
                return None
            operands.append(answer.outputs[0])
        return PosedModel(self.model.alone[at], tuple(operands))

    def results(self, answers: Sequence[ModelAnswer | None]) -> tuple[Values, ...] | None:
        """Return what the whole graph answers if each node answers as it does alone.

        None if one of them gave no answer.
        """
        read = {source for node in self.draft.nodes for source in node.sources}
        found: list[Values] = []
        for at, answer in enumerate(answers):
            if answer is None or not answer.outputs:
                return None
            found.extend(answer.outputs[1:] if at in read else answer.outputs)
        return tuple(found)


def posed(draft: Draft, given: Mapping[int, OperatorGraph]) -> PosedDraft:
    """Return a draft's models with values, which depend on nothing but the draft.

    Args:
        draft: the draft as it was drawn.
        given: the operators of the model that the user named, by their place in it.

    """
    model = drafted(draft, given)
    operands = map(_operands, draft.nodes, model.alone)
    return PosedDraft(draft, model, tuple(operands))


def _operands(node: DraftNode, graph: OperatorGraph) -> tuple[Values, ...]:
    rng = np.random.default_rng([node.constants, _OPERANDS])
    specification = known_operators()[node.operator]
    rows = [specification.operands(graph, style, rng) for style in OPERAND_STYLES]
    return tuple(np.stack(values) for values in zip(*rows, strict=True))
