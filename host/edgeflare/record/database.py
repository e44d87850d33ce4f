"""The SQLite databases that commands write, opened to write or only to be read, and their trouble.

Nothing else opens SQLite. A database that is read may lie in a folder that cannot be written, on a
disk that is full, and be a stranger's: reading it changes no file in its folder. Its errors are
told apart here, once: damage is exit code 2; a disk, a lock or a permission is exit code 3.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, BinaryIO, Concatenate, Final, ParamSpec, TypeVar

from edgeflare.errors import EdgeFlareError, InfrastructureError, UserError
from edgeflare.regular_file import open_regular

APPLICATION_ID: Final = int.from_bytes(b"EdgF", "big")
"""What our databases have in their header, by which they are known whatever their names are."""

_CHECKPOINT_PAGES: Final = 2500
"""Pages of 4 KiB that are written ahead before they go into the database: 10 MB on the disk beside
it. A checkpoint waits for the disk. Over 46 MB of answers, written 512 at a time, those every 4 MB
cost about 40 % of the writing time, those every 10 MB no more than the measurement varies, against
every 40 MB."""

_TRIES: Final = 50
_MOMENT: Final = 0.1
"""Tries to copy a database that is being written, and the seconds between two. A file that changed
less than a moment ago may change again and keep its time, since the clocks of files tick."""

_AHEAD_HEADER: Final = 32
"""Bytes at the beginning of what is written ahead that are new whenever it begins anew."""

_IN_MEMORY: Final = "/dev/shm"  # noqa: S108 - Linux's own; what is made in it is private

_REMEDIES: Final = {
    (3, "access permission denied"): "check the permissions of it and its folder",
    (4, "query aborted"): "type the command again",
    (5, "database is locked"): "another process works on it: wait until that has ended",
    (6, "database table is locked"): "another process works on it: wait until that has ended",
    (8, "attempt to write a readonly database"): "it can only be read: check its permissions",
    (9, "interrupted"): "type the command again",
    (10, "disk I/O error"): "check the disk, and how much may be written to it",
    (13, "database or disk is full"): "make room on the disk",
    (14, "unable to open database file"): "check the permissions of it and its folder",
    (15, "locking protocol"): "check the locks of its file system",
    (22, "large file support is disabled"): "check its file system",
}
"""What helps against each trouble that is not the file's, by SQLite's result code and its words.

Python says the code from 3.11 on. https://www.sqlite.org/rescode.html
"""

_READ_ONLY: Final = 8
_HEADER, _WRITE_VERSION = 100, 18
"""Bytes of a database's header, and that which says by which versions it may be written: 1 or 2.

