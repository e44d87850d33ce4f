"""Whether what lies where a fleet's result goes is as the fleet left it, and may be replaced.

Somebody may go on with a run that a fleet has made in part, or begin another one in its place. A
fleet neither writes over that nor takes it for its own result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from edgeflare.errors import UserError
from edgeflare.run.run_directory import (
    CONFORM_DOCUMENT,
    CONFORM_JOURNAL,
    DOCUMENT,
    JOURNAL,
    SURVEY_DOCUMENT,
    write_atomically,
)

_FILES: Final = (
    *(DOCUMENT, SURVEY_DOCUMENT, CONFORM_DOCUMENT),
    *(name for journal in (JOURNAL, CONFORM_JOURNAL) for name in (journal, f"{journal}-wal")),
)
"""What changes with each search that ends in a run directory."""

_PART: Final = 2**20
"""Bytes that are read at once."""

_REPLACED, _WRITING, _MADE = "to be replaced", "being written", "made"


@dataclass(frozen=True, slots=True)
class FleetOutput:
    """What a fleet writes, and what it knows of it.

    Attributes:
        marker: the file that keeps what it knows.
        places: run directories.

    """

    marker: Path
    places: tuple[Path, ...]

    def begin(self) -> None:
        """Note what lies there as a fleet begins anew: the user wants it replaced."""
        self._note(f"{_REPLACED} {_digest(self.places)}")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Note that what lies there is being replaced, and then that the fleet has made it."""
        before = self._noted()
        self._note(_WRITING)
        try:
            yield
        except BaseException:
            self._note(before)
            raise
        self._note(f"{_MADE} {_digest(self.places)}")

    def is_made(self) -> bool:
        """Tell whether the fleet has made what lies there, and nobody has changed it since."""
        return self._noted() == f"{_MADE} {_digest(self.places)}"

    def require_unchanged(self) -> None:
        """Refuse to go on where somebody has changed what lies there.

        Raises:
            UserError: that is so; says how to go on.

        """
        noted = self._noted()
        if noted == _WRITING or not any(place.exists() for place in self.places):
            return
        if noted.rpartition(" ")[2] != _digest(self.places):
            named = self.places[0] if len(self.places) == 1 else self.places[0].parent
            raise UserError(
                f"{named} is not as the fleet left it, and would be written over: go on with it"
                " without --fleet, or move it away first"
            )

    def _noted(self) -> str:
        try:
            return self.marker.read_text()
        except FileNotFoundError:
            return ""

    def _note(self, text: str) -> None:
        write_atomically(self.marker, text.encode())


def _digest(places: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in (place / name for place in places for name in _FILES):
        size = file.stat().st_size if file.is_file() else 0
        digest.update(f"{file.name} {size} ".encode())
        if size:
            with file.open("rb") as content:
                for part in iter(partial(content.read, _PART), b""):
                    digest.update(part)
    return digest.hexdigest()
