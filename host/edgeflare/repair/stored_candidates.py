"""The candidates in the folder of a repair, each plan's stored when they are judged.

So a repair that was stopped goes on with the plan it was at, and a user may take another of the
files than the one that was chosen. `about.json` says what the repair is about; `PLAN.json` what was
tried of a plan, and beside it lie the files of those that are judged.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from edgeflare.errors import UserError
from edgeflare.repair.candidate_plans import RepairCandidate
from edgeflare.repair.fitting.float_model import Recipe
from edgeflare.repair.repair_outcome import TriedCandidate
from edgeflare.run.run_directory import write_atomically

FOLDER = "candidates"
ABOUT = "about.json"

Tried = tuple[RepairCandidate | None, TriedCandidate]
"""A candidate, None where it is set aside, and what came of it."""


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is stored of a candidate; the hash is that of its file, None where it has none."""

    tried: TriedCandidate
    sha256: str | None = None
    recipe: Recipe | None = None
    files: Mapping[str, bytes] = {}


class StoredCandidates:
    """The candidates that a repair has tried, in its folder."""

    def __init__(self, folder: Path, about: Mapping[str, Any], *, resume: bool) -> None:
        """Begin, or go on with what is there.

        Args:
            folder: of the repair.
            about: what the repair is about, as plain JSON values.
            resume: whether what is there counts.

        Raises:
            UserError: what is there is not about the same.

        """
        self._folder = folder / FOLDER
        known = self._folder / ABOUT
        if resume and known.exists():
            _require_same(_read(known), about, folder)
        else:
            write_atomically(known, json.dumps(about, indent=1).encode() + b"\n")

    def read(self, plan: str) -> list[Tried] | None:
        """Return what came of a plan; None where it was not tried, or a file of it is damaged."""
        try:
            data = (self._folder / f"{plan}.json").read_bytes()
            return [self._opened(one) for one in msgspec.json.decode(data, type=list[_Entry])]
        except (OSError, msgspec.MsgspecError, _DamagedFileError):
            return None

    def write(self, plan: str, tried: Sequence[Tried]) -> None:
        """Store what came of a plan."""
        entries = []
        for candidate, result in tried:
            if candidate is None:
                entries.append(_Entry(result))
                continue
            write_atomically(self._folder / file_of(candidate.name), candidate.content)
            sha256 = hashlib.sha256(candidate.content).hexdigest()
            entries.append(_Entry(result, sha256, candidate.recipe, candidate.files))
        write_atomically(self._folder / f"{plan}.json", msgspec.json.encode(entries))

    def remove(self) -> None:
        """Remove what is stored, and the folder of the repair where it holds nothing else."""
        shutil.rmtree(self._folder, ignore_errors=True)
        with suppress(OSError):
            self._folder.parent.rmdir()

    def _opened(self, entry: _Entry) -> Tried:
        if entry.sha256 is None:
            return None, entry.tried
        name = entry.tried.name
        content = (self._folder / file_of(name)).read_bytes()
        if hashlib.sha256(content).hexdigest() != entry.sha256:
            raise _DamagedFileError
        details, files = entry.tried.details, entry.files
        return RepairCandidate(name, content, entry.recipe, details, files), entry.tried


def file_of(candidate: str) -> str:
    """Return the name of a candidate's file in the folder `candidates`."""
    return f"{candidate}.tflite"


class _DamagedFileError(Exception):
    pass


def _read(path: Path) -> Mapping[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise UserError(
            f"{path} is damaged ({error}): begin the repair anew, in another folder with --out"
        ) from error


def _require_same(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """Refuse to go on with a repair of something else.

    Raises:
        UserError: it is.

    """
    now = json.loads(json.dumps(now))
    differing = [key for key, value in now.items() if before.get(key) != value]
    if differing:
        raise UserError(
            f"{folder} holds a repair with another {' and '.join(differing)}: give that as before,"
            " or name another folder with --out"
        )
