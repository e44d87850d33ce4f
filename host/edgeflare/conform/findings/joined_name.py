"""The name of a finding of operators that fail joined alone, such as "RELU then NEG"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_THEN: Final = " then "


def joined_name(operators: Sequence[str]) -> str:
    """Return the name of operators in their order, of one its own."""
    return _THEN.join(operators)


def named_operators(name: str) -> list[str]:
    """Return the operators that a name says, in their order."""
    return name.split(_THEN)