https://www.sqlite.org/fileformat.html#file_format_version_numbers
"""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class DamagedDatabaseError(UserError):
    """A database holds what none of ours does; `why` says what, without what can still be done."""

    def __init__(self, path: Path, why: str, message: str | None = None) -> None:
        """Make the error of a file.

        Args:
            path: the database's.
            why: what is wrong with it; SQLite names a page in a line of its own.
            message: the whole of it, where more is known of what can be done.

        """
        self.path, self.why = path, " ".join(why.split())
        super().__init__(message or f"{path} is damaged ({self.why}): make it anew")


def trouble_of(error: sqlite3.Error, path: Path) -> Exception:
    """Return what is raised in the place of an error of SQLite.

    Args:
        error: as Python raises it.
        path: the database's, as the user knows it.

    Returns:
        DamagedDatabaseError for whatever the content of the file causes; InfrastructureError for a
        disk, a lock or a permission; the error itself for a call that should not have been made.

    """
    if isinstance(error, (sqlite3.ProgrammingError, sqlite3.InterfaceError)):
        return error
    code = getattr(error, "sqlite_errorcode", None)
    for (known, words), remedy in _REMEDIES.items():
        if known == code & 0xFF if code is not None else str(error).startswith(words):
            if known == _READ_ONLY and _forbids_writing(path):
                return DamagedDatabaseError(path, "its header says that it must not be written")
            return InfrastructureError(f"{path}: {error}: {remedy}")
    return DamagedDatabaseError(path, str(error))


def _forbids_writing(path: Path) -> bool:
    """Whether it is the header of a database that keeps SQLite from writing it."""
    with suppress(OSError, UserError), open_regular(path) as file:
        return file.read(_HEADER)[_WRITE_VERSION : _WRITE_VERSION + 1] > b"\2"
    return False


def _told(
    method: Callable[Concatenate[sqlite3.Cursor, _P], _T],
) -> Callable[Concatenate[sqlite3.Cursor, _P], _T]:
    """Return a cursor's method that raises the trouble of a file in the place of SQLite's error."""

    @wraps(method)
    def told(cursor: sqlite3.Cursor, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return method(cursor, *args, **kwargs)
        except sqlite3.Error as error:
            raise trouble_of(error, cursor.connection.path) from error  # type: ignore[attr-defined]
        except UnicodeDecodeError as error:  # what SQLite says quotes what the file holds
            said = bytes(error.object).decode(errors="replace")
            raise DamagedDatabaseError(cursor.connection.path, said) from error  # type: ignore[attr-defined]

    return told


class _Cursor(sqlite3.Cursor):
    """Rows of a database, read or written."""

    execute = _told(sqlite3.Cursor.execute)  # type: ignore[assignment]
    executemany = _told(sqlite3.Cursor.executemany)  # type: ignore[assignment]
    executescript = _told(sqlite3.Cursor.executescript)
    fetchone = _told(sqlite3.Cursor.fetchone)
    fetchall = _told(sqlite3.Cursor.fetchall)
    __next__ = _told(sqlite3.Cursor.__next__)


class Database(sqlite3.Connection):
    """A database, whose errors are those of `trouble_of`; each statement is a transaction.

    Attributes:
        path: the file, as the user knows it; what is read may be a copy.

    """

    path: Path
    _read: tuple[int, ...] | None = None
    """Of a file that is read itself, what says whether it was written meanwhile."""

    def cursor(self, factory: Any = _Cursor) -> Any:
        """Return what executes a statement."""
        return super().cursor(factory)

    def execute(self, *statement: Any) -> sqlite3.Cursor:
        """Execute a statement, and return its rows."""
        rows: sqlite3.Cursor = self.cursor().execute(*statement)
        return rows

    def executemany(self, *statement: Any) -> sqlite3.Cursor:
        """Execute a statement for each of several rows of parameters."""
        rows: sqlite3.Cursor = self.cursor().executemany(*statement)
        return rows

    def executescript(self, *statements: Any) -> sqlite3.Cursor:
        """Execute several statements."""
        rows: sqlite3.Cursor = self.cursor().executescript(*statements)
        return rows

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside is kept or lost together; all that is read is of one state."""
        self.execute("BEGIN")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self.in_transaction:
                with suppress(EdgeFlareError, sqlite3.Error):  # what was raised says more
                    self.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close it.

        Raises:
            InfrastructureError: it was only read, and was written by another process meanwhile.

        """
        super().close()
        before, self._read = self._read, None
        if before is None:
            return
        after = _state(self.path)
        if after is not None and after[:2] == before[:2] and after != before:
            raise InfrastructureError(
                f"{self.path} was written by another process while it was read: type the command"
                " again"
            )


def require_regular_files(path: Path) -> None:
    """Refuse a database that is no regular file, or has such beside it, before SQLite opens it.

    Raises:
        UserError: that is so; SQLite would wait for a pipe, and follow a link and write there.

    """
    for beside in ("", "-wal", "-shm", "-journal"):
        file = Path(f"{path}{beside}")
        try:
            mode = file.lstat().st_mode
        except OSError:
            continue
        if not stat.S_ISREG(mode):
            what = "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
            raise UserError(f"{file} is {what}: expected the file that the run stored")


def connect(path: Path) -> Database:
    """Open or make a database to write, written ahead; for a command that owns its folder."""
    require_regular_files(path)
    db = _connected(path, f"{path.absolute().as_uri()}?mode=rwc")
    try:
        db.execute("PRAGMA trusted_schema = OFF")  # a stranger's may hold views and triggers
        if path.stat().st_size == 0:
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    except BaseException:
        db.close()
        raise
    return db


def connect_to_read(path: Path) -> Database:
    """Open a database to read it; no file in its folder is written, made or removed.

    One that is just being written, or whose writer was killed, is read as it is at the moment, from
    a copy that is gone when the database is closed. Opened in its place it would have to be
    written: for what is read together with what is written ahead, SQLite keeps an index beside it.

    Raises:
        UserError: it is no database, or no regular file.
        InfrastructureError: it cannot be read, or there is no room for a copy.

    """
    require_regular_files(path)
    for _ in range(_TRIES):
        before = _state(path)
        try:
            if not _ahead(path).exists():
                # Nothing is written to it without being written ahead first: it stays as it is
                # until its writer has written much, or has ended, and `close` sees that.
                db = _connected(path, f"{path.absolute().as_uri()}?mode=ro&immutable=1")
                db._read = before
            else:
                db = _copied(path)
        except FileNotFoundError:  # its writer has just ended
            if not path.exists():
                raise InfrastructureError(f"{path} is gone: type the command again") from None
        except _UnsteadyError:
            pass
        else:
            return _prepared(db)
        time.sleep(_MOMENT)
    raise InfrastructureError(
        f"{path} is written by another process all the time: type the command again, or wait until"
        " that has ended"
    )


@contextmanager
def followed(path: Path) -> Iterator[Database]:
    """Yield a database, to read, that a process which this one has started is writing."""
    require_regular_files(path)
    with closing(_connected(path, f"{path.absolute().as_uri()}?mode=ro")) as db:
        yield db


def store_copy(path: Path, copy: Path) -> int:
    """Copy a database that a process which this one has started may be writing.

    Args:
        path: path of the database.
        copy: path of the copy, which is absent.

    Returns:
        Its version; 0 for one that is just being made.

    Raises:
        InfrastructureError: it cannot be read, or the copy cannot be written.

    """
    with (
        followed(path) as source,
        closing(_connected(copy, f"{copy.absolute().as_uri()}?mode=rwc")) as target,
    ):
        try:
            source.backup(target)
        except sqlite3.Error as error:
            raise trouble_of(error, path) from error
        return int(target.execute("PRAGMA user_version").fetchone()[0])


class _UnsteadyError(Exception):
    """A database was written while it was copied."""


def _connected(path: Path, uri: str) -> Database:
    """Connect to a database that is told of by its path."""
    try:
        db = sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, factory=Database
        )
    except sqlite3.Error as error:
        raise trouble_of(error, path) from error
    db.path = path
    return db


def _prepared(db: Database) -> Database:
    """Have a database only be read, with what that takes kept in memory."""
    try:
        for setting in ("trusted_schema = OFF", "query_only = ON", "temp_store = MEMORY"):
            db.execute(f"PRAGMA {setting}")
    except BaseException:
        db.close()
        raise
    return db


def _ahead(path: Path) -> Path:
    """Return where that lies which is written ahead of a database."""
    return Path(f"{path}-wal")


def _state(path: Path) -> tuple[int, ...] | None:
    """Return which file a database is, and what changes when it is written; None for none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _copied(path: Path) -> Database:
    """Open a copy of a database, in which that is which is written ahead; its files have no names.

    Raises:
        _UnsteadyError: it was written meanwhile.
        FileNotFoundError: it, or what is written ahead, is gone.

    """
    why: Exception | None = None
    for folder in (None, _IN_MEMORY):
        try:
            with tempfile.TemporaryDirectory(prefix="edgeflare-journal-", dir=folder) as place:
                return _copied_into(Path(place), path)
        except FileNotFoundError as error:
            if error.filename in (str(path), str(_ahead(path))):
                raise
            why = error  # there is no such folder
        except (OSError, InfrastructureError) as error:
            why = error
    raise InfrastructureError(
        f"{path}: a copy of it, to read it, does not fit into {_temporary()} ({why}): make room"
        " there, or name another folder by the environment variable TMPDIR"
    )


