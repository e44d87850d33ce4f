"""Beginning the journal of a conformance run, or going on with it."""

from __future__ import annotations

from pathlib import Path

from edgeflare.conform.record.conform_header import ConformHeader
from edgeflare.conform.record.conform_journal import ConformJournal
from edgeflare.conform.record.conform_request import ConformRequest
from edgeflare.record.journal import reporting_damage
from edgeflare.run.run_directory import CONFORM_DOCUMENT, CONFORM_JOURNAL, RunDirectory


def begin_journal(path: Path, header: ConformHeader, *, overwrite: bool) -> ConformJournal:
    """Begin a run.

    Raises:
        UserError: there is something at the path that must not be written over.

    """
    about = header.to_json()
    directory, lock = RunDirectory.claim(path, overwrite=overwrite)
    return ConformJournal.create(directory.conform_journal, about, lock=lock)


def asked_before(path: Path) -> ConformRequest:
    """Return what a run was asked for that is to be gone on with.

    Raises:
        UserError: there is no run, or its journal is damaged.

    """
    file = path / CONFORM_JOURNAL
    with ConformJournal.read(file) as journal:
        return ConformHeader.from_json(journal.about()).request


def require_same_run(path: Path, header: ConformHeader) -> None:
    """Refuse a run directory that holds another run than `header` says.

    Raises:
        UserError: it does, or there is no run, or its journal is damaged.

    """
    with ConformJournal.read(path / CONFORM_JOURNAL) as journal:
        ConformHeader.from_json(journal.about()).require_same(header, str(path))


def resume_journal(path: Path, header: ConformHeader) -> ConformJournal:
    """Go on with a run; one that is refused stays as it was.

    Raises:
        UserError: there is no run, it is another than `header` says, others have changed its
            document, or another process works on it.

    """

    def go_on(journal: ConformJournal) -> None:
        with reporting_damage(journal.path):
            ConformHeader.from_json(journal.about()).require_same(header, str(path))
            journal.note_device(header.device.name)
        # It may take longer now, and must not be gone on with for less than that later.
        journal.note("request", header.request.to_json())

    return ConformJournal.resume(path / CONFORM_JOURNAL, go_on, [CONFORM_DOCUMENT])
