"""Files changed at random: half of them bytes, half of them values that are written out again."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sqlite3
import sys
import tempfile
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, Final

from mutated_binaries import BINARIES, Mutation

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


_SPLICES: Final = (
    *(b"\0", b"\xff", b"\xed\xa0\x80", b"[" * 5000, b"{" * 5000, b'{"a":' * 5000, b'"', b"'''"),
    *(b"\n", b"\r", b",", b"a = " + b"[" * 3000, b"a." * 20000 + b"a = 1\n", b"9" * 5000),
    *(b"-1e999", b"NaN", b"Infinity", b"\\ud800", b"\\u0000", b"x" * 100_000, b"0x" + b"f" * 5000),
)
"""What is put into a file as it is."""


def any_bytes(data: bytes, random: Random) -> bytes:
    """Return a file with some bytes changed, taken out, put in, repeated or cut off."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        at = random.randrange(len(changed) + 1)
        length = random.choice((1, 4, 64, max(1, len(changed) // 3)))
        how = random.randrange(6)
        if how == 0:
            changed[at : at + 1] = bytes([random.randrange(256)])
        elif how == 1:
            del changed[at : at + length]
        elif how == 2:
            changed[at:at] = random.choice(_SPLICES)
        elif how == 3:
            changed[at:at] = changed[at : at + length] * random.choice((1, 3))
        elif how == 4:
            del changed[at:]
        elif at < len(changed):
            changed[at] ^= 1 << random.randrange(8)
    return bytes(changed)


def _nested(depth: int, table: bool) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = {"a": value} if table else [value]
    return value


def _odd_value(random: Random) -> Any:
    """Return a value that hardly belongs anywhere."""
    return deepcopy(
        random.choice(
            (
                *(None, True, False, 0, -1, 1, 3, 2.5, -0.0, 1e300, 5e-324, 2**31, 2**53, 2**63),
                *(-(2**63), 10**30, 10**400, float("nan"), float("inf"), -float("inf")),
                *("", "12", "\x1b[31m", "/etc/passwd", "../x", "a\0b", "=1+1", "x" * 70_000),
                *("\ud800", "a:b", "a.py:b", "é" * 300, "nan", "\n", "#", "-", ".", ".."),
                *([], [[]], {}, [None], {"": 0}, {"a": {"b": {}}}, [0] * 5000, ["a", 1, None]),
                *(_nested(60, table=True), _nested(60, table=False)),
                *(_nested(400, table=True), _nested(2000, table=False)),
            )
        )
    )


def _places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [place]
    parts = dict(enumerate(value[:50])) if isinstance(value, list) else value
    for key, one in parts.items() if isinstance(parts, dict) else ():
        found += _places(one, (*place, key))
    return found


def changed_value(document: Any, random: Random) -> Any:
    """Return a document with one to three of its values changed, moved, taken or added."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        document = _changed_once(deepcopy(document), random)
    return document


def _changed_once(document: Any, random: Random) -> Any:
    known = [place for place in _places(document) if place]
    if not known:
        return _odd_value(random)
    # Each depth has the same chance: most places of a document are parts of a long list.
    depth = random.choice(sorted({len(place) for place in known}))
    *before, last = random.choice([place for place in known if len(place) == depth])
    at = document
    for key in before:
        at = at[key]
    how, value = random.randrange(6), _near(at[last], random)
    if how <= 2:
        at[last] = value if how else _odd_value(random)
    elif how == 3:
        del at[last]
    elif isinstance(at, dict):
        at[random.choice(("more", "", "a.b", "\x1b", "k" * 3000, str(last) + "x"))] = at[last]
    elif how == 4:
        at.insert(random.randrange(len(at) + 1), _odd_value(random))
    else:
        at.append(deepcopy(random.choice(at)))
    return document


def _near(value: Any, random: Random) -> Any:
    """Return a value of the same type as another one, where it is a plain one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return random.choice((value + 1, value - 1, -value, value * 1000, 0, 2**40, 2**62))
    if isinstance(value, float):
        return random.choice((-value, value * 1e9, 0.0, 1e300, float("nan"), float("inf"), 7))
    if isinstance(value, str):
        return random.choice((value[:-1], value + "x", value * 2, value.upper(), "", value + "\0"))
    return _odd_value(random)


def json_values(data: bytes, random: Random) -> bytes:
    """Return a JSON document with changed values; what is no JSON, such as NaN, stays in it."""
    return json.dumps(changed_value(json.loads(data), random)).encode()


def toml_values(data: bytes, random: Random) -> bytes:
    """Return a TOML document with changed values."""
    content = changed_value(tomllib.loads(data.decode()), random)
    if not isinstance(content, dict):
        content = {"more": content}
    lines = (f"{_key(key)} = {_toml(one)}\n" for key, one in content.items() if one is not None)
    return "".join(lines).encode()


def _key(key: str) -> str:
    return json.dumps(key)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        inner = (f"{_key(key)} = {_toml(one)}" for key, one in value.items() if one is not None)
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, list):
        return f"[{', '.join(_toml(one) for one in value if one is not None)}]"
    if isinstance(value, str):
        return json.dumps(value.replace("\ud800", "")).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def table_cells(data: bytes, random: Random) -> bytes:
    """Return a table of comma-separated values with changed cells, or lines of a list changed."""
    lines = list(csv.reader(io.StringIO(data.decode())))
    changed = changed_value(lines, random)
    if not isinstance(changed, list):
        changed = [[changed]]
    text = io.StringIO()
    rows = [line if isinstance(line, list) else [line] for line in changed]
    csv.writer(text).writerows([[_cell(one) for one in row] for row in rows])
    return text.getvalue().encode(errors="surrogatepass")


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)[:2000]


def journal_rows(data: bytes, random: Random) -> bytes:
    """Return a journal, an SQLite database, with values of one to three of its rows changed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal")
        path.write_bytes(data)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = DELETE")
            for _ in range(random.choice((1, 1, 2, 3))):
                with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeError):
                    _change_row(db, random)
            db.execute("PRAGMA journal_mode = WAL")
        return path.read_bytes()


def _change_row(db: sqlite3.Connection, random: Random) -> None:
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    table = random.choice([one for one in names if _rows(db, one, "1")])
    columns = [(name, key) for _, name, _, _, _, key in db.execute(f"PRAGMA table_info({table})")]
    keys = [name for name, key in columns if key] or ["rowid"]
    at = random.choice(_rows(db, table, ", ".join(keys)))
    where = " AND ".join(f"{key} IS ?" for key in keys)
    column = random.choice(columns)[0]
    (before,) = db.execute(f"SELECT {column} FROM {table} WHERE {where}", at).fetchone()  # noqa: S608
    if random.randrange(12) == 0:
        db.execute(f"DELETE FROM {table} WHERE {where}", at)  # noqa: S608
        return
    changed = _changed_cell(before, random)
    db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (changed, *at))  # noqa: S608


def _rows(db: sqlite3.Connection, table: str, columns: str) -> list[tuple[Any, ...]]:
    return db.execute(f"SELECT {columns} FROM {table}").fetchall()  # noqa: S608


def _changed_cell(before: Any, random: Random) -> Any:
    if isinstance(before, str) and before[:1] in "[{" and random.randrange(4):
        with contextlib.suppress(ValueError):
            return json.dumps(changed_value(json.loads(before), random))
    if isinstance(before, bytes) and random.randrange(3):
        return random.choice(
            (before[:-1], before + b"\0", b"", before * 2, any_bytes(before, random))
        )
    if random.randrange(3):
        return _near(before, random)
    value = _odd_value(random)
    return value if isinstance(value, (int, float, str, bytes, type(None))) else json.dumps(value)


_VALUES: Final[Mapping[str, Mutation]] = {
    "toml": toml_values,
    "json": json_values,
    "journal": journal_rows,
    "table": table_cells,
    **BINARIES,
}
"""By the format of a file: what changes its values and leaves the format valid."""


_DEEP: Final = 50_000
"""Calls within calls, while a value that is nested deeply is written."""


def changed_file(data: bytes, form: str, random: Random, *, valid: bool) -> bytes:
    """Return a file with changes at random.

    Args:
        data: the file.
        form: its format, "toml", "json", "journal", "table" or one of `BINARIES`; of any other one
            bytes are changed.
        random: decides the changes.
        valid: whether the format stays valid, and values are others.

    """
    if not valid or form not in _VALUES:
        return any_bytes(data, random)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(_DEEP)
    try:
        return _VALUES[form](data, random)
    finally:
        sys.setrecursionlimit(before)
