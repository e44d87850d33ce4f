"""Whether what lies where a fleet's result goes is as the fleet left it, and may be replaced.

Somebody may go on with a run that a fleet has made in part, or begin another one in its place. A
fleet neither writes over that nor takes it for its own result.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from edgeflare.errors import UserError
from edgeflare.outside_text import json_value
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import ClaimedFolder
from edgeflare.regular_file import open_regular
from edgeflare.run.run_directory import (
    CONFORM_DOCUMENT,
    CONFORM_JOURNAL,
    DOCUMENT,
    JOURNAL,
    SURVEY_DOCUMENT,
    RunDirectory,
    list_journals,
)

_FILES: Final = (
    *(DOCUMENT, SURVEY_DOCUMENT, CONFORM_DOCUMENT),
    *(name for journal in (JOURNAL, CONFORM_JOURNAL) for name in (journal, f"{journal}-wal")),
)
"""What changes with each search that ends in a run directory."""

_PART: Final = 2**20
"""Bytes that are read at once."""


@dataclass(frozen=True, slots=True)
class FleetOutput:
    """Run directories that a fleet writes, and what it knows of them.

    Attributes:
        marker: the file that keeps, for each of them, the sha256 of what may be replaced there, and
            of what the fleet has put there itself.

    """

    marker: Path

    def begin(self, places: Sequence[Path]) -> None:
        """Note what lies in some places as a fleet begins anew: the user wants it replaced."""
        self._keep({str(place): {"replaced": _digest(place)} for place in places})

    def put(self, claimed: ClaimedFolder, made: Path) -> None:
        """Put a copy of a run directory into a place: all of it or, where this process ends, none.

        Args:
            claimed: where it comes to lie, instead of what is there.
            made: the run directory.

        Raises:
            UserError: somebody has changed what lies there.

        """
        place = claimed.path
        self.require_unchanged([place])
        # Before it lies there: whenever this process is killed, one of the two does.
        noted = {"replaced": _digest(place), "made": _digest(made)}
        self._keep({**self._kept(), str(place): noted})
        with claimed.replaced() as new:
            shutil.copytree(made, new, dirs_exist_ok=True)
            list_journals(new)

    def is_made(self, place: Path) -> bool:
        """Tell whether the fleet has put there what lies in a place, and nobody has changed it."""
        return self._kept().get(str(place), {}).get("made") == _digest(place)

    def require_unchanged(self, places: Sequence[Path]) -> None:
        """Refuse places in which somebody has changed what lies there."""
        kept = self._kept()
        for place in places:
            if place.exists() and _digest(place) not in kept.get(str(place), {}).values():
                raise UserError(
                    f"{place} is not as the fleet left it, and would be written over: go on with it"
                    " without --fleet, or move it away, after which --resume goes on"
                )

    def _kept(self) -> Mapping[str, Mapping[str, str]]:
        try:
            kept = json_value(RunDirectory(self.marker.parent).read(self.marker.name))
            return msgspec.convert(kept, dict[str, dict[str, str]])
        except (FileNotFoundError, ValueError):  # nothing yet, or damaged by a loss of power
            return {}

    def _keep(self, kept: Mapping[str, Mapping[str, str]]) -> None:
        write_atomically(self.marker, json.dumps(kept).encode())


def _digest(place: Path) -> str:
    """Return the sha256 of what a search changes in a run directory; it may be absent."""
    digest = hashlib.sha256()
    for file in (place / name for name in _FILES):
        size = file.stat().st_size if file.is_file() else 0
        digest.update(f"{file.name} {size} ".encode())
        if size:
            with open_regular(file) as content:
                for part in iter(partial(content.read, _PART), b""):
                    digest.update(part)
    return digest.hexdigest()
