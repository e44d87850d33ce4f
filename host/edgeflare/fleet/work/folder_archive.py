"""A command's folder as bytes: what an attempt sends to the head, while it works and at its end.

It is a run directory, or a folder of some, such as that of a bench.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import zipfile
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from edgeflare.errors import EdgeFlareError, UserError
from edgeflare.python_callable import reason
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.database import store_copy
from edgeflare.record.folder_contents import (
    HEADER_BYTES,
    LIST,
    MOST_LIST_BYTES,
    holds_of,
    new_file,
    read_contents,
)
from edgeflare.record.path_inside import path_inside
from edgeflare.regular_file import read_regular
from edgeflare.run.run_directory import (
    CONFORM_DOCUMENT,
    CONFORM_JOURNAL,
    DOCUMENT,
    JOURNAL,
    MOST_BYTES,
    RUN,
    SURVEY_DOCUMENT,
    files_of,
)

KINDS: Final = (RUN.holds, "bench", "ranking", "repair")
"""What a folder may hold that is sent, by its list; one without a list holds a run."""

MOST_JOURNAL_BYTES: Final = 2**36
"""Most bytes of a journal, which is unpacked in parts: one of many long searches is larger than
what is read at once."""

MOST_BYTES_TOGETHER: Final = 2**36
MOST_MEMBERS: Final = 2**20
"""Limits of an archive: a host may send few bytes that become very many."""

_MOST_NAME, _MOST_PART = 1024, 240
"""Bytes of a name in an archive, and of a part of it: file systems take 255, and a file has a
longer name until it is whole."""

_PART: Final = 2**20
"""Bytes of a file that are unpacked at once."""

_JOURNALS: Final = (JOURNAL, CONFORM_JOURNAL)
_OF_A_RUN: Final = (*_JOURNALS, DOCUMENT, SURVEY_DOCUMENT, CONFORM_DOCUMENT)
_NAME: Final = re.compile(r"(?:[^/\\.][^/\\]*/)*[^/\\.][^/\\]*")
"""A file's name in an archive: relative, and no part of it is hidden or leads out."""

_PACKINGS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Others unpack without a bound on memory."""


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
        journals = [kept for kept in _files(path) if kept.name in _JOURNALS]
        for at, journal in enumerate(journals):
            copy = Path(copies) / str(at)
            if _is_copied(journal, copy):
                archive.write(copy, journal.relative_to(path).as_posix())
            else:
                unbegun.add(journal.parent)
        for file in _files(path):  # after the journals are copied: what they name is there
            if file.name.startswith(_JOURNALS) or not unbegun.isdisjoint(file.parents):
                continue
            if file.name == LIST and read_contents(file.parent) is None:
                continue  # damaged: whoever goes on with the folder does so as without it
            with contextlib.suppress(FileNotFoundError):  # the command has replaced it
                content = read_regular(file, MOST_BYTES)
                archive.writestr(file.relative_to(path).as_posix(), content)
        contents = read_contents(path)
        holds = RUN.holds if contents is None else contents.holds
        found = _is_run(archive.namelist(), holds)
    return written.getvalue() if found else None


def unpack_folder(data: bytes, path: Path) -> None:
    """Write an archived folder, which is made; files that are there already are replaced.

    Raises:
        NotARunError: it is none; nothing was written.
        OSError: the disk does not allow it.

    """
    require_run(data)
    path.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in sorted(archive.namelist(), key=_when_unpacked):
            place = path_inside(path, name)
            if _is_journal(name):
                with archive.open(name) as packed:
                    # A journal is listed as a database already, where there is a list.
                    try:
                        place.parent.mkdir(parents=True, exist_ok=True)
                        with new_file(place) as file:
                            shutil.copyfileobj(packed, file, _PART)
                    except OSError as error:
                        raise OSError(error.errno, error.strerror, str(place)) from error
            else:
                write_atomically(place, archive.read(name))


def require_run(data: bytes) -> None:
    """Refuse what is no archive of a run, or of a folder of some; all of it is read.

    Raises:
        NotARunError: it is none, or damaged, or larger than any.

    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _require_members(archive.infolist())
            holds = _held(archive)
            for name in archive.namelist():
                with archive.open(name) as packed:
                    while packed.read(_PART):
                        pass
    except NotARunError:
        raise
    except Exception as error:  # decoders raise of many kinds, and nothing but them is asked here
        raise NotARunError(f"an archived run is damaged ({reason(error)})") from None
    if not _is_run(archive.namelist(), holds):
        raise NotARunError("an archived run has neither a journal nor a document")


