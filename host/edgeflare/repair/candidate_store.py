"""The candidates in the folder of a repair, each plan's stored when they are judged.

So a repair that was stopped goes on with the plan it was at, and a user may take another of the
files than the one that was chosen. `about.json` says what the repair is about; `PLAN.json` what was
tried of a plan, and beside it lie the files of those that are judged.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import msgspec

from edgeflare.devices.provenance import DEVICE_DECIDES, HOST_DECIDES, Provenance, decisive_changes
from edgeflare.errors import UserError
from edgeflare.models.run_host import RunHost
from edgeflare.outside_text import json_value
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import is_free, remove_files
from edgeflare.record.folder_contents import read_contents
from edgeflare.record.request import require_same_request
from edgeflare.repair.fitting.float_model import Recipe
from edgeflare.repair.repair_candidate import PLAIN_NAME, RepairCandidate
from edgeflare.repair.repair_document import TriedCandidate
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.run.run_directory import RunDirectory

FOLDER = "candidates"
_FILE = re.compile(rf"{PLAIN_NAME.pattern}(\.tflite)?", re.ASCII)
"""Names of candidates, and of the files beside them."""

ABOUT = "about.json"


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of a candidate.

    Attributes:
        candidate: None where it is set aside.
        tried: what the document has of it.
        unmade: whether it cannot be made of these models and inputs.

    """

    candidate: RepairCandidate | None
    tried: TriedCandidate
    unmade: bool = False

    @property
    def held(self) -> bool:
        """Whether it is known what the candidate costs, or why that is not measured."""
        return self.tried.latency_ratio is not None or self.tried.set_aside is not None


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is stored of a candidate; the hash is that of its file, None where it has none."""

    tried: TriedCandidate
    unmade: bool
    sha256: str | None = None
    recipe: Recipe | None = None
    files: Mapping[str, bytes] = {}


def require_same_repair(folder: Path, about: RepairIdentity) -> None:
    """Refuse to go on with what is in a folder, unless it is a repair about the same.

    Args:
        folder: the folder, which holds something.
        about: what the repair that goes on is about.

    Raises:
        UserError: it is none, or one about something else.

    """
    try:
        begun = json_value(RunDirectory(folder).read(f"{FOLDER}/{ABOUT}"))
        known = msgspec.convert(begun, RepairIdentity)
    except FileNotFoundError:
        raise UserError(
            f"{folder} holds no repair to go on with: leave --resume away, and name a folder"
            " that is absent or empty with --out"
        ) from None
    except (OSError, ValueError) as error:
        raise UserError(
            f"{folder / FOLDER / ABOUT} is damaged ({error}): begin the repair anew, in another"
            " folder with --out"
        ) from error
    known.require_same(about, folder)


class StoredCandidates:
    """The candidates that a repair has tried, in its folder."""

    def __init__(self, folder: Path, about: RepairIdentity, *, resume: bool) -> None:
        """Begin, or go on with what is there.

        Args:
            folder: folder of the repair.
            about: what the repair is about.
            resume: whether what is there counts; a folder that is absent or empty is begun.

        Raises:
            UserError: what is there is no repair, or not about the same.

        """
        self._directory = RunDirectory(folder)
        if resume and not is_free(folder):
            require_same_repair(folder, about)
        else:
            write_atomically(self._path(ABOUT), msgspec.json.format(msgspec.json.encode(about)))

    def read(self, plan: str) -> list[Attempt] | None:
        """Return what came of a plan; None where it was not tried, or a file of it is damaged."""
        try:
            data = self._read(f"{plan}.json")
            return [
                self._opened(entry) for entry in msgspec.convert(json_value(data), list[_Entry])
            ]
        except (OSError, ValueError, UserError):  # msgspec's errors and what is outside are among
            return None

    def write(self, plan: str, attempts: Sequence[Attempt]) -> None:
        """Store what came of a plan."""
        entries = []
        for attempt in attempts:
            candidate = attempt.candidate
            if candidate is None:
                entries.append(_Entry(attempt.tried, attempt.unmade))
                continue
            path = self._directory.inside(stored_file(candidate.name))
            write_atomically(path, candidate.content)
            sha256 = hashlib.sha256(candidate.content).hexdigest()
            recipe, files = candidate.recipe, candidate.files
            entries.append(_Entry(attempt.tried, attempt.unmade, sha256, recipe, files))
        write_atomically(self._path(f"{plan}.json"), msgspec.json.encode(entries))

    def remove(self) -> None:
        """Remove what is stored."""
        folder = self._directory.path
        contents = read_contents(folder)
        listed = () if contents is None else contents.names
        stored = (name for name in listed if name.startswith(f"{FOLDER}/"))
        remove_files(folder, f"{FOLDER}/{ABOUT}", *stored)  # the folder too, with nothing in it

    def _path(self, name: str) -> Path:
        """Return the path of a stored file, which is in the folder: it may come from others."""
        return self._directory.inside(f"{FOLDER}/{name}")

    def _read(self, name: str) -> bytes:
        """Return the content of a stored file, likewise."""
        return self._directory.read(f"{FOLDER}/{name}")

    def _opened(self, entry: _Entry) -> Attempt:
        if entry.sha256 is None:
            return Attempt(None, entry.tried, entry.unmade)
        tried, files = entry.tried, entry.files
        path = stored_file(tried.name)
        content = self._directory.read(path)
        plain = all(_FILE.fullmatch(name) for name in (tried.name, *files)) and tried.file == path
        if not plain or hashlib.sha256(content).hexdigest() != entry.sha256:
            raise ValueError(f"the candidate {tried.name!r} is damaged")
        candidate = RepairCandidate(tried.name, content, entry.recipe, tried.details, files)
        return Attempt(candidate, tried)


def stored_file(candidate: str) -> str:
    """Return the path of a candidate's file in the folder of the repair."""
    return f"{FOLDER}/{candidate}.tflite"


class RepairIdentity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a repair is about.

    Attributes:
        version: version of edgeflare that began the repair.
        pair: fingerprint of the pair.
        run: path of the run whose findings are mended; None without.
        findings: how many that run has.
        devices: what was known of each.
        host: what runs original and twin.
        request: what was asked.
        packages: those that bring further methods which are asked for, with their versions.

    """

    version: str
    pair: str
    run: str | None
    findings: int
    devices: tuple[Provenance, ...]
    host: RunHost
    request: RepairRequest
    packages: tuple[str, ...]

    def require_same(self, now: RepairIdentity, folder: Path) -> None:
        """Refuse to go on with a repair of something else.

        Args:
            now: what goes on with this one.
            folder: folder that both would use.

        """
        named = ("version", "pair", "run", "findings")
        differing = [name for name in named if getattr(self, name) != getattr(now, name)]
        for own, other in zip_longest(self.devices, now.devices):
            if own is None or other is None:
                differing.append("number of devices")
                break
            changes = decisive_changes(own, other, DEVICE_DECIDES)
            differing += [f"device, by its {change.name}," for change in changes]
        changes = decisive_changes(self.host, now.host, HOST_DECIDES)
        differing += [f"host, by its {change.name}," for change in changes]
        if self.packages != now.packages:
            differing.append("version of a repair method's package")
        if differing:
            raise UserError(
                f"{folder} holds a repair with another {differing[0]}: give that as before, or"
                " name another folder with --out"
            )
        require_same_request(self.request, now.request, folder)
