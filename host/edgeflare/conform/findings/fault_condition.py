"""When a fault shows: a conjunction of few predicates over the settings of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.conform.findings.predicate import Predicate, Truths
from edgeflare.conform.findings.settings_table import SettingsTable
from edgeflare.conform.specification.settings import Setting


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
