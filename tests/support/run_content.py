"""All that a run directory says and stores, but for what two runs of one command do not share."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from edgeflare.run.run_directory import INPUT_FOLDERS
from edgeflare.run.seed_rows import KEYS
from laboratory import untimed

_TIMED = {"answers": -1, "chains": -1, "refinement_steps": -2}
"""The column of a table from which on it holds seconds."""

_OF_HEALTH = frozenset({"health", "parts"})
"""Keys of `about` that say what was seen of the devices, and where the run comes from."""

_COUNTED_AS_OVERHEAD = ("overhead_queries", "overhead_device_queries")


def run_content(folder: Path) -> dict[str, Any]:
    """Return what a run has found and recorded, but for times, health and canaries.

    Marks are left out too, since it is canaries that they depend on, and so are canaries from the
    totals that count them.

    Returns:
        `document`, `about`, the rows of each table by its name, and the bytes of each stored input
        by its path.

    """
    with closing(sqlite3.connect(folder / "run.db")) as db:
        tables = {table: _rows(db, table) for table in KEYS if table != "marks"}
        noted = {key: json.loads(text) for key, text in db.execute("SELECT key, value FROM about")}
    canaries = sum(row[0] == "canary" for row in tables["answers"])
    tables["answers"] = [row for row in tables["answers"] if row[0] != "canary"]
    document = untimed(json.loads((folder / "run.json").read_bytes()))
    less = {key: document["totals"][key] - canaries for key in _COUNTED_AS_OVERHEAD}
    return {
        "document": {**document, "totals": {**document["totals"], **less}},
        "about": {key: now for key, now in noted.items() if now and key not in _OF_HEALTH},
        **tables,
        "inputs": {
            str(path.relative_to(folder)): path.read_bytes()
            for name in INPUT_FOLDERS
            for path in sorted(folder.glob(f"{name}/*"))
        },
    }


def content_differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return where two contents differ, as the keys that lead there; none if they are equal."""
    found = []
    for key in sorted({*one, *other}, key=str):
        mine, theirs = one.get(key), other.get(key)
        if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
            found += [f"{key}.{further}" for further in content_differences(mine, theirs)]
        elif mine != theirs:
            found.append(str(key))
    return found


def _rows(db: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    known = "SELECT 1 FROM sqlite_master WHERE name = ?"
    if db.execute(known, (table,)).fetchone() is None:
        return []
    rows = db.execute(f"SELECT * FROM {table} ORDER BY {', '.join(KEYS[table])}").fetchall()  # noqa: S608 - names of ours
    return [row[: _TIMED.get(table)] for row in rows]
