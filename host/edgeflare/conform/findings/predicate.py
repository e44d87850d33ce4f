"""A predicate over the settings of a model, in the words that reports show and users write."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import log2

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.findings.settings_table import SettingsTable, is_quantity, setting_names
from edgeflare.conform.specification.settings import Setting

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
        for one in named:
            if not is_quantity(one) and (relation not in _NUMERIC or constant(one) is None):
                raise ValueError(f"{one!r} in {text!r} is no quantity: write one as in {FORMS}")
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
        quantities = [one for one in sides if not (self.is_numeric and constant(one) is not None)]
        return tuple(name for one in quantities for name in setting_names(one))

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
