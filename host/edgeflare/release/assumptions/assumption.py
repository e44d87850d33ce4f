"""What is assumed of a part of a pair."""

from __future__ import annotations

from dataclasses import dataclass, field

from edgeflare.models.pair_file import Settings


@dataclass(frozen=True, slots=True)
class Assumption:
    """What is assumed of a part of a pair.

    Attributes:
        settings: settings assumed where the user did not say any.
        notes: assumptions, a sentence each without its full stop.
        guessed: note that may well be wrong; empty where none is.
        refused: why nothing can be assumed, and what would say it; empty where all can.
        classes: how many the outputs tell apart; 0 where they tell none.
        lines: lines of a `pair.toml` that the user has to complete where it is refused.

    """

    settings: Settings = field(default_factory=Settings)
    notes: tuple[str, ...] = ()
    guessed: str = ""
    refused: str = ""
    classes: int = 0
    lines: tuple[str, ...] = ()

    def beside(self, other: Assumption) -> Assumption:
        """Return this and what is assumed of another part, whose notes come behind."""
        return Assumption(
            self.settings.over(other.settings),
            (*self.notes, *other.notes),
            self.guessed or other.guessed,
            self.refused or other.refused,
            self.classes or other.classes,
            (*self.lines, *other.lines),
        )
