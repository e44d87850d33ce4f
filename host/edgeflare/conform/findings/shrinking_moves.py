"""Models that may be smaller than one that fails, and the moves of shrinking that make them.

A move leaves a model fewer operators, smaller shapes or defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from edgeflare.conform.drafts.cells import cell_parameters
from edgeflare.conform.drafts.draft import (
    FRESH,
    Draft,
    DraftedModel,
    DraftNode,
    NodeGraphs,
    drafted,
    rederived,
)
from edgeflare.conform.drafts.draft_mutation import kept_nodes
from edgeflare.conform.execution.kernel_arm import PosedModel
from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Values
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.activation_tensors import OperandStyle
from edgeflare.conform.specification.parameter import Configuration, OperatorParameter, Setting

_FRESH_STYLES: tuple[OperandStyle, ...] = ("uniform", "extreme")
"""Styles of values that are drawn anew; special ones would let faults be seen as undefined."""


@dataclass(frozen=True, slots=True, eq=False)
class ShrinkCandidate:
    """A model, and what it is given.

    Attributes:
        draft: the model, of one operator or several.
        operands: one array for each input of the draft's whole graph, (rows, *shape) in its dtype.
        rows: rows of all operands; how often a model is run that is given nothing.

    """

    draft: Draft
    operands: tuple[Values, ...]
    rows: int

    @property
    def elements(self) -> int:
        """Values of all operands, all rows together."""
        return sum(operand.size for operand in self.operands)

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
        shape: shape that each row gets.

    """
    wanted = (len(old), *shape)
    if old.size == 0:
        return np.zeros(wanted, old.dtype)
    if old.ndim != len(wanted):
        return np.stack([np.resize(row, shape) for row in old]).astype(old.dtype)
    for axis, size in enumerate(wanted[1:], 1):
        old = np.take(old, np.arange(size) % old.shape[axis], axis=axis)
    return old


_KINDS = ("shape", "mode", "quantization")
"""The kinds of parameters in the order in which they are made simple."""


@dataclass(frozen=True, slots=True)
class ShrinkingMove:
    """One way to make a model smaller or plainer.

    Attributes:
        subject: what it changes; of several moves with one subject only one is made.
        made: returns the changed model, None where it would not be valid.

    """

    subject: Hashable
    made: Callable[[ShrinkCandidate], ShrinkCandidate | None]


MoveFamily = Callable[[ShrinkCandidate, ShrinkContext], Iterator[ShrinkingMove]]
"""Yields the moves of one kind for a model, those that make it smallest first."""


def fewer_operators(one: ShrinkCandidate, context: ShrinkContext) -> Iterator[ShrinkingMove]:
    """Yield moves that keep one operator, and then those that leave one out."""
    count = len(one.draft.nodes)
    alone = [(at,) for at in range(count)]
    others = [tuple(other for other in range(count) if other != at) for at in range(count)]
    for kept in dict.fromkeys((*alone, *others)) if count > 1 else ():

        def made(now: ShrinkCandidate, kept: tuple[int, ...] = kept) -> ShrinkCandidate | None:
            draft = rederived(kept_nodes(now.draft, kept).nodes, context.graphs)
            return None if draft is None else context.candidate(draft, now)

        yield ShrinkingMove("operators", made)


def drawn_constants(one: ShrinkCandidate, context: ShrinkContext) -> Iterator[ShrinkingMove]:
    """Yield moves that draw the constants of an operator of the model that the user named."""
    for at, node in enumerate(one.draft.nodes):
        if node.given is not None:

            def made(now: ShrinkCandidate, at: int = at) -> ShrinkCandidate | None:
                nodes = list(now.draft.nodes)
                nodes[at] = replace(nodes[at], given=None)
                draft = rederived(nodes, context.graphs)
                return None if draft is None else ShrinkCandidate(draft, now.operands, now.rows)

            yield ShrinkingMove(("constants", at), made)


def default_settings(one: ShrinkCandidate, context: ShrinkContext) -> Iterator[ShrinkingMove]:
    """Yield moves that give a parameter the simplest of its settings."""
    for at, parameter in _by_kind(one.draft):
        if one.draft.nodes[at].configuration[parameter.name] != parameter.simplest:
            yield _setting_move(at, parameter.name, None, parameter.simplest, context)


def simpler_settings(one: ShrinkCandidate, context: ShrinkContext) -> Iterator[ShrinkingMove]:
    """Yield moves that make a setting simpler; of shapes, one dimension."""
    for at, parameter in _by_kind(one.draft):
        setting = one.draft.nodes[at].configuration[parameter.name]
        for simpler in parameter.simpler(setting):
            place = _only_change(setting, simpler)
            yield _setting_move(at, parameter.name, place, simpler, context)


def _by_kind(draft: Draft) -> list[tuple[int, OperatorParameter]]:
    """Return the parameters of all operators of a draft, those of shapes first."""
    found = [
        (at, parameter)
        for at, node in enumerate(draft.nodes)
        for parameter in cell_parameters(node.cell)
    ]
    return sorted(found, key=lambda at_one: _KINDS.index(at_one[1].kind))


def _only_change(setting: Setting, simpler: Setting) -> int | None:
    """Return the only place in which two shapes of one rank differ."""
    if not isinstance(setting, tuple) or not isinstance(simpler, tuple):
        return None
    if len(setting) != len(simpler):
        return None
    places = [at for at, element in enumerate(setting) if element != simpler[at]]
    return places[0] if len(places) == 1 else None


def _setting_move(
    at: int,
    name: str,
    place: int | None,
    simpler: Setting,
    context: ShrinkContext,
) -> ShrinkingMove:
    def made(now: ShrinkCandidate) -> ShrinkCandidate | None:
        node = now.draft.nodes[at]
        setting = _placed(node.configuration[name], place, simpler)
        configuration = _valid(node, name, setting)
        if configuration is None or configuration == node.configuration:
            return None
        nodes = list(now.draft.nodes)
        nodes[at] = replace(node, configuration=configuration, given=None)
        draft = rederived(nodes, context.graphs)
        return None if draft is None else context.candidate(draft, now)

    return ShrinkingMove((at, name, place), made)


def _placed(old: Setting, place: int | None, simpler: Setting) -> Setting:
    if place is None or not isinstance(old, tuple) or not isinstance(simpler, tuple):
        return simpler
    return (*old[:place], simpler[place], *old[place + 1 :]) if place < len(old) else simpler


def _valid(node: DraftNode, name: str, setting: Setting) -> Configuration | None:
    """Return a valid configuration with a setting, another of which may be simpler too."""
    specification = known_operators()[node.operator]
    if any(
        parameter.fault(setting)
        for parameter in cell_parameters(node.cell)
        if parameter.name == name
    ):
        return None
    changed = specification.adapted(node.type, {**node.configuration, name: setting}, name)
    if specification.invalid(node.type, changed) is None:
        return changed
    for other in cell_parameters(node.cell):
        if other.name == name or other.fault(changed[other.name]) is not None:
            continue
        for simpler in other.simpler(changed[other.name]):
            both = {**changed, other.name: simpler}
            if specification.invalid(node.type, both) is None:
                return both
    return None
