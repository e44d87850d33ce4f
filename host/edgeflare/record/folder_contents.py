"""The list of what EdgeFlare wrote in a folder: by that it is known, and by no name of a file.

`contents.jsonl` begins with a line that says whose list it is, and has one more for each file that
was written: its path and the sha256 of its content. Each begins with a line feed, so that one that
a full disk or a kill has cut takes none that follows with it. A file is listed before it is
there: so none of ours is ever taken for somebody else's.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Final

from edgeflare.errors import UserError
from edgeflare.outside_text import json_value
from edgeflare.record.database import APPLICATION_ID
from edgeflare.record.path_inside import path_inside
from edgeflare.regular_file import open_regular, read_regular

LIST: Final = "contents.jsonl"
SCHEMA: Final = "edgeflare.folder/v1"
BEGUN_LIST: Final = f".{LIST}.new"

DATABASE: Final = "database"
FOLDER: Final = "folder"
STATE: Final = "state"
"""What a line says in the place of a digest where the content changes as a command works: a
database of SQLite, a folder with a list of its own, and a file that is rewritten all the time."""

BESIDE: Final = ("-wal", "-shm", "-journal")
"""What SQLite puts beside a database, by the ends of the names."""

_SQLITE: Final = b"SQLite format 3\0"
_WHOSE: Final = (APPLICATION_ID.to_bytes(4, "big"), bytes(4))
"""Byte 68 on says of whose application a database is; nothing yet until what is written ahead goes
into it. https://www.sqlite.org/fileformat.html
"""

MOST_LIST_BYTES: Final = 2**27
"""Room for 500,000 files."""

HEADER_BYTES: Final = 4096
"""Bytes at the beginning of a list, which has the line that says whose it is."""

_MARK: Final = 4096
"""Bytes at the end of a list by which it is known again: random names of unfinished files."""

_PART: Final = 2**20
"""Bytes of a file that are read at once."""


@dataclass(slots=True)
class FolderContents:
    """What the list of a folder says.

    Attributes:
        holds: what the folder is of, such as "run".
        by: the command that replaced what the folder holds.
        digests: the sha256s that a file has had, by its path.
        changing: what is listed without one, `DATABASE`, `FOLDER` or `STATE`, by its path.
        unfinished: names that files had as they were being written.
        beside: what there may be beside what changes, which goes with it; in order.

    """

    holds: str
    by: str = ""
    digests: dict[str, set[str]] = field(default_factory=dict)
    changing: dict[str, str] = field(default_factory=dict)
    unfinished: set[str] = field(default_factory=set)
    beside: dict[str, None] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """All that is listed, once; what SQLite puts beside a database comes before it."""
        names = (*self.beside, *self.unfinished, *self.digests, *self.changing)
        return list(dict.fromkeys(names))

    def is_ours(self, folder: Path, name: str) -> bool:
        """Tell whether what is there under a name is what EdgeFlare put there, unchanged.

        So is a listed file that a loss of power has emptied: nobody misses its content.
        """
        try:
            path = path_inside(folder, name)
            status = path.lstat()
        except (UserError, OSError):
            return False
        if self.changing.get(name) == FOLDER:
            return stat.S_ISDIR(status.st_mode) and _is_folder_of_ours(path)
        if not stat.S_ISREG(status.st_mode):
            return False
        if self.changing.get(name) == DATABASE:
            # A database that was just begun is empty.
            with path.open("rb") as file:
                header = file.read(72)
            return not header or (header.startswith(_SQLITE) and header[68:] in _WHOSE)
        if self.changing.get(name) == STATE or name in self.unfinished or name in self.beside:
            return True
        digests = self.digests.get(name)
        return digests is not None and (not status.st_size or sha256_of(path) in digests)

    def knows(self, folder: Path, name: str) -> bool:
        """Tell whether a file is ours; one in a folder with a list of its own tells by that."""
        if self.is_ours(folder, name):
            return True
        for end in (at for at, letter in enumerate(name) if letter == "/"):
            inner = name[:end]
            if self.changing.get(inner) == FOLDER and self.is_ours(folder, inner):
                contents, rest = read_contents(folder / inner), name[end + 1 :]
                return rest == LIST or (
                    contents is not None and contents.knows(folder / inner, rest)
                )
        return False

    def may_be_written(self, folder: Path, name: str) -> bool:
        """Tell whether what is there may be replaced; folders with lists tell by themselves."""
        return self.changing.get(name) == FOLDER or self.is_ours(folder, name)

    def add(self, line: dict[str, Any]) -> None:
        """Take what a line of the list says."""
        self.by = str(line.get("by", self.by))
        name, digest, kind = (line.get(key) for key in ("path", "sha256", "is"))
        if not isinstance(name, str):
            return
        if isinstance(digest, str):
            self.digests.setdefault(name, set()).add(digest)
        elif kind in (DATABASE, FOLDER, STATE):
            self.changing[name] = kind
            if kind == DATABASE:
                self.beside.update(dict.fromkeys(f"{name}{end}" for end in BESIDE))
            elif kind == STATE:
                self.beside[str(unfinished_state(Path(name)))] = None
        if isinstance(line.get("through"), str):
            self.unfinished.add(line["through"])


@dataclass(slots=True)
class _ReadList:
    """A list as far as it was read, which grows with each file that is written.

    Attributes:
        file: device and inode that tell which file it is.
        contents: what it says.
        mark: the list's end, from the beginning of its last line or before.
        at: where that is.
        last: where its last line begins, which may have been cut.

    """

    file: tuple[int, int]
    contents: FolderContents
    mark: bytes
    at: int
    last: int


_LISTS: Final[dict[str, _ReadList]] = {}
_READING: Final = Lock()
_MOST_LISTS: Final = 64
"""Lists that are kept to read only what is new in them, by their folders."""


def read_contents(folder: Path) -> FolderContents | None:
    """Return what the list of a folder says; None where it has none that EdgeFlare made.

    It is not to be changed: the next who asks gets the same.
    """
    key = os.path.abspath(folder)
    with _READING:
        known = _LISTS.pop(key, None)
        try:
            with open_regular(folder / LIST) as file:
                read = _read_on(file, known)
        except (OSError, UserError):
            return None
        if read is None:
            return None
        while len(_LISTS) >= _MOST_LISTS:
            del _LISTS[next(iter(_LISTS))]
        _LISTS[key] = read
    return read.contents


def _read_on(file: BinaryIO, known: _ReadList | None) -> _ReadList | None:
    """Read what is new in a list; all of it where it is another than the known one."""
    status = os.fstat(file.fileno())
    which = (status.st_dev, status.st_ino)
    if status.st_size > MOST_LIST_BYTES:
        return None
    data, at, begin = b"", 0, 0
    if known is not None and known.file == which:
        file.seek(known.at)
        data, at, begin = file.read(MOST_LIST_BYTES), known.at, known.last - known.at
    if known is not None and known.mark and data.startswith(known.mark):
        contents = known.contents
    else:
        file.seek(0)
        data, at, begin = file.read(MOST_LIST_BYTES), 0, 0
        holds = holds_of(data)
        if holds is None:
            return None
        contents = FolderContents(holds)
    for line in data[begin:].split(b"\n"):
        contents.add(_line(line))
    last = data.rfind(b"\n") + 1
    mark = min(last, max(len(data) - _MARK, 0))
    return _ReadList(which, contents, data[mark:], at + mark, at + last)


def holds_of(begun: bytes) -> str | None:
    """Return what a folder is of, by the beginning of its list; None for what is no list."""
    header = _line(begun.partition(b"\n")[0])
    return str(header.get("holds")) if header.get("schema") == SCHEMA else None


def present(folder: Path, names: Iterable[str]) -> list[str]:
    """Return those names that something in a folder has; each folder is read once.

    A name that leads through a link is that of nothing, as is one that leads out. The folder itself
    may be a link, which its user has named.
    """
    read = {"": _entries(Path(os.path.realpath(folder)))}

    def is_there(name: str) -> bool:
        parent, _, last = name.rpartition("/")
        entries, at = read[""], ""
        for part in parent.split("/") if parent else ():
            if part not in entries:
                return False
            at = f"{at}/{part}" if at else part
            if at not in read:
                read[at] = _entries(folder / at)
            entries = read[at]
        return last in entries

    return [name for name in names if is_there(name)]


def _entries(folder: Path) -> frozenset[str]:
    """Return the names in a folder; nothing for what is none, or a link."""
    try:
        is_folder = stat.S_ISDIR(folder.lstat().st_mode)
        return frozenset(os.listdir(folder) if is_folder else ())
    except OSError:
        return frozenset()


def begin_list(folder: Path, holds: str) -> None:
    """Begin the list of a folder, which is made, in the place of one that is there."""
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / BEGUN_LIST
    with new_file(new) as file:
        file.write(_header(holds))
    os.replace(new, folder / LIST)


def is_begun_list(file: Path) -> bool:
    """Tell whether a file is a list whose writing was cut off at its very beginning."""
    begun = _header("").partition(b'"holds"')[0]
    try:
        data = read_regular(file, HEADER_BYTES)
    except (OSError, UserError):
        return False
    return data.startswith(begun) or begun.startswith(data)


def list_as(folder: Path, name: str, kind: str) -> None:
    """List what changes as a command works, before it is made.

    Args:
        folder: folder whose list it is, if it has one.
        name: name of the file, relative to the folder.
        kind: `DATABASE`, `FOLDER` or `STATE`.

    """
    contents = read_contents(folder)
    if contents is not None and contents.changing.get(name) != kind:
        _append(folder, {"path": name, "is": kind})


def list_file(folder: Path, name: str, sha256: str, through: str | None = None) -> None:
    """List a file.

    Args:
        folder: folder that has a list.
        name: name of the file, relative to the folder.
        sha256: digest of its content.
        through: name of the file until it is whole, likewise; None where it is.

    """
    line = {"path": name, "sha256": sha256}
    _append(folder, line if through is None else {**line, "through": through})


def list_replaced_by(folder: Path, by: str) -> None:
    """List which command puts what is in a folder into another's place."""
    _append(folder, {"by": by})


