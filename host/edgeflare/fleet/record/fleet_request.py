"""What a command with --fleet was asked: kept in its folder, and held to when it goes on."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import edgeflare
from edgeflare.record.json_types import plain_json
from edgeflare.record.request import DERIVED, Option, require_same_request
from edgeflare.run.plan import Plan


@dataclass(frozen=True, slots=True)
class FleetRequest:
    """What decides what the units of a fleet do.

    Attributes:
        classes: the classes of devices that units run on.
        command: the words of the command; of a search its name alone, since its plan has the rest.
        files: digests of the pairs, models and runs that it reads.
        plan: what is searched; None of other commands.
        version: the version of EdgeFlare, which all hosts have.
        cwd: the folder that the command was typed in, where relative paths begin.

    """

    classes: Annotated[tuple[str, ...], Option("--device", ", ".join)]
    command: Annotated[tuple[str, ...], Option("the words", " ".join)]
    files: Annotated[tuple[str, ...], Option("the files", " ".join)] = ()
    plan: Annotated[Plan | None, DERIVED] = None
    version: Annotated[str, Option("edgeflare")] = edgeflare.__version__
    cwd: Annotated[str, Option("the folder")] = field(default_factory=os.getcwd)

    @property
    def campaign(self) -> str:
        """A digest of all that, by which hosts know the work."""
        told = json.dumps(plain_json(self), sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def require_goes_on_with(self, begun: FleetRequest, folder: Path) -> None:
        """Refuse to go on with what was asked for otherwise.

        Args:
            begun: what the command was asked that began the folder.
            folder: the folder, for the message.

        """
        require_same_request(begun, self, folder)
        if begun.plan is not None and self.plan is not None:
            require_same_request(begun.plan, self.plan, folder)
