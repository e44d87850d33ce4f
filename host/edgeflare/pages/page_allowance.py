"""What the figures of a page may weigh, so that a browser opens it at once."""

from __future__ import annotations

from dataclasses import dataclass

BUDGET = 6_000_000
"""Bytes that all pictures of a page may weigh together; a third more once they are text."""

MOST = 24_000
"""Bytes that one picture may weigh, in a page with few of them."""

PLAYERS = 12_000_000
"""Bytes that all sounds of a page may weigh together; a third more once they are text. A second at
16 kHz is 32 kB, and 96 kB for a finding: 124 of these have players."""


@dataclass(slots=True)
class PageAllowance:
    """What the figures of a page may weigh.

    Attributes:
        picture: the bytes of one picture.
        players: the bytes that are left for sounds.

    """

    picture: int
    players: int = PLAYERS

    def take(self, size: int) -> bool:
        """Take the bytes of a finding's sounds; False where too few are left.

        Cards are made in the order in which findings matter, so the first of them have players;
        after the first that has none, none has.
        """
        fits = size <= self.players
        self.players -= size if fits else self.players
        return fits


def allowance(pictures: int) -> int:
    """Return the bytes that each picture of a page may weigh."""
    return min(MOST, BUDGET // max(1, pictures))
