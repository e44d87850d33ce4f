"""The document of a run directory, read or derived, and validated.

A document that somebody hands over is held to what its schema says, and to what that cannot say:
that its parts agree, and that the views of its answers are no larger than answers are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from edgeflare.core.query import Arm
from edgeflare.errors import UserError
from edgeflare.record.document_reader import DocumentReader
from edgeflare.record.folder import require_whole
from edgeflare.run.derive_document import derive_document
from edgeflare.run.run_directory import DOCUMENT, JOURNAL, RunDirectory
from edgeflare.run.run_document import Finding, RunDocument, to_json
from edgeflare.run.run_header import RunHeader
from edgeflare.run.run_journal import RunJournal


def load_document(directory: RunDirectory) -> RunDocument:
    """Return a run's document; derived from the journal where a run was cut off before its end.

    Raises:
        UserError: there is no run, or what is there is damaged; names the file, and the place.

    """
    require_whole(directory.path)
    if directory.document.is_file():
        try:
            return read_document(directory.inside(DOCUMENT))
        except UserError as error:
            remedy = _REMEDY if directory.journal.is_file() else ""
            raise UserError(f"{error}{remedy}") from None
    with RunJournal.read(directory.journal) as journal:
        document = to_json(derive_document(directory, journal))
    return _READER.check(json.dumps(document).encode(), directory.journal)


_REMEDY: Final = f"; remove it, and it is derived anew from {JOURNAL}"


def require_own_seeds(document: RunDocument, header: RunHeader, directory: RunDirectory) -> None:
    """Refuse a document with entries of seeds that its run has not, by whoever looks them up there.

    Raises:
        UserError: it has one; names the place.

    """
    for key, entries in document.lists.items():
        for n, entry in enumerate(entries):
            if entry.seed_id not in header.all_seeds:
                raise UserError(
                    f"{directory.document} is damaged: {key}[{n}].seed_id is {entry.seed_id}, which"
                    f" is no seed of the run{_REMEDY}"
                )


def read_document(path: Path) -> RunDocument:
    """Return the document in a file.

    Raises:
        UserError: the file cannot be read or is damaged; names it, and the place in it.

    """
    return _READER.read(path)


def _contradictions(document: RunDocument) -> Iterator[str]:
    devices = {device.name for device in document.devices}
    replay, totals = document.replay, document.totals
    for key, entries in document.lists.items():
        place = "replay.mended" if key == "mended" else key
        for n, entry in enumerate(entries):
            yield from _wrong_entry(f"{place}[{n}]", entry, devices)
    unmutated = document.unmutated
    found = None if unmutated is None else unmutated.systematic
    if found is not None and not (found.first is not Arm.DEVICE and found.second is Arm.DEVICE):
        yield "unmutated.systematic does not compare the device with another arm"
    if totals.deviating_seeds + totals.searched > totals.seeds:
        yield "totals has fewer seeds than searched and deviating_seeds together"
    if replay is not None:
        known = {entry.seed_id for entries in document.lists.values() for entry in entries}
        for key, seed_ids in (("new", replay.new), ("deviating_seeds", replay.deviating_seeds)):
            for n, seed_id in enumerate(seed_ids):
                if seed_id not in known:
                    yield f"replay.{key}[{n}] is {seed_id}, but no entry has this seed_id"


def _wrong_entry(place: str, entry: Finding, devices: set[str]) -> Iterator[str]:
    if entry.device not in devices:
        yield f"{place}.device is {entry.device!r}, but devices has none of this name"
    for arm, label in entry.labels.items():
        classes = len(entry.probabilities.get(arm, ()))
        counted = classes or arm not in entry.probabilities  # values have no probabilities
        if label is not None and label >= classes and counted:
            yield f"{place}.labels.{arm} is {label}, but {arm} has {classes} probabilities"
    for key in ("answers", "seed_answers"):
        for n, view in enumerate(getattr(entry, key) or ()):
            yield from view.wrong(f"{place}.{key}[{n}]")


_READER = DocumentReader(RunDocument, _contradictions)
