"""A cause: why a model may not ship, and the rule that found it."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Rule = Literal[
    "data",
    "failures",
    "file",
    "stages",
    "kernels",
    "order",
    "preprocessing",
    "range",
    "layer",
    "class",
    "one-sided",
    "field",
    "accuracy",
    "changes",
    "gate",
]
"""What a cause is, by the rule that found it."""


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a model may not ship, or why nothing can be said.

    Attributes:
        rule: rule that found it.
        words: what is wrong, a sentence without its full stop.
        evidence: what shows it, with the measurement that would refute it, likewise.
        next: what to do about it, likewise.

    """

    rule: Rule
    words: str
    evidence: str
    next: str


UNDECIDED: Final[frozenset[Rule]] = frozenset({"data", "changes"})
"""Rules by which nothing can be said of the model, for good or for ill."""

OF_THE_FILE: Final[frozenset[Rule]] = frozenset(
    {"file", "range", "layer", "class", "one-sided", "field", "accuracy", "gate"}
)
"""Rules by which the numbers in the compressed file are to blame, so that others may mend it."""
