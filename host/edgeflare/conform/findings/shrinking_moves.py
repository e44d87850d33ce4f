"""The moves of shrinking that change a model: fewer operators, smaller shapes, defaults."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace

from edgeflare.conform.drafts.cells import cell_parameters
from edgeflare.conform.drafts.draft import Draft, DraftNode
from edgeflare.conform.drafts.draft_mutation import kept_nodes
from edgeflare.conform.drafts.feeding import rederived
from edgeflare.conform.findings.shrink_candidate import ShrinkCandidate, ShrinkContext
from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.conform.specification.parameter import OperatorParameter
from edgeflare.conform.specification.settings import Configuration, Setting

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
    found = [(at, one) for at, node in enumerate(draft.nodes) for one in cell_parameters(node.cell)]
    return sorted(found, key=lambda at_one: _KINDS.index(at_one[1].kind))


def _only_change(setting: Setting, simpler: Setting) -> int | None:
    """Return the only place in which two shapes of one rank differ."""
    if not isinstance(setting, tuple) or not isinstance(simpler, tuple):
        return None
    if len(setting) != len(simpler):
        return None
    places = [at for at, one in enumerate(setting) if one != simpler[at]]
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
    if any(one.fault(setting) for one in cell_parameters(node.cell) if one.name == name):
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
