"""What a comparison of layers could not see."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from edgeflare.pages.facts import shortened

_MOST_NAMED: Final = 3
"""Layers that are named in a sentence."""

_LONGEST: Final = 200
"""Characters of a note: runtimes say again what they said of earlier inputs."""


class ComparisonNotes:
    """Notes on what could not be seen, one for each reason, with the inputs that it held for."""

    def __init__(self) -> None:
        """Begin without any."""
        self._said: dict[str, str] = {}
        self._inputs: dict[str, int] = {}

    def add(self, reason: str, said: str) -> None:
        """Note what could not be seen.

        Args:
            reason: tells it from others; of one reason the first note is kept.
            said: a sentence without its full stop.

        """
        self._said.setdefault(reason, shortened(said, _LONGEST))
        self._inputs[reason] = self._inputs.get(reason, 0) + 1

    def lines(self) -> list[str]:
        """Return each note, with how often it was made where that was more than once."""
        return [
            f"{said} ({self._inputs[reason]} times)" if self._inputs[reason] > 1 else said
            for reason, said in self._said.items()
        ]


def listed(names: Iterable[str]) -> str:
    """Return names in a row, of many the first."""
    given = list(names)
    more = len(given) - _MOST_NAMED
    return ", ".join(given[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
