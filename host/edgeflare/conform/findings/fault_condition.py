"""When a fault shows: a conjunction of few predicates over the settings of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from edgeflare.conform.drafts.cells import Cell, drawn_configuration
from edgeflare.conform.findings.predicate import Predicate, Truths
from edgeflare.conform.findings.settings_table import SettingsTable
from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.conform.specification.settings import Setting
from edgeflare.suggestion import suggestion

_MODELS = 32
"""Models that are drawn to see their settings: facts of some have names that others' have not."""


@dataclass(frozen=True, slots=True)
class FaultCondition:
    """Predicates all of which hold.

    Attributes:
        predicates: in the order of their texts; () for a fault that shows always.

    """

    predicates: tuple[Predicate, ...] = ()

    @classmethod
    def of(cls, predicates: Sequence[Predicate]) -> FaultCondition:
        """Return the condition of predicates in any order."""
        return cls(tuple(sorted(set(predicates), key=str)))

    @classmethod
    def parsed(cls, texts: Sequence[str]) -> FaultCondition:
        """Return the condition that texts say, one for each predicate.

        Raises:
            ValueError: one says none.

        """
        return cls.of([Predicate.parsed(one) for one in texts])

    @property
    def texts(self) -> list[str]:
        """The predicates as they are kept in documents."""
        return [str(one) for one in self.predicates]

    def __str__(self) -> str:
        return ", ".join(self.texts) or "always"

    def held(self, table: SettingsTable) -> Truths:
        """Return of which rows it holds: (rows,)."""
        truths = np.ones(len(table), np.bool_)
        for one in self.predicates:
            truths &= one.held(table)
        return truths

    def holds(self, settings: Mapping[str, Setting]) -> bool:
        """Return whether it holds of one model."""
        return bool(self.held(SettingsTable([settings]))[0])


def fact_names(cell: Cell) -> tuple[str, ...]:
    """Return what conditions may speak of besides the parameters of an operator."""
    operator, type_ = cell
    parameters = {one.name for one in known_operators()[operator].parameters(type_)}
    return tuple(name for name in _settings(cell).names() if name not in parameters)


def condition_fault(cell: Cell, condition: FaultCondition) -> str | None:
    """Return why a condition can hold of no model of an operator and type; None if it may."""
    faults = (_fault(cell, one) for one in condition.predicates)
    return next(filter(None, faults), None)


def _fault(cell: Cell, predicate: Predicate) -> str | None:
    operator, type_ = cell
    known = _settings(cell)
    for name in predicate.names:
        if name not in known.names():
            like = suggestion(name, known.names())
            return (
                f"{name!r} in {str(predicate)!r} is no setting of {operator} in {type_}{like}: "
                f"`edgeflare conform --list --ops {operator}` shows all"
            )
        words = all(isinstance(one, bool | str) for one in known.settings(name))
        if words and predicate.is_numeric:
            return f"{name!r} in {str(predicate)!r} is no number: compare it by `is` or `is not`"
    return None


@cache
def _settings(cell: Cell) -> SettingsTable:
    """Return the settings, facts among them, of some models."""
    operator, type_ = cell
    specification, rng = known_operators()[operator], np.random.default_rng(0)
    drawn = (drawn_configuration(cell, rng) for _ in range(_MODELS))
    return SettingsTable(
        [{**one, **specification.facts(type_, one)} for one in drawn if one is not None]
    )