def _temporary() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:
        return "a temporary folder"


def _copied_into(folder: Path, path: Path) -> Database:
    copy = folder / "copy.db"
    with open_regular(path) as db, open_regular(_ahead(path)) as ahead:
        needed = os.fstat(db.fileno()).st_size + 2 * os.fstat(ahead.fileno()).st_size
        if needed > shutil.disk_usage(folder).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        _copy_at_once(db, copy, ahead, _ahead(copy))
    opened = _connected(path, f"{copy.as_uri()}?mode=rw")
    try:
        opened.execute("PRAGMA trusted_schema = OFF")
        opened.execute("PRAGMA synchronous = OFF")
        # What is written ahead goes into the copy, which then needs no file beside it: its names
        # may go while it is open, and nothing is left of it however this process ends.
        opened.execute("PRAGMA journal_mode = DELETE")
        opened.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        opened.close()
        raise
    return opened


def _copy_at_once(db: BinaryIO, to: Path, ahead: BinaryIO, ahead_to: Path) -> None:
    """Copy a database and what is written ahead of it, as they are at one moment.

    A writer only adds to what is written ahead until it brings it into the database, which changes
    the database; and a half of what it just adds SQLite finds by its checksum, and leaves out.
    """

    def state() -> tuple[int, int, bytes]:
        status = os.fstat(db.fileno())
        return status.st_mtime_ns, status.st_size, os.pread(ahead.fileno(), _AHEAD_HEADER, 0)

    before = state()
    if 0 <= time.time() - before[0] / 1e9 < _MOMENT:
        raise _UnsteadyError
    for source, place in ((db, to), (ahead, ahead_to)):
        with place.open("wb") as target:
            shutil.copyfileobj(source, target)
    if state() != before:
        raise _UnsteadyError
