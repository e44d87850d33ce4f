"""Batches of a journal: what open chains were answered, a row for each batch.

A batch has answers of many chains. In the table `answers`, which is in the order of chains, each
would change a page of its own; here all are one value, appended. They are moved into `answers`
before these are read, and those of chains that have ended by then are left out. A journal that is
only read shows them in `answers` without moving them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from edgeflare.record.database import DamagedDatabaseError, Database
from edgeflare.run.journal_rows import AnswerRow, Count, Role

_INSERT: Final = "INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ENDED: Final = {"step": "chains", "refine": "refinements"}
"""The table of what has ended, by the role of the answers of what is open."""

_Columns = tuple[
    Role, Count, int, int, bytes | None, bytes | None, bytes | None, bytes | None, str | None, float
]
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[_Columns])


def columns(row: AnswerRow) -> tuple[object, ...]:
    """Return a row as the table `answers` has it."""
    failures = json.dumps(dict(row.failures)) if row.failures else None
    return (
        row.role,
        row.seed_id,
        row.n,
        row.image_crc32,
        row.original,
        row.twin,
        row.device,
        row.members,
        failures,
        row.seconds,
    )


def insert(db: Database, rows: Iterable[tuple[object, ...]], table: str = "answers") -> None:
    """Write rows into a table of answers, in place of those of the same inputs."""
    db.executemany(_INSERT.format(table=table), list(rows))


def append(db: Database, rows: Iterable[AnswerRow]) -> int:
    """Write a batch, and return how many bytes it has."""
    content = _encoder.encode([columns(row) for row in rows])
    db.execute("INSERT INTO batches (answers) VALUES (?)", (content,))
    return len(content)


def settle(db: Database) -> None:
    """Move all batches into `answers`; inside a transaction.

    Raises:
        DamagedDatabaseError: a batch cannot be read.

    """
    ended = {
        role: {seed_id for (seed_id,) in db.execute(f"SELECT seed_id FROM {table}")}  # noqa: S608
        for role, table in _ENDED.items()
    }
    left = [row for row in _read(db) if row[1] not in ended.get(row[0], ())]
    if left:
        insert(db, sorted(left, key=lambda row: row[:3]))
    db.execute("DELETE FROM batches")


def show(db: Database) -> None:
    """Have `answers` show the batches too, for this connection alone, which only reads.

    Raises:
        DamagedDatabaseError: a batch cannot be read.

    """
    if db.execute("SELECT 1 FROM batches LIMIT 1").fetchone() is None:
        return
    db.execute("PRAGMA query_only = OFF")
    db.execute("CREATE TEMP TABLE batched AS SELECT * FROM answers WHERE 0")
    insert(db, _read(db), "batched")
    ended = " AND ".join(
        f"NOT (role = '{role}' AND seed_id IN (SELECT seed_id FROM main.{table}))"  # noqa: S608
        for role, table in _ENDED.items()
    )
    db.execute(
        "CREATE TEMP VIEW answers AS SELECT * FROM main.answers"  # noqa: S608 - names of ours
        f" UNION ALL SELECT * FROM batched WHERE {ended}"
    )
    db.execute("PRAGMA query_only = ON")


def _read(db: Database) -> Iterator[_Columns]:
    for (content,) in db.execute("SELECT answers FROM batches ORDER BY id"):
        try:
            yield from _decoder.decode(content)
        except (msgspec.DecodeError, TypeError) as error:
            raise DamagedDatabaseError(db.path, f"a batch of answers: {error}") from None