def _require_members(members: Sequence[zipfile.ZipInfo]) -> None:
    """Refuse members that cannot all become files of a folder, or too many of them."""
    if len(members) > MOST_MEMBERS:
        raise NotARunError(f"an archived run has more than {MOST_MEMBERS} files")
    for member in members:
        _require_member(member)
    if sum(member.file_size for member in members) > MOST_BYTES_TOGETHER:
        raise NotARunError(f"an archived run has more than {MOST_BYTES_TOGETHER >> 30} GiB")
    names = {member.filename for member in members}
    if len(names) < len(members):
        raise NotARunError("an archived run names a file twice")
    for folder in {parent for name in names for parent in PurePosixPath(name).parents}:
        if folder.as_posix() in names or folder.name == LIST:
            raise NotARunError(f"an archived run names {folder.as_posix()!r} as a folder")


def _require_member(member: zipfile.ZipInfo) -> None:
    """Refuse a member whose name no file of a run has, or that is too large."""
    name = member.filename
    if not _NAME.fullmatch(name):
        raise NotARunError(f"an archived run names {name!r}, which no run has")
    parts = [os.fsencode(part) for part in name.split("/")]
    if len(b"/".join(parts)) > _MOST_NAME or max(map(len, parts)) > _MOST_PART:
        raise NotARunError(f"an archived run has a name that is too long: {name[:40]!r}…")
    most = MOST_LIST_BYTES if PurePosixPath(name).name == LIST else MOST_BYTES
    if member.file_size > (MOST_JOURNAL_BYTES if _is_journal(name) else most):
        raise NotARunError(f"{name!r} of an archived run is larger than any of a run")
    if member.compress_type not in _PACKINGS:
        raise NotARunError(f"{name!r} of an archived run is packed in an unknown way")


def _held(archive: zipfile.ZipFile) -> str:
    """Return what an archived folder holds, by its list."""
    held = RUN.holds
    for name in archive.namelist():
        if PurePosixPath(name).name != LIST:
            continue
        with archive.open(name) as packed:
            holds = holds_of(packed.read(HEADER_BYTES))
        if holds is None or (name == LIST and holds not in KINDS):
            raise NotARunError(f"{name!r} of an archived run is no list of a run's files")
        held = holds if name == LIST else held
    return held


def _is_run(names: Collection[str], holds: str) -> bool:
    """Tell whether a folder has a journal or a document of what it holds, by its files' names."""
    inner = () if holds == RUN.holds else [PurePosixPath(name).name for name in names]
    known = {*_OF_A_RUN, *files_of(holds)}
    return holds in KINDS and not known.isdisjoint([*names, *inner])


def _is_journal(name: str) -> bool:
    """Tell whether an archived file is a journal, or what is written ahead of one."""
    return PurePosixPath(name).name.removesuffix("-wal") in _JOURNALS


def _when_unpacked(name: str) -> tuple[bool, bool, str]:
    """Order lists before what they list, and journals after what they name."""
    return _is_journal(name), not name.endswith(LIST), name


def _files(path: Path) -> list[Path]:
    """Return the files of a folder that are not hidden, in a fixed order."""
    found = []
    for folder, folders, files in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(folder) / file for file in files if not file.startswith(".")]
    return sorted(entry for entry in found if not entry.is_symlink())


def _is_copied(journal: Path, copy: Path) -> bool:
    """Copy a journal; return False for one that is just being made, with which none can go on."""
    try:
        return store_copy(journal, copy) != 0
    except EdgeFlareError:
        return False
