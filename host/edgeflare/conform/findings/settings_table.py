"""Settings of many models, as columns of the quantities that conditions speak of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.specification.parameter import Setting

Numbers = NDArray[np.float64]

OF_TUPLES: Mapping[str, Callable[[tuple[int, ...]], int | None]] = {
    "rank": len,
    "size": prod,
    "least": lambda values: min(values, default=None),
    "greatest": lambda values: max(values, default=None),
}
"""Quantities of a shape or of other whole numbers, such as `rank(shape)`."""

_NAME = r"[A-Za-z_]\w*"
_SIMPLE = rf"(?:{_NAME}|{_NAME}\[-?\d+\]|(?:{'|'.join(OF_TUPLES)})\({_NAME}\))"
_QUANTITY = re.compile(rf"{_SIMPLE}(?: % [1-9]\d*| / {_SIMPLE})?")
_OF_TUPLE = re.compile(rf"({'|'.join(OF_TUPLES)})\(({_NAME})\)")
_AT = re.compile(rf"({_NAME})\[(-?\d+)\]")


def is_quantity(text: str) -> bool:
    """Return whether a text is a quantity.

    Quantities are a setting's name; `shape[-1]`, one dimension; `rank(shape)` and the others of
    `OF_TUPLES`; the remainder of one of these, `channels % 4`; and the ratio of two,
    `input_scale / output_scale`.
    """
    return _QUANTITY.fullmatch(text) is not None


def setting_names(quantity: str) -> tuple[str, ...]:
    """Return the names of the settings that a quantity is computed from."""
    return tuple(_reader(part)[0] for part in quantity.split(" % ", maxsplit=1)[0].split(" / "))


class SettingsTable:
    """The settings of some models, one row for each."""

    def __init__(self, rows: Sequence[Mapping[str, Setting]]) -> None:
        self.rows = rows
        self._numbers: dict[str, Numbers] = {}
        self._words: dict[str, NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def names(self) -> tuple[str, ...]:
        """Return the names of all settings, in the order of their first row."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row))

    def settings(self, name: str) -> list[Setting]:
        """Return the settings of one name, of the rows that have it."""
        return [row[name] for row in self.rows if name in row]

    def numbers(self, quantity: str) -> Numbers:
        """Return a quantity of each row; NaN where the row has none, or none that is a number."""
        if quantity not in self._numbers:
            self._numbers[quantity] = self._computed(quantity)
        return self._numbers[quantity]

    def words(self, name: str) -> NDArray[Any]:
        """Return a setting of each row as it is written; empty where the row has none."""
        if name not in self._words:
            written = [written_setting(row[name]) if name in row else "" for row in self.rows]
            self._words[name] = np.array(written, dtype=object)
        return self._words[name]

    def _computed(self, quantity: str) -> Numbers:
        with np.errstate(all="ignore"):
            if " % " in quantity:
                divided, divisor = quantity.split(" % ")
                return np.mod(self.numbers(divided), int(divisor))
            if " / " in quantity:
                above, below = quantity.split(" / ")
                ratio = self.numbers(above) / self.numbers(below)
                return np.where(np.isfinite(ratio), ratio, np.nan)
        name, of_setting = _reader(quantity)
        column = [of_setting(row[name]) if name in row else None for row in self.rows]
        return np.array([np.nan if number is None else number for number in column], np.float64)


def written_setting(setting: Setting) -> str:
    """Return a setting as conditions have it."""
    if isinstance(setting, bool):
        return "yes" if setting else "no"
    if isinstance(setting, tuple | list):
        return f"[{', '.join(map(str, setting))}]"
    return str(setting)


def _reader(quantity: str) -> tuple[str, Callable[[Setting], float | None]]:
    """Return the setting that a simple quantity is of, and what makes it of that."""
    if of_tuple := _OF_TUPLE.fullmatch(quantity):
        computed = OF_TUPLES[of_tuple[1]]
        return of_tuple[
            2
        ], lambda setting: computed(tuple(setting)) if isinstance(setting, tuple | list) else None
    if at := _AT.fullmatch(quantity):
        place = int(at[2])
        return at[1], lambda setting: _element(setting, place)
    return quantity, lambda setting: setting if isinstance(setting, int | float) else None


def _element(setting: Setting, place: int) -> float | None:
    if not isinstance(setting, tuple | list):
        return None
    return setting[place] if -len(setting) <= place < len(setting) else None
