"""A command's folder as bytes: what an attempt sends to the head, while it works and at its end.

It is a run directory, or a folder of some, such as that of a bench.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import zipfile
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from edgeflare.errors import EdgeFlareError, UserError
from edgeflare.record.database import store_copy
from edgeflare.record.folder_contents import LIST, write_atomically
from edgeflare.record.path_inside import path_inside
from edgeflare.regular_file import read_regular
from edgeflare.run.run_directory import CONFORM_JOURNAL, JOURNAL, MOST_BYTES

_JOURNALS: Final = (JOURNAL, CONFORM_JOURNAL)
_NAME: Final = re.compile(r"(?:[^/\\.][^/\\]*/)*[^/\\.][^/\\]*")
"""Of a file in an archive: relative, and no part of it is hidden or leads out."""

_OF_ARCHIVES: Final = (
    *(zipfile.BadZipFile, zlib.error, EOFError),
    RuntimeError,  # encryption, and ways to pack that it does not know
)
"""Errors that `zipfile` raises of what it is given."""


class NotARunError(UserError):
    """What a host has sent as the archive of a run is none."""


def archive_folder(path: Path) -> bytes | None:
    """Return a folder as it is right now, also while it is being worked on; None for nothing yet.

    Journals are copied first, and inputs are stored before a journal names them: so an archive has
    all that its journals name, but for what the command has replaced meanwhile. Hidden files, such
    as those that are just being written, are left out, and so are runs that are just being made.

    Raises:
        UserError: a file in it is none of a run, but a pipe or a device, or too large.

    """
    written = io.BytesIO()
    with (
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        TemporaryDirectory(prefix="edgeflare-journal-") as copies,
    ):
        unbegun: set[Path] = set()
        journals = [one for one in _files(path) if one.name in _JOURNALS]
        for at, journal in enumerate(journals):
            copy = Path(copies) / str(at)
            if _is_copied(journal, copy):
                archive.write(copy, journal.relative_to(path).as_posix())
            else:
                unbegun.add(journal.parent)
        for file in _files(path):  # after the journals are copied: what they name is there
            if file.name.startswith(_JOURNALS) or not unbegun.isdisjoint(file.parents):
                continue
            with contextlib.suppress(FileNotFoundError):  # the command has replaced it
                content = read_regular(file, MOST_BYTES)
                archive.writestr(file.relative_to(path).as_posix(), content)
        found = bool(archive.namelist())
    return written.getvalue() if found else None


def unpack_folder(data: bytes, path: Path) -> None:
    """Write an archived folder, which is made; files that are there already are replaced.

    Raises:
        NotARunError: it is no archive, or names a file that is not in the folder.

    """
    path.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in sorted(archive.namelist(), key=_when_unpacked):
                if not _NAME.fullmatch(name):
                    raise NotARunError(f"an archived run names {name!r}, which no run has")
                if archive.getinfo(name).file_size > MOST_BYTES:
                    raise NotARunError(f"{name} of an archived run is larger than any of a run")
                write_atomically(path_inside(path, name), archive.read(name))
    except _OF_ARCHIVES as error:
        raise NotARunError(f"an archived run is damaged ({error})") from None


def _when_unpacked(name: str) -> tuple[bool, bool, str]:
    """Order lists before what they list, and journals after what they name."""
    return name.endswith(_JOURNALS), not name.endswith(LIST), name


def _files(path: Path) -> list[Path]:
    """Return the files of a folder that are not hidden, in a fixed order."""
    found = []
    for folder, folders, files in os.walk(path):
        folders[:] = [one for one in folders if not one.startswith(".")]
        found += [Path(folder) / one for one in files if not one.startswith(".")]
    return sorted(one for one in found if not one.is_symlink())


def _is_copied(journal: Path, copy: Path) -> bool:
    """Copy a journal; return False for one that is just being made, with which none can go on."""
    try:
        return store_copy(journal, copy) != 0
    except EdgeFlareError:
        return False
