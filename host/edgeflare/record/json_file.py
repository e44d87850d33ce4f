"""JSON as it is written to disk and read from it, with numbers that every reader keeps."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import copysign, isnan
from pathlib import Path
from typing import Any, Final, NoReturn

from edgeflare.errors import UserError
from edgeflare.outside_text import json_value
from edgeflare.regular_file import read_regular
from edgeflare.untrusted_text import for_json

MOST_BYTES: Final = 2**30
"""Largest document that is read, in bytes; a run with 100,000 findings has about 150 MB."""

MOST: Final = 2**53 - 1
"""Largest number, either way: what every reader of JSON keeps exactly (RFC 8259, section 6)."""


_LARGE: Final = re.compile(r"[0-9]e\+[0-9]|[0-9]{16}")
"""What every number beyond `MOST` has in JSON."""


def json_bytes(document: Any) -> bytes:
    """Return a document as `load_json` reads it again.

    JSON has no NaN and no infinity: what is NaN becomes null, and numbers beyond `MOST` on either
    side become `MOST`.
    """
    try:
        text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
        kept = not _LARGE.search(text)
    except ValueError:
        kept = False
    if not kept:
        text = json.dumps(_writable(document), indent=1, ensure_ascii=False, allow_nan=False)
    return for_json(text).encode() + b"\n"


def _writable(value: Any) -> Any:
    if isinstance(value, int):
        return min(max(value, -MOST), MOST)
    if isinstance(value, float):
        return None if isnan(value) else value if abs(value) <= MOST else copysign(MOST, value)
    if isinstance(value, Mapping):
        return {key: _writable(inner) for key, inner in value.items()}
    return [_writable(element) for element in value] if isinstance(value, (list, tuple)) else value


def load_json(path: Path) -> Any:
    """Return the JSON value in a file.

    Whole numbers are of type int, however they are written, since in JSON 3.0 is one too.

    Raises:
        UserError: the file cannot be read or is damaged; names it, and the place in it.

    """
    try:
        data = read_regular(path, MOST_BYTES)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    return parse_json(data, path)


def parse_json(data: bytes, path: Path) -> Any:
    """Return a JSON value, as `load_json` does.

    Args:
        data: the text of it.
        path: the file that it is in, or was derived from.

    Raises:
        UserError: it is damaged; names the file, and the place in it.

    """
    try:
        return json_value(data, whole=_whole, number=_number, constant=_refused)
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}") from None


def _whole(text: str) -> int:
    return _refused(text) if len(text) > 20 or abs(int(text)) > MOST else int(text)


def _number(text: str) -> float | int:
    value = float(text)
    if not -MOST <= value <= MOST:
        return _refused(text)
    return int(value) if value.is_integer() else value


def _refused(text: str) -> NoReturn:
    """Refuse a number that not every reader keeps."""
    raise ValueError(f"it holds {text}, which not every reader of JSON keeps exactly")
