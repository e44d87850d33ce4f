"""When a fault shows: a conjunction of few predicates over the settings of a model.

A predicate is written in the words that reports show and users write.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log2

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.drafts.cells import Cell, drawn_configuration
from edgeflare.conform.findings.settings_table import SettingsTable, is_quantity, setting_names
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.parameter import Setting
from edgeflare.errors import suggestion

_MODELS = 32
"""Models that are drawn to see their settings: facts of some have names that others' have not."""


@dataclass(frozen=True, slots=True)
class FaultCondition:
    """Predicates all of which hold.

    Attributes:
        predicates: the predicates in the order of their texts; () for a fault that shows always.

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
        return cls.of([Predicate.parsed(text) for text in texts])

    @property
    def texts(self) -> list[str]:
        """The predicates as they are kept in documents."""
        return [str(predicate) for predicate in self.predicates]

    def __str__(self) -> str:
        return ", ".join(self.texts) or "always"

    def held(self, table: SettingsTable) -> Truths:
        """Return of which rows it holds: (rows,)."""
        truths = np.ones(len(table), np.bool_)
        for predicate in self.predicates:
            truths &= predicate.held(table)
        return truths

    def holds(self, settings: Mapping[str, Setting]) -> bool:
        """Return whether it holds of one model."""
        return bool(self.held(SettingsTable([settings]))[0])


def fact_names(cell: Cell) -> tuple[str, ...]:
    """Return what conditions may speak of besides the parameters of an operator."""
    operator, type_ = cell
    parameters = {parameter.name for parameter in known_operators()[operator].parameters(type_)}
    return tuple(name for name in _settings(cell).names() if name not in parameters)


def condition_fault(cell: Cell, condition: FaultCondition) -> str | None:
    """Return why a condition can hold of no model of an operator and type; None if it may."""
    faults = (_fault(cell, predicate) for predicate in condition.predicates)
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
        words = all(isinstance(setting, bool | str) for setting in known.settings(name))
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
        [
            {**settings, **specification.facts(type_, settings)}
            for settings in drawn
            if settings is not None
        ]
    )


Truths = NDArray[np.bool_]

_NUMERIC: Mapping[str, Callable[[NDArray[np.float64], NDArray[np.float64]], Truths]] = {
    "=": operator.eq,
    "≠": operator.ne,
    "≥": operator.ge,
    "≤": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_OF_WORDS = ("is not", "is", "differs from", "equals")
_TYPED = {"!=": "≠", ">=": "≥", "<=": "≤", "==": "="}
"""Relations as a keyboard has them."""

_WRITTEN = re.compile(rf"(.+?) ({'|'.join((*_NUMERIC, *_TYPED, *_OF_WORDS))}) (.+)")
_POWER = re.compile(r"2\^(-?\d\d?)")
FORMS = '"stride_w ≥ 2", "stride_w > kernel_w", "channels % 4 ≠ 0" or "padding is SAME"'
"""Predicates, as examples for users."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """One predicate, such as "stride_w > kernel_w".

    It holds of no model that lacks one of its quantities.

    Attributes:
        left: a quantity; see `settings_table`.
        relation: "=", "≠", "≥", "≤", ">" or "<" between numbers; "is" or "is not" before a word as
            it is written; "equals" or "differs from" between two settings of any type.
        right: a number, which may be written as a power of 2, such as "2^-3"; a quantity; a word;
            or the name of a setting; as the relation demands.

    """

    left: str
    relation: str
    right: str

    @classmethod
    def parsed(cls, text: str) -> Predicate:
        """Return the predicate that a text says.

        Raises:
            ValueError: it says none; the message has examples of what does.

        """
        parts = _WRITTEN.fullmatch(text.strip())
        if parts is None:
            raise ValueError(f"{text!r} is no predicate: write one as {FORMS}")
        relation = _TYPED.get(parts[2], parts[2])
        named = [parts[1]] if relation in ("is", "is not") else [parts[1], parts[3]]
        for side in named:
            if not is_quantity(side) and (relation not in _NUMERIC or constant(side) is None):
                raise ValueError(f"{side!r} in {text!r} is no quantity: write one as in {FORMS}")
        return cls(parts[1], relation, parts[3])

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"

    @property
    def is_numeric(self) -> bool:
        """Whether it relates numbers."""
        return self.relation in _NUMERIC

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the settings that it speaks of."""
        sides = [self.left] if self.relation in ("is", "is not") else [self.left, self.right]
        quantities = [
            side for side in sides if not (self.is_numeric and constant(side) is not None)
        ]
        return tuple(name for quantity in quantities for name in setting_names(quantity))

    def held(self, table: SettingsTable) -> Truths:
        """Return of which rows it holds: (rows,)."""
        if self.is_numeric:
            left, right = _numbers(self.left, table), _numbers(self.right, table)
            related = _NUMERIC[self.relation](left, right)
            return np.asarray(related & ~np.isnan(left) & ~np.isnan(right), np.bool_)
        words = table.words(self.left)
        other = self.right if self.relation in ("is", "is not") else table.words(self.right)
        alike = np.asarray(words == other, np.bool_)
        wanted = alike if self.relation in ("is", "equals") else ~alike
        present = np.asarray((words != "") & (np.asarray(other, dtype=object) != ""), np.bool_)
        return np.asarray(wanted & present, np.bool_)

    def holds(self, settings: Mapping[str, Setting]) -> bool:
        """Return whether it holds of one model."""
        return bool(self.held(SettingsTable([settings]))[0])


@cache
def constant(text: str) -> float | None:
    """Return the number that a text says, None where it says none."""
    if power := _POWER.fullmatch(text):
        return float(2.0 ** int(power[1]))
    try:
        return float(text)
    except ValueError:
        return None


def written_number(number: float) -> str:
    """Return a number as predicates have it: fractions that are powers of 2 as such."""
    if number == int(number):
        return str(int(number))
    if number > 2**-99 and log2(number) == int(log2(number)):
        return f"2^{int(log2(number))}"
    return repr(float(number))


def _numbers(side: str, table: SettingsTable) -> NDArray[np.float64]:
    number = constant(side)
    return table.numbers(side) if number is None else np.full(len(table), number)
