from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from edgeflare.errors import EdgeFlareError, InfrastructureError, UserError
from edgeflare.record import database
from edgeflare.record.database import (
    APPLICATION_ID,
    DamagedDatabaseError,
    Database,
    connect,
    connect_to_read,
    followed,
    store_copy,
    trouble_of,
)

ROWS = 500


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder of its own for a database."""
    (tmp_path / "run").mkdir()
    return tmp_path / "run" / "run.db"


@pytest.fixture
def writer(path: Path) -> Iterator[Database]:
    """A database that is being written, with all its rows in what is written ahead."""
    with closing(connect(path)) as db:
        db.execute("CREATE TABLE numbers (n INTEGER PRIMARY KEY, text TEXT NOT NULL)")
        add_rows(db)
        age(path)
        yield db


def add_rows(db: Database) -> None:
    with db.transaction():
        rows = [(f"{n}" * 20,) for n in range(ROWS)]
        db.executemany("INSERT INTO numbers (text) VALUES (?)", rows)


def age(path: Path) -> None:
    """Make a file one that was not changed just now."""
    os.utime(path, (1e9, 1e9))


def count(db: Database) -> int:
    return int(db.execute("SELECT count(*) FROM numbers").fetchone()[0])


def read(path: Path, statement: str) -> list[Any]:
    with closing(connect_to_read(path)) as db:
        return db.execute(statement).fetchall()


def write(path: Path, statement: str) -> None:
    with closing(connect(path)) as db:
        db.execute(statement)


def seen(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return all that a command could have changed in a folder: contents and times."""
    files = {one.name: (one.read_bytes(), one.stat().st_mtime_ns) for one in folder.iterdir()}
    return {**files, ".": (b"", folder.stat().st_mtime_ns)}


@pytest.mark.parametrize("state", ["ended", "killed", "running"])
def test_reading_changes_nothing_and_sees_all_that_was_written(
    path: Path, writer: Database, tmp_path: Path, state: str
) -> None:
    if state == "ended":
        writer.close()
    if state == "killed":
        shutil.copytree(path.parent, tmp_path / "copy")
        path = tmp_path / "copy" / path.name
        (path.parent / "run.db-shm").unlink()
        age(path)
    before = seen(path.parent)
    assert ("run.db-wal" in before) == (state != "ended")
    with closing(connect_to_read(path)) as db, db.transaction():
        assert count(db) == ROWS
        if state == "running":
            add_rows(writer)
            assert count(db) == ROWS
        else:
            assert seen(path.parent) == before
        with pytest.raises(InfrastructureError, match=r"run\.db: attempt to write a readonly"):
            db.execute("DELETE FROM numbers")
    if state != "running":
        assert seen(path.parent) == before


