"""The document of a run directory, read or derived, and read or derived, and validated."""

from __future__ import annotations

from contextlib import closing

from edgeflare.errors import UserError
from edgeflare.record.folder import require_whole
from edgeflare.run.derive_document import derive_document
from edgeflare.run.document_check import check_document, read_document
from edgeflare.run.journal import Journal
from edgeflare.run.journal_database import reporting_damage
from edgeflare.run.run_directory import DOCUMENT, RunDirectory
from edgeflare.run.run_document import RunDocument


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
            raise UserError(f"{error}{_remedy(directory)}") from None
    with closing(Journal.open(directory.journal)) as journal, reporting_damage(directory.journal):
        return check_document(derive_document(directory, journal), directory.journal)


def _remedy(directory: RunDirectory) -> str:
    """Say what helps where a document is damaged and its journal is there."""
    if not directory.journal.is_file():
        return ""
    return f"; remove it, and it is derived anew from {directory.journal.name}"