def sha256_of(path: Path) -> str:
    """Return the sha256 of a regular file's content.

    Raises:
        UserError: it is no regular file.
        OSError: it cannot be read.

    """
    digest = hashlib.sha256()
    with open_regular(path) as file:
        for part in iter(partial(file.read, _PART), b""):
            digest.update(part)
    return digest.hexdigest()


def new_file(path: Path) -> BinaryIO:
    """Make a file that all may read, in the place of one; what a link there leads to stays.

    It is not listed.
    """
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.fdopen(os.open(path, flags, 0o600), "wb")
    os.fchmod(file.fileno(), 0o644)
    return file


def unfinished_state(path: Path) -> Path:
    """Return where a file that is listed as `STATE` lies until it is whole."""
    return path.with_name(f".{path.name}.new")


def _is_folder_of_ours(path: Path) -> bool:
    """Tell whether a folder has a list of ours, or was only just made for one."""
    begun = [path / BEGUN_LIST] if is_begun_list(path / BEGUN_LIST) else []
    return read_contents(path) is not None or list(path.iterdir()) == begun


def listed_by(path: Path) -> Path | None:
    """Return the folder whose list a file belongs in: the nearest that has one."""
    for folder in path.parents:
        file = folder / LIST
        if file.is_file() and not file.is_symlink():
            with file.open("rb") as content:
                begun = content.read(HEADER_BYTES)
            if holds_of(begun) is not None:
                return folder
    return None


def _append(folder: Path, line: dict[str, str]) -> None:
    """Add a line to the list of a folder; what is in one without a list is never removed."""
    try:
        handle = os.open(folder / LIST, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.write(handle, b"\n" + _json(line))
    finally:
        os.close(handle)


def _header(holds: str) -> bytes:
    return _json({"schema": SCHEMA, "holds": holds})


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode()


def _line(data: bytes) -> dict[str, Any]:
    try:
        line = json_value(data)
    except ValueError:
        return {}
    return line if isinstance(line, dict) else {}