def test_what_is_written_into_the_database_while_it_is_copied_is_read_whole(
    path: Path, writer: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database of one moment and what is written ahead of another are of no moment."""
    copied, copies = shutil.copyfileobj, []

    def copy_and_write(source: Any, target: Any) -> None:
        copied(source, target)
        copies.append(source.name)
        if len(copies) == 1:
            writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            writer.execute("UPDATE numbers SET text = 'changed'")
            age(path)

    monkeypatch.setattr(shutil, "copyfileobj", copy_and_write)
    with closing(connect_to_read(path)) as db:
        assert db.execute("SELECT DISTINCT text FROM numbers").fetchall() == [("changed",)]
        assert db.execute("PRAGMA quick_check").fetchall() == [("ok",)]
    assert len(copies) >= 3


def test_what_was_written_while_it_was_read_in_its_place_is_said(
    path: Path, writer: Database
) -> None:
    writer.close()
    db = connect_to_read(path)
    with closing(connect(path)) as other:
        add_rows(other)
    with pytest.raises(InfrastructureError, match="by another process while it was read: type"):
        db.close()


def test_one_that_is_replaced_while_it_is_read_stays_what_it_was(
    path: Path, writer: Database, tmp_path: Path
) -> None:
    writer.close()
    with closing(connect_to_read(path)) as db:
        shutil.rmtree(path.parent)
        path.parent.mkdir()
        path.write_text("another")
        assert count(db) == ROWS


@pytest.mark.parametrize("kept", ["no room", "no folder"])
def test_a_copy_without_room_is_said_with_what_helps(
    path: Path, writer: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    monkeypatch.setattr(database, "_IN_MEMORY", str(place / "absent"))
    if kept == "no room":
        full = shutil._ntuple_diskusage(1, 1, 0)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    else:
        place.rmdir()
    said = rf"run\.db: a copy of it, to read it, does not fit into {place} .*TMPDIR"
    with pytest.raises(InfrastructureError, match=said):
        connect_to_read(path)
    assert not place.exists() or not list(place.iterdir())


def test_a_copy_goes_into_memory_where_the_disk_is_full(
    path: Path, writer: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with closing(connect_to_read(path)) as db:
        assert count(db) == ROWS


@pytest.mark.parametrize("name", ["run.db", "run.db-wal"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_regular_file_is_not_read(
    path: Path, writer: Database, name: str, kind: str, tmp_path: Path
) -> None:
    shutil.copytree(path.parent, tmp_path / "copy")
    place = tmp_path / "copy" / name
    place.unlink()
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to("/dev/zero")
    age(tmp_path / "copy" / "run.db") if kind != "device" or name != "run.db" else None
    with pytest.raises(EdgeFlareError, match=rf"{name}"):
        connect_to_read(tmp_path / "copy" / "run.db")


def test_a_database_that_another_process_of_ours_writes_is_followed_and_copied(
    path: Path, writer: Database, tmp_path: Path
) -> None:
    with followed(path) as db:
        assert count(db) == ROWS
        add_rows(writer)
        assert count(db) == 2 * ROWS
    writer.execute("PRAGMA user_version = 7")
    assert store_copy(path, tmp_path / "copy.db") == 7
    with closing(connect_to_read(tmp_path / "copy.db")) as db:
        assert count(db) == 2 * ROWS


def test_ours_are_known_by_their_header(path: Path, writer: Database) -> None:
    writer.close()
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION_ID
    foreign = path.with_name("foreign.db")
    with closing(sqlite3.connect(foreign)) as db, db:
        db.execute("CREATE TABLE t (x)")
    connect(foreign).close()  # one that is there keeps what its maker wrote
    assert foreign.read_bytes()[68:72] == bytes(4)


def test_a_transaction_is_kept_or_lost_as_a_whole(path: Path, writer: Database) -> None:
    with pytest.raises(DamagedDatabaseError):
        _replace_rows(writer)
    assert count(writer) == ROWS
    assert not writer.in_transaction


def _replace_rows(db: Database) -> None:
    with db.transaction():
        db.execute("DELETE FROM numbers")
        db.execute("INSERT INTO numbers VALUES (1, NULL)")


def _full(path: Path) -> None:
    with closing(connect(path)) as db:
        db.execute("PRAGMA max_page_count = 1")
        add_rows(db)


def _locked(path: Path) -> None:
    with closing(connect(path)) as db, closing(connect(path)) as other:
        other.execute("PRAGMA busy_timeout = 0")
        with db.transaction():
            db.execute("DELETE FROM numbers")
            other.execute("DELETE FROM numbers")


def _in_no_folder(path: Path) -> None:
    connect(path.parent / "absent" / "run.db")


def _is_text(path: Path) -> None:
    path.write_text("hello, this is text and no database" * 100)
    connect(path)


def _is_text_to_read(path: Path) -> None:
    path.write_text("hello, this is text and no database" * 100)
    read(path, "SELECT count(*) FROM numbers")


def _has_a_torn_page(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8192:] = b"\xff" * len(data[8192:])
    path.write_bytes(data)
    read(path, "SELECT * FROM numbers")


def _has_no_table(path: Path) -> None:
    read(path, "SELECT * FROM absent")


def _has_a_row_twice(path: Path) -> None:
    write(path, "INSERT INTO numbers VALUES (1, 'again')")


def _has_text_that_is_none(path: Path) -> None:
    write(path, "UPDATE numbers SET text = CAST(x'ff' AS TEXT)")
    read(path, "SELECT text FROM numbers")


def _has_a_schema_that_is_no_text(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"PRIMARY KEY", b"PRIMARY KE\xe3"))
    read(path, "SELECT count(*) FROM numbers")


def _must_not_be_written(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[18] = 3
    path.write_bytes(data)
    write(path, "DELETE FROM numbers")


@pytest.mark.parametrize(
    "trouble", [_full, _locked, _in_no_folder], ids=lambda one: one.__name__.strip("_")
)
def test_trouble_of_a_disk_or_a_lock_is_told_as_that(
    path: Path, writer: Database, trouble: Callable[[Path], None]
) -> None:
    writer.close()
    with pytest.raises(InfrastructureError, match=r"run\.db: .+: .+") as told:
        trouble(path)
    assert "damaged" not in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "damage",
    [
        *(_is_text, _is_text_to_read, _has_a_torn_page, _has_no_table, _has_a_row_twice),
        *(_has_text_that_is_none, _has_a_schema_that_is_no_text, _must_not_be_written),
    ],
    ids=lambda one: one.__name__.strip("_"),
)
def test_what_the_file_itself_causes_is_told_as_damage(
    path: Path, writer: Database, damage: Callable[[Path], None]
) -> None:
    writer.close()
    with pytest.raises(DamagedDatabaseError, match=r"run\.db is damaged \(.+\): ") as told:
        damage(path)
    assert isinstance(told.value, UserError)
    assert "\n" not in str(told.value)


WORDS: dict[type[Exception], list[sqlite3.Error]] = {
    InfrastructureError: [
        sqlite3.OperationalError("database or disk is full"),
        sqlite3.OperationalError("disk I/O error"),
        sqlite3.OperationalError("unable to open database file"),
        sqlite3.OperationalError("database is locked"),
        sqlite3.OperationalError("attempt to write a readonly database"),
    ],
    DamagedDatabaseError: [
        sqlite3.OperationalError("no such table: chains"),
        sqlite3.DatabaseError("database disk image is malformed"),
        sqlite3.IntegrityError("UNIQUE constraint failed: chains.seed_id"),
    ],
    sqlite3.ProgrammingError: [sqlite3.ProgrammingError("Cannot operate on a closed database.")],
}


@pytest.mark.parametrize(
    ("error", "kind"), [(error, kind) for kind, errors in WORDS.items() for error in errors]
)
def test_an_error_without_a_code_is_known_by_its_words(
    error: sqlite3.Error, kind: type[Exception]
) -> None:
    """As Python 3.10 raises them."""
    assert type(trouble_of(error, Path("run.db"))) is kind
