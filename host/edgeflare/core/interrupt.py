"""The user's wish to stop, by Ctrl-C or by SIGTERM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

InterruptedBy = Literal["interrupt", "sigterm"]
"""What asked to stop, as documents say it: Ctrl-C, or SIGTERM."""

INTERRUPTED_BY: Final[Mapping[str, str]] = {"interrupt": "Ctrl-C", "sigterm": "SIGTERM"}
"""What asked to stop, in words."""


class Interrupt:
    """The wish of the user to stop: asked once, the search stops; asked twice, everything does.

    Attributes:
        by: what asked first; Ctrl-C as long as nothing has.

    """

    def __init__(self) -> None:
        """Begin without such a wish."""
        self._times = 0
        self.by: InterruptedBy = "interrupt"

    def ask(self, by: InterruptedBy = "interrupt") -> None:
        """Ask to stop, or to stop at once."""
        if not self._times:
            self.by = by
        self._times += 1

    def asked(self) -> bool:
        """Whether the search should stop."""
        return self._times > 0

    def asked_by(self) -> InterruptedBy | None:
        """Return what asked first, or None."""
        return self.by if self._times else None

    def urgent(self) -> bool:
        """Whether everything should stop."""
        return self._times > 1
