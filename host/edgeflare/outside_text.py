"""Text files that may be a stranger's, read within bounds: TOML, JSON, and lines.

Nothing else in the host parses them. What a decoder would fail of, or take without end, is refused
here in one line that names the place: text that is no Unicode, deep nesting, keys that are long or
there twice, and numbers that only Python keeps. So whoever uses the values need fear none of that.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from math import isfinite
from pathlib import Path
from typing import Any, Final

from edgeflare.errors import UserError
from edgeflare.regular_file import read_regular

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_TOML_BYTES: Final = 2**20
"""Most bytes of a TOML file: room for the names of 20,000 classes."""

MOST_DEPTH: Final = 64
"""Depth of lists and tables in each other, at most. Documents of ours have ten."""

_MOST_PARTS: Final = 16
"""Most parts of a dotted key. A parser's time grows with their square."""

_MARKS: Final = ",.=[{"

_MOST_MARKS: Final = 100_000
"""Most marks outside of strings, about as many as values. A parser in Python takes a second."""

_MOST_WHOLE: Final = 2**63
"""Largest whole number; TOML gives it 64 bits. Python refuses to print one of 4,300 digits."""

_QUOTED: Final = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"{3,5}|\\?\Z)'
    r"|'''.*?(?:'{3,5}|\Z)"
    r'|"(?:\\.|[^"\\\n])*"?'
    r"|'[^'\n]*'?"
    r"|\#[^\n]*",
    re.DOTALL,
)
"""Strings and comments of TOML, also such as end with the file."""

_LONG_KEY: Final = re.compile(rf"(?<![\w-])(?:[\w-]+[ \t]*\.[ \t]*){{{_MOST_PARTS}}}")

_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape that may be half a character."""


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file says: text, finite numbers, lists and tables.

    Raises:
        UserError: it is no regular file, or too large, or no TOML; or it has a date, a number
            beyond 64 bits, one that is not finite, a NUL, or is nested too deeply.
        OSError: it cannot be read.

    """
    data = read_regular(path, MOST_TOML_BYTES)
    try:
        text = data.decode()
        bare = _QUOTED.sub("_", text)
        if found := _LONG_KEY.search(bare):
            line = bare.count("\n", 0, found.start()) + 1
            raise ValueError(f"a key has more than {_MOST_PARTS} parts (near line {line})")
        if sum(map(bare.count, _MARKS)) > _MOST_MARKS:
            raise ValueError(f"it holds more than {_MOST_MARKS:,} values")
        content = tomllib.loads(text)
        _require_shallow(content)
    except RecursionError:
        raise UserError(f"{path}: is not valid TOML: it is nested too deeply") from None
    except MemoryError:
        raise UserError(f"{path} takes more memory than there is: give a smaller one") from None
    except ValueError as error:  # of the decoders too
        raise UserError(f"{path}: is not valid TOML: {_shortened(str(error))}") from None
    for wrong in _unusable(content):
        raise UserError(f"{path}: {wrong}")
    return content


def json_value(
    data: bytes | str,
    *,
    whole: Callable[[str], Any] | None = None,
    number: Callable[[str], Any] | None = None,
    constant: Callable[[str], Any] | None = None,
) -> Any:
    """Return what JSON says.

    Args:
        data: the text, or its bytes in UTF-8.
        whole: makes a value of the text of a whole number; int within 64 bits for None.
        number: the same of another number; float for None.
        constant: the same of NaN, Infinity and -Infinity; float for None.

    Raises:
        ValueError: it is no JSON, or has text that is no Unicode, or a key twice in one object, or
            a number beyond 64 bits, or is nested too deeply, or takes more memory than there is.
            Its text says which in a line.

    """
    try:
        text = data if isinstance(data, str) else data.decode()
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=whole or _whole,
            parse_float=number,
            parse_constant=constant,
        )
        _require_shallow(value)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeError:
        raise ValueError("it holds text that is no Unicode") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except MemoryError:
        raise ValueError("it takes more memory than there is") from None
    return value


def read_lines(path: Path, most_bytes: int) -> list[str]:
    """Return the lines of a text file, as `read_text` reads it, without their ends."""
    return read_text(path, most_bytes).splitlines()


def read_text(path: Path, most_bytes: int) -> str:
    """Return what a text file in UTF-8 says, without a mark at its beginning.

    Raises:
        UserError: it is no regular file, or too large, or no text.
        OSError: it cannot be read.

    """
    return text_of(read_regular(path, most_bytes), str(path))


def text_of(content: bytes, name: str) -> str:
    """Return the text of a file in UTF-8, without a mark at its beginning.

    Args:
        content: content of the file.
        name: what the user calls the file, for messages.

    Raises:
        UserError: it is no text.

    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{name} is no text in UTF-8: write it so") from None
    if "\0" in text:
        raise UserError(f"{name} is no text, since it holds NUL: write it as text")
    return text


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, which says one thing for each key.

    Other readers may take the first value where Python takes the last one, and show another thing.
    """
    made = dict(pairs)
    if len(made) != len(pairs):
        twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise ValueError(f"it has the key {_shortened(repr(twice))} twice in one place")
    return made


def _whole(text: str) -> int:
    if len(text) > 20 or not -_MOST_WHOLE <= int(text) < _MOST_WHOLE:
        raise ValueError(f"it holds the number {_shortened(text)}, which has more than 64 bits")
    return int(text)


def _require_shallow(value: Any) -> None:
    """Refuse what is nested more deeply than `MOST_DEPTH`, level by level, without recursion."""
    level: list[Any] = [[value]]
    for _ in range(MOST_DEPTH + 1):
        level = [
            part
            for table in level
            for part in (table.values() if isinstance(table, dict) else table)
            if isinstance(part, (dict, list))
        ]
        if not level:
            return
    raise ValueError("it is nested too deeply")


def _unusable(content: dict[str, Any]) -> Iterator[str]:
    """Yield what a table holds that nothing here takes, each with its place."""
    left: list[tuple[str, Any]] = [("", content)]
    while left:
        place, value = left.pop()
        if isinstance(value, dict):
            for key, inner in value.items():
                if "\0" in key:
                    yield f"the key {_shortened(repr(key))} holds NUL: take it out"
                left.append((f"{place}.{key}" if place else key, inner))
        elif isinstance(value, list):
            left += [(f"{place}[{at}]", inner) for at, inner in enumerate(value)]
        elif wrong := _unusable_value(value):
            yield f"{_shortened(place)} {wrong}"


def _unusable_value(value: Any) -> str:
    """Return what is wrong with a plain value; empty where nothing is."""
    if isinstance(value, str):
        return "holds NUL: take it out" if "\0" in value else ""
    if isinstance(value, int):
        fits = -_MOST_WHOLE <= value < _MOST_WHOLE
        return "" if fits else "is a number of more than 64 bits: write a smaller one"
    if isinstance(value, float):
        return "" if isfinite(value) else f"is {value}: write a finite number"
    return f"is a date or a time, {value}: write text in quotes"


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:197]}…"
