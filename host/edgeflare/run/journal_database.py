"""The SQLite database that a journal is: opened with what a stranger may have put there in mind."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

from edgeflare.errors import UserError
from edgeflare.record.database import (
    DamagedDatabaseError,
    Database,
    connect,
    connect_to_read,
    require_regular_files,
)
from edgeflare.record.folder import mend_folder, require_whole
from edgeflare.record.folder_lock import lock_folder
from edgeflare.run.journal_rows import stored_json
from edgeflare.run.run_directory import (
    CONFORM_DOCUMENT,
    CONFORM_JOURNAL,
    DOCUMENT,
    JOURNAL,
    what_is_in,
)
from edgeflare.suggestion import path_suggestion

_PLAIN: Final = re.compile("CREATE TABLE ")  # not CREATE VIRTUAL TABLE


@contextmanager
def begun_database(
    path: Path, tables: str, version: int, lock: int | None = None
) -> Iterator[tuple[Database, int]]:
    """Make a database, and yield it with the lock of its run; both are closed if anything fails.

    What is written inside is kept with the tables in one transaction, so that a host that is killed
    here leaves no half of a journal.

    Args:
        path: the journal's.
        tables: the statements that make its tables.
        version: of the tables, as the database has it under `user_version`.
        lock: of the run, where whoever claimed it has it already.

    Raises:
        UserError: another process works on the run.
        InfrastructureError: it cannot be written.

    """
    lock = lock_folder(path.parent) if lock is None else lock
    with ExitStack() as unless_begun:
        unless_begun.callback(os.close, lock)
        db = unless_begun.enter_context(closing(connect(path)))
        db.executescript(f"BEGIN; {tables} PRAGMA user_version = {version};")
        yield db, lock
        db.execute("COMMIT")
        unless_begun.pop_all()


def open_database(path: Path, tables: str, version: int) -> Database:
    """Open the database of a run that exists, to read it; see `begun_database`.

    Raises:
        UserError: if there is none, or it is no journal, or damaged, or another version's.
        InfrastructureError: it cannot be read.

    """
    check_journal_files(path)
    return _checked(path, connect_to_read, tables, version)


def reopen_database(path: Path, tables: str, version: int) -> tuple[Database, int]:
    """Open the database of a run that is gone on with; return it with the lock of the run.

    What a killed command has left to do in the folder is done first.

    Raises:
        UserError: as `open_database` raises it, or another process works on the run.
        InfrastructureError: it cannot be written.

    """
    mend_folder(path.parent)
    check_journal_files(path)
    lock = lock_folder(path.parent)
    try:
        return _checked(path, connect, tables, version), lock
    except BaseException:
        os.close(lock)
        raise


def _checked(
    path: Path, connected: Callable[[Path], Database], tables: str, version: int
) -> Database:
    try:
        db = connected(path)
    except DamagedDatabaseError as error:
        raise damaged_journal(path, error.why) from None
    try:
        _check_database(path, db, tables, version)
    except BaseException:
        db.close()
        raise
    return db


def _check_database(path: Path, db: Database, tables: str, version: int) -> None:
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
    if found != version:
        raise UserError(
            f"{path} was written by another version of edgeflare (journal version {found}, "
            f"expected {version}): use that version, or start anew with --overwrite"
        )
    _check_tables(path, db, frozenset(re.findall(r"^CREATE TABLE (\w+)", tables, re.MULTILINE)))


def _check_tables(path: Path, db: Database, names: frozenset[str]) -> None:
    schema = db.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    found = {name for kind, name, sql in schema if kind == "table" and _PLAIN.match(sql)}
    if missing := names - found:
        raise damaged_journal(path, f"it has no table {', '.join(sorted(missing))}")
    # A view computes when it is read, and without end if its author wants that.
    if others := {name for _, name, _ in schema} - found:
        raise damaged_journal(path, f"it has {', '.join(sorted(others))}, which no run made")


def read_about(db: Database) -> dict[str, Any]:
    """Return what a journal says of its run, as plain JSON values by their keys."""
    return {key: stored_json(db, value) for key, value in db.execute("SELECT * FROM about")}


def note_about(db: Database, key: str, value: Any) -> None:
    """Keep a plain JSON value under a key, in the place of what a journal says there."""
    db.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (key, json.dumps(value)))


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


def check_journal_files(path: Path) -> None:
    """Refuse what is no journal of a run, before SQLite opens it."""
    require_whole(path.parent)
    if not path.parent.exists():
        like = path_suggestion(path.parent, lambda one: (one / path.name).is_file())
        raise UserError(f"there is no run directory {path.parent}{like}: check the path")
    if not path.is_file():
        _refuse_other_runs(path)
        hint = ""
        if (path.parent / "repair.json").is_file():
            hint = "; it holds a repair: search its model first"
        elif (path.parent / "candidates").is_dir():
            hint = "; it holds a repair that was stopped: the same command with --resume goes on"
        elif (made := what_is_in(path.parent)) in ("bench", "ranking"):
            hint = f"; it holds a {made}: name one of the runs in its folders"
        elif (path.parent / "matrix.json").is_file():
            runs = sorted(path.parent.glob(f"*/{path.name}"))
            hint = "; it holds a run for each kernel set of a device: name one of them"
            hint += f", such as {runs[0].parent}" if runs else ""
        raise UserError(f"{path.parent} is no run directory: it has no {path.name}{hint}")
    require_regular_files(path)
    # SQLite rolls it back, and deletes the file that it names, wherever that lies. Runs write
    # ahead (WAL) from their first statement on, and have none.
    if Path(f"{path}-journal").exists():
        raise UserError(
            f"{path}-journal is there, which only a run has that was killed before it began: start"
            " anew with --overwrite, but do not trust the run if somebody else made it"
        )


def _refuse_other_runs(path: Path) -> None:
    """Refuse the folder of a run of another kind, which has another journal than is asked for."""
    known = (CONFORM_JOURNAL, CONFORM_DOCUMENT, JOURNAL, DOCUMENT)
    holds = {name for name in known if (path.parent / name).is_file()}
    if path.name == CONFORM_JOURNAL and CONFORM_DOCUMENT in holds:
        raise UserError(
            f"{path.parent} holds a replay of a conformance run, which has no journal to go on by:"
            " leave out --resume, and give --overwrite or another --out"
        )
    if holds & {CONFORM_JOURNAL, CONFORM_DOCUMENT}:
        raise UserError(
            f"{path.parent} holds a conformance run: type `edgeflare report {path.parent}` to see"
            " it; `edgeflare export` and `edgeflare replay` take it too"
        )
    if path.name == CONFORM_JOURNAL and holds & {JOURNAL, DOCUMENT}:
        raise UserError(
            f"{path.parent} holds no conformance run, but a search, a survey or a replay: name"
            " another folder with --out, and leave out --resume to begin one"
        )


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
