"""The SQLite database that a journal is: opened with what a stranger may have put there in mind."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from edgeflare.errors import UserError
from edgeflare.run.run_directory import CONFORM_DOCUMENT, CONFORM_JOURNAL, DOCUMENT, JOURNAL
from edgeflare.suggestion import path_suggestion

_CHECKPOINT_PAGES: Final = 2500
"""Pages of 4 KiB that are written ahead before they go into the database: 10 MB on the disk beside
it. A checkpoint waits for the disk. Over 46 MB of answers, written 512 at a time, those every 4 MB
cost about 40 % of the writing time, those every 10 MB no more than the measurement varies, against
every 40 MB."""

_PLAIN: Final = re.compile("CREATE TABLE ")  # not CREATE VIRTUAL TABLE


def open_database(path: Path, tables: str, version: int) -> sqlite3.Connection:
    """Open the database of a run that exists.

    Args:
        path: the journal's.
        tables: the statements that make its tables.
        version: of the tables, as the database has it under `user_version`.

    Raises:
        UserError: if there is none, or it is no journal, or damaged, or another version's.

    """
    check_journal_files(path)
    try:
        db = connect_journal(path)
        found = db.execute("PRAGMA user_version").fetchone()[0]
        (said,) = db.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        said = str(error)
    if said != "ok":
        raise damaged_journal(path, said)
    if found == 0:
        db.close()
        raise UserError(
            f"{path.parent} holds a run that was killed before it began: start anew with "
            "--overwrite"
        )
    if found != version:
        db.close()
        raise UserError(
            f"{path} was written by another version of edgeflare (journal version {found}, "
            f"expected {version}): use that version, or start anew with --overwrite"
        )
    _check_tables(path, db, frozenset(re.findall(r"^CREATE TABLE (\w+)", tables, re.MULTILINE)))
    return db


def _check_tables(path: Path, db: sqlite3.Connection, names: frozenset[str]) -> None:
    schema = db.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    found = {name for kind, name, sql in schema if kind == "table" and _PLAIN.match(sql)}
    if missing := names - found:
        db.close()
        raise damaged_journal(path, f"it has no table {', '.join(sorted(missing))}")
    # A view computes when it is read, and without end if its author wants that.
    if others := {name for _, name, _ in schema} - found:
        db.close()
        raise damaged_journal(path, f"it has {', '.join(sorted(others))}, which no run made")


def connect_journal(path: Path) -> sqlite3.Connection:
    """Open or make a database of which each statement is a transaction, written ahead."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA trusted_schema = OFF")  # a stranger's may hold views and triggers
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    return db


def read_about(db: sqlite3.Connection) -> dict[str, Any]:
    """Return what a journal says of its run, as plain JSON values by their keys."""
    return {key: json.loads(value) for key, value in db.execute("SELECT * FROM about")}


def note_about(db: sqlite3.Connection, key: str, value: Any) -> None:
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
    except (
        *(sqlite3.DatabaseError, LookupError, TypeError, ValueError, AttributeError),
        *(ArithmeticError, RecursionError),
    ) as error:
        raise damaged_journal(path, str(error)) from error


def check_journal_files(path: Path) -> None:
    """Refuse what is no journal of a run, before SQLite opens it."""
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
        elif (path.parent / "matrix.json").is_file():
            runs = sorted(path.parent.glob(f"*/{path.name}"))
            hint = "; it holds a run for each kernel set of a device: name one of them"
            hint += f", such as {runs[0].parent}" if runs else ""
        raise UserError(f"{path.parent} is no run directory: it has no {path.name}{hint}")
    for beside in ("", "-wal", "-shm", "-journal"):  # SQLite would follow and write to each
        if Path(f"{path}{beside}").is_symlink():
            raise UserError(
                f"{path}{beside} is a symbolic link: expected the file that the run stored"
            )
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


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error says that the file is damaged, rather than the disk full or gone."""
    return type(error) is sqlite3.DatabaseError


class DamagedJournalError(UserError):
    """A journal is damaged; `why` says how, without what can still be done."""

    def __init__(self, message: str, why: str) -> None:
        """Make the error of a whole message, of which `why` is a part."""
        super().__init__(message)
        self.why = why


def damaged_journal(path: Path, why: str) -> DamagedJournalError:
    """Return what is raised of a journal that is damaged, with what can still be done."""
    why = " ".join(why.split())  # SQLite names a page in a line of its own
    document = path.with_suffix(".json")
    rest = f"; its result is in {document.name}, which can still be shown"
    return DamagedJournalError(
        f"{path} is damaged ({why}), and the run cannot be gone on with: start anew with"
        f" --overwrite{rest if document.is_file() else ''}",
        why,
    )
