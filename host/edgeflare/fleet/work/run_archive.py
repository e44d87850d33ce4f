"""A run directory as bytes: what an attempt sends to the head, while it works and at its end."""

from __future__ import annotations

import contextlib
import io
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from edgeflare.errors import UserError
from edgeflare.run.run_directory import (
    DOCUMENT,
    INPUT_FOLDERS,
    JOURNAL,
    RunDirectory,
    write_atomically,
)


def archive_run(path: Path) -> bytes | None:
    """Return a run as it is right now, also while it is being worked on; None where there is none.

    The journal is copied first, and inputs are stored before the journal names them: so an archive
    has all that its journal names, but for what the run has replaced meanwhile.
    """
    directory = RunDirectory(path)
    if not directory.journal.is_file():
        return None
    written = io.BytesIO()
    with (
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        TemporaryDirectory(prefix="edgeflare-journal-") as folder,
    ):
        copy = Path(folder) / JOURNAL
        try:
            begun = _copy_journal(directory.journal, copy)
        except sqlite3.Error:
            return None
        if not begun:
            return None
        archive.write(copy, JOURNAL)
        for name in INPUT_FOLDERS:
            for file in sorted((path / name).glob("[!.]*")):
                with contextlib.suppress(FileNotFoundError):  # the run has replaced it
                    archive.writestr(f"{name}/{file.name}", file.read_bytes())
        with contextlib.suppress(FileNotFoundError):  # it goes where the run goes on
            archive.writestr(DOCUMENT, directory.document.read_bytes())
    return written.getvalue()


def unpack_run(data: bytes, path: Path) -> None:
    """Write an archived run into a folder, which is made.

    Raises:
        UserError: the archive names a file that is none of a run.

    """
    path.mkdir(parents=True, exist_ok=True)
    directory = RunDirectory(path)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in sorted(archive.namelist(), key=lambda one: one == JOURNAL):
            folder, _, file = name.rpartition("/")
            if name not in (JOURNAL, DOCUMENT) and (folder not in INPUT_FOLDERS or not file):
                raise UserError(f"{path}: an archived run names {name!r}, which no run has")
            write_atomically(directory.inside(name), archive.read(name))


def _copy_journal(journal: Path, copy: Path) -> bool:
    """Copy a journal; return False for one that is just being made, with which none can go on."""
    with (
        closing(sqlite3.connect(f"{journal.absolute().as_uri()}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)
        return bool(target.execute("PRAGMA user_version").fetchone()[0])
