"""Beginning the journal of a conformance run, or going on with it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from edgeflare.conform.record.conform_header import ConformHeader
from edgeflare.conform.record.conform_journal import ConformJournal
from edgeflare.conform.record.conform_request import ConformRequest
from edgeflare.run.journal_database import reporting_damage
from edgeflare.run.run_directory import CONFORM_DOCUMENT, CONFORM_JOURNAL, RunDirectory


def begin_journal(path: Path, header: ConformHeader, *, overwrite: bool) -> ConformJournal:
    """Begin a run.

    Raises:
        UserError: there is something at the path that must not be written over.

    """
    directory = RunDirectory.claim(path, overwrite=overwrite)
    return ConformJournal.create(directory.path / CONFORM_JOURNAL, header.to_json())


def asked_before(path: Path) -> ConformRequest:
    """Return what a run was asked for that is to be gone on with.

    Raises:
        UserError: there is no run, or its journal is damaged.

    """
    file = path / CONFORM_JOURNAL
    with closing(ConformJournal.open(file)) as journal, reporting_damage(file):
        return ConformHeader.from_json(journal.about()).request


def resume_journal(path: Path, header: ConformHeader) -> ConformJournal:
    """Go on with a run; one that is refused stays as it was.

    Raises:
        UserError: there is no run, it is another than `header` says, or another process works on
            it.

    """
    journal = ConformJournal.open(path / CONFORM_JOURNAL)
    try:
        journal.lock()
        with reporting_damage(journal.path):
            ConformHeader.from_json(journal.about()).require_same(header, str(path))
        # It may take longer now, and must not be gone on with for less than that later.
        journal.note_request(header.request.to_json())
    except BaseException:
        journal.close()
        raise
    (path / CONFORM_DOCUMENT).unlink(missing_ok=True)
    return journal
