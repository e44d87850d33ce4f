"""Tables of a survey in a journal: what the host's arms and the device said about each item.

Raw outputs are not kept: a survey has tens of thousands of items, and its rates need judgements
alone. The tables are made with the first row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from edgeflare.core.goal import Kind
from edgeflare.record.database import Database
from edgeflare.run.journal_rows import Amount, Count, checked_row, row_values

_HOST = """
CREATE TABLE IF NOT EXISTS survey_host (
    item INTEGER PRIMARY KEY, input_crc32 INTEGER NOT NULL,
    compression INTEGER NOT NULL, compression_tied INTEGER NOT NULL, doubtful INTEGER NOT NULL,
    margin REAL NOT NULL,
    original_decision INTEGER NOT NULL, twin_decision INTEGER NOT NULL,
    twin_distance REAL, seconds REAL NOT NULL,
    known INTEGER NOT NULL, original_right INTEGER NOT NULL, twin_right INTEGER NOT NULL,
    original_truth_distance REAL, twin_truth_distance REAL
)
"""
_DEVICE = """
CREATE TABLE IF NOT EXISTS survey_device (
    item INTEGER PRIMARY KEY,
    deviates INTEGER NOT NULL, deviates_tied INTEGER NOT NULL,
    kernel INTEGER NOT NULL, kernel_tied INTEGER NOT NULL, failed INTEGER NOT NULL,
    tied INTEGER NOT NULL,
    kind TEXT, strength REAL, device_decision INTEGER NOT NULL,
    device_distance REAL, seconds REAL NOT NULL,
    device_right INTEGER NOT NULL, device_truth_distance REAL
)
"""

SURVEY_KEY = "survey"
"""The key of `about` under which the journal says what a survey is asked."""

NO_DECISION = -1
"""Decision where an arm failed or was not there, or where decisions are not counted or too many."""


@dataclass(frozen=True, slots=True)
class HostRow:
    """What the host's arms said about an item.

    Attributes:
        item: number of the item; see `SurveyFacts`.
        input_crc32: CRC-32 of the bytes of its input.
        compression: original and twin decide differently.
        compression_tied: `compression` hangs on a tie.
        doubtful: a member of the twin's ensemble decides differently from it, or has a tie.
        margin: how far the twin is from deciding otherwise.
        original_decision: class that the original decides on, or `NO_DECISION`; likewise
            twin_decision.
        twin_distance: distance between original and twin; None where answers are classes.
        seconds: this item's share of the evaluation time.
        known: what is right for its input is known, by a label or a target.
        original_right: the original decides so; likewise twin_right. False where it is not known.
        original_truth_distance: distance of the original from the target; None where there is none,
            or answers are classes; likewise twin_truth_distance.

    """

    item: Count
    input_crc32: int
    compression: bool
    compression_tied: bool
    doubtful: bool
    margin: float
    original_decision: int
    twin_decision: int
    twin_distance: float | None
    seconds: Amount
    known: bool
    original_right: bool
    twin_right: bool
    original_truth_distance: float | None
    twin_truth_distance: float | None


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """What the device said about an item, held against the host's arms.

    Attributes:
        item: number of the item; see `SurveyFacts`.
        deviates: original and device decide differently, or the device failed; without an
            original the twin stands in its place.
        deviates_tied: `deviates` hangs on a tie.
        kernel: twin and device decide differently, or the device alone failed.
        kernel_tied: `kernel` hangs on a tie.
        failed: the device crashed, hung, or gave invalid outputs.
        tied: the device's decision hangs on a tie.
        kind: kind of the finding that it is; None where it is none.
        strength: strength of the deviation; None where there is none.
        device_decision: class that the device decides on, or `NO_DECISION`.
        device_distance: distance from the original, or the twin; None where answers are classes.
        seconds: this item's share of the evaluation time.
        device_right: as for the host's arms.
        device_truth_distance: likewise.

    """

    item: Count
    deviates: bool
    deviates_tied: bool
    kernel: bool
    kernel_tied: bool
    failed: bool
    tied: bool
    kind: Kind | None
    strength: float | None
    device_decision: int
    device_distance: float | None
    seconds: Amount
    device_right: bool
    device_truth_distance: float | None


class SurveyRows:
    """The tables of a survey in the journal's database."""

    def __init__(self, db: Database) -> None:
        """Take the database."""
        self._db = db

    def write_host(self, rows: Iterable[HostRow]) -> None:
        """Record what the host's arms said; inside a transaction."""
        self._db.execute(_HOST)
        self._write("survey_host", [row_values(row) for row in rows])

    def write_device(self, rows: Iterable[DeviceRow]) -> None:
        """Record what the device said; inside a transaction."""
        self._db.execute(_DEVICE)
        self._write("survey_device", [row_values(row) for row in rows])

    def drop_device(self, items: Iterable[int]) -> None:
        """Drop what the device said about some items; inside a transaction."""
        rows = [(item,) for item in items]
        self._db.executemany("DELETE FROM survey_device WHERE item = ?", rows)

    def host(self) -> list[HostRow]:
        """Return what the host's arms said, in the order of the items."""
        return [
            checked_row(
                self._db,
                HostRow,
                (*row[:2], *map(bool, row[2:5]), *row[5:10], *map(bool, row[10:13]), *row[13:]),
            )
            for row in self._rows("survey_host")
        ]

    def checksums(self) -> dict[int, int]:
        """Return the checksum of the input of each item that the host's arms answered."""
        return dict(self._rows("survey_host", "item, input_crc32"))

    def host_items(self) -> set[int]:
        """Return the items that the host's arms answered."""
        return self._items("survey_host")

    def host_count(self) -> int:
        """Return how many items the host's arms answered."""
        return self._count("survey_host")

    def device(self) -> list[DeviceRow]:
        """Return what the device said, in the order of the items."""
        return [
            checked_row(
                self._db,
                DeviceRow,
                (row[0], *map(bool, row[1:7]), *row[7:12], bool(row[12]), *row[13:]),
            )
            for row in self._rows("survey_device")
        ]

    def device_items(self) -> set[int]:
        """Return the items that the device was asked about."""
        return self._items("survey_device")

    def device_count(self) -> int:
        """Return how many items the device was asked about."""
        return self._count("survey_device")

    def _write(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            places = ", ".join("?" * len(rows[0]))
            self._db.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({places})", rows)  # noqa: S608 - a constant

    def _items(self, table: str) -> set[int]:
        return {item for (item,) in self._rows(table, "item")}

    def _count(self, table: str) -> int:
        return sum(count for (count,) in self._rows(table, "count(*)"))

    def _rows(self, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
        """Return columns of a table, in the order of the items; nothing while there is none."""
        known = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        if self._db.execute(known, (table,)).fetchone() is None:
            return []
        return self._db.execute(f"SELECT {columns} FROM {table} ORDER BY item").fetchall()  # noqa: S608 - constants
