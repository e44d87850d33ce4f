"""A journal: the database in a command's folder, which is the truth while the command works.

It is opened with what a stranger may have put there in mind.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from edgeflare.errors import UserError, path_suggestion
from edgeflare.outside_text import json_value
from edgeflare.record.database import (
    DamagedDatabaseError,
    Database,
    connect,
    connect_to_read,
    require_regular_files,
)
from edgeflare.record.folder import mend_folder, remove_documents, require_ours, require_whole
from edgeflare.record.folder_lock import lock_folder

if TYPE_CHECKING:
    from typing_extensions import Self

_ABOUT: Final = "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
_PLAIN: Final = re.compile("CREATE TABLE ")  # not CREATE VIRTUAL TABLE


class Journal:
    """The journal of a folder in which a command works.

    A command derives its own, which names its tables and reads and writes their rows. Every
    journal says what its folder is, as plain JSON values under keys, which is `about`.

    Attributes:
        tables: the statements that make the tables of the command.
        version: version of these tables.
        path: the file.

    """

    tables: ClassVar[str]
    version: ClassVar[int]

    def __init__(self, path: Path, db: Database, lock: int | None = None) -> None:
        """Take what `create`, `open` or `reopen` opened.

        Args:
            path: the file.
            db: the database in it.
            lock: what the folder is locked by; None where the journal is only read.

        """
        self.path = path
        self._db = db
        self._lock = lock

    @classmethod
    def create(cls, path: Path, about: Mapping[str, Any], *, lock: int | None = None) -> Self:
        """Begin a journal, and lock its folder.

        Args:
            path: the file.
            about: what the folder is, as plain JSON values.
            lock: lock of the folder, where whoever claimed it has it already.

        """
        with cls._begun(path, about, lock) as journal:
            return journal

    @classmethod
    @contextmanager
    def _begun(cls, path: Path, about: Mapping[str, Any], lock: int | None) -> Iterator[Self]:
        """Begin a journal; what is written inside is kept with its tables in one transaction.

        So a host that is killed here leaves no half of a journal.
        """
        lock = lock_folder(path.parent) if lock is None else lock
        with ExitStack() as unless_begun:
            unless_begun.callback(os.close, lock)
            db = unless_begun.enter_context(closing(connect(path)))
            db.executescript(f"BEGIN; {_ABOUT} {cls.tables} PRAGMA user_version = {cls.version};")
            journal = cls(path, db, lock)
            for key, value in about.items():
                journal.note(key, value)
            yield journal
            db.execute("COMMIT")
            unless_begun.pop_all()

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a journal that exists, to read it; nothing in its folder changes.

        Raises:
            UserError: there is none, or it is no journal, or damaged, or another version's.

        """
        cls._require_file(path)
        return cls(path, cls._checked(path, connect_to_read))

    @classmethod
    def reopen(cls, path: Path) -> Self:
        """Open a journal that exists, to go on with it, and lock its folder.

        What a killed command has left to do in the folder is done first.

        Raises:
            UserError: as `open` raises it.

        """
        mend_folder(path.parent)
        cls._require_file(path)
        lock = lock_folder(path.parent)
        try:
            return cls(path, cls._checked(path, connect), lock)
        except BaseException:
            os.close(lock)
            raise

    @classmethod
    def resume(
        cls, path: Path, go_on: Callable[[Self], None], documents: Sequence[str] = ()
    ) -> Self:
        """Reopen a journal to go on with what it is of; what is refused stays as it was.

        From then on the journal alone says what was found: documents of earlier are removed.

        Args:
            path: the file.
            go_on: refuses what is not to be gone on with, and notes who goes on, in a transaction.
            documents: names of the files beside the journal that are written anew at the end.

        Raises:
            UserError: as `reopen` raises it, or others have changed one of the documents, or what
                `go_on` raises.

        """
        journal = cls.reopen(path)
        try:
            with journal.transaction():
                go_on(journal)
                require_ours(path.parent, *documents)
            remove_documents(path.parent, *documents)
        except BaseException:
            journal.close()
            raise
        return journal

    @classmethod
    @contextmanager
    def read(cls, path: Path) -> Iterator[Self]:
        """Open an existing journal to read it in the block; what cannot be understood is damage.

        Raises:
            UserError: as `open` raises it, or it is damaged.

        """
        with closing(cls.open(path)) as journal, reporting_damage(path):
            yield journal

    def close(self) -> None:
        """Close the database and unlock the folder; nothing is lost if this never happens.

        Closing twice is no error.

        Raises:
            InfrastructureError: it was only read, and another process wrote to it meanwhile; or
                the disk fails.

        """
        try:
            self._db.close()
        finally:
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    def about(self) -> dict[str, Any]:
        """Return what the folder is, as plain JSON values by their keys."""
        rows = self._db.execute("SELECT * FROM about")
        return {key: stored_json(self._db, value) for key, value in rows}

    def note(self, key: str, value: Any) -> None:
        """Keep a plain JSON value under a key, in the place of what the journal says there."""
        self._db.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (key, json.dumps(value)))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside is kept or lost together."""
        with self._db.transaction():
            yield

    @classmethod
    def refuse_folder(cls, path: Path) -> None:
        """Refuse a folder that has no such journal.

        Args:
            path: where it would be.

        """
        raise UserError(f"{path.parent} is no run directory: it has no {path.name}")

    @classmethod
    def _require_file(cls, path: Path) -> None:
        """Refuse what is no journal, before SQLite opens it."""
        require_whole(path.parent)
        if not path.parent.exists():
            like = path_suggestion(path.parent, lambda other: (other / path.name).is_file())
            raise UserError(f"there is no run directory {path.parent}{like}: check the path")
        if not path.is_file():
            cls.refuse_folder(path)
        require_regular_files(path)
        # SQLite rolls it back, and deletes the file that it names, wherever that lies. Runs write
        # ahead (WAL) from their first statement on, and have none.
        if Path(f"{path}-journal").exists():
            raise UserError(
                f"{path}-journal is there, which only a run has that was killed before it began:"
                " start anew with --overwrite, but do not trust the run if somebody else made it"
            )

    @classmethod
    def _checked(cls, path: Path, connected: Callable[[Path], Database]) -> Database:
        try:
            db = connected(path)
        except DamagedDatabaseError as error:
            raise damaged_journal(path, error.why) from None
        try:
            cls._check_database(path, db)
        except BaseException:
            db.close()
            raise
        return db

    @classmethod
    def _check_database(cls, path: Path, db: Database) -> None:
        try:
            found = db.execute("PRAGMA user_version").fetchone()[0]
            (said,) = db.execute("PRAGMA quick_check(1)").fetchone()
        except DamagedDatabaseError as error:
            said = error.why
        if said != "ok":
            raise damaged_journal(path, said)
        if found == 0:
            raise UserError(
                f"{path.parent} holds a run that was killed before it began: start anew with "
                "--overwrite"
            )
        if found != cls.version:
            raise UserError(
                f"{path} was written by another version of edgeflare (journal version {found}, "
                f"expected {cls.version}): use that version, or start anew with --overwrite"
            )
        named = re.findall(r"^CREATE TABLE (\w+)", f"{_ABOUT}\n{cls.tables}", re.MULTILINE)
        _check_tables(path, db, frozenset(named))


def _check_tables(path: Path, db: Database, names: frozenset[str]) -> None:
    schema = db.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    found = {name for kind, name, sql in schema if kind == "table" and _PLAIN.match(sql)}
    if missing := names - found:
        raise damaged_journal(path, f"it has no table {', '.join(sorted(missing))}")
    # A view computes when it is read, and without end if its author wants that.
    if others := {name for _, name, _ in schema} - found:
        raise damaged_journal(path, f"it has {', '.join(sorted(others))}, which no run made")


def stored_json(db: Database, text: object) -> Any:
    """Return what JSON in a journal says."""
    try:
        if not isinstance(text, str):
            raise ValueError(f"{str(text)[:60]!r} is no JSON")
        return json_value(text)
    except ValueError as error:
        raise DamagedDatabaseError(db.path, str(error)) from None


@contextmanager
def reporting_damage(path: Path) -> Iterator[None]:
    """Tell of a journal as damaged where what it holds cannot be worked with inside.

    Raises:
        UserError: that is so.

    """
    try:
        yield
    except DamagedDatabaseError as error:
        raise damaged_journal(error.path, error.why) from error
    except (
        *(LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError),
    ) as error:
        raise damaged_journal(path, str(error)) from error


class DamagedJournalError(DamagedDatabaseError):
    """A journal is damaged."""


def damaged_journal(path: Path, why: str) -> DamagedJournalError:
    """Return what is raised of a journal that is damaged, with what can still be done."""
    why = " ".join(why.split())  # SQLite names a page in a line of its own
    document = path.with_suffix(".json")
    rest = f"; its result is in {document.name}, which can still be shown"
    return DamagedJournalError(
        path,
        why,
        f"{path} is damaged ({why}), and the run cannot be gone on with: start anew with"
        f" --overwrite{rest if document.is_file() else ''}",
    )
