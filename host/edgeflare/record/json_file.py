"""JSON documents read from disk: held to their schema before anything of them is used.

A run is passed on between people, and a file may be damaged on its way. What a schema says of every
key and value is checked here, so that the rest of the code may rely on it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.resources import files
from math import copysign, isnan
from pathlib import Path
from typing import Any, Final

import fastjsonschema
from fastjsonschema import JsonSchemaValueException

from edgeflare.errors import UserError
from edgeflare.outside_text import json_value
from edgeflare.regular_file import read_regular
from edgeflare.untrusted_text import for_json

MOST_BYTES: Final = 2**30
"""Of a document; a run with 100,000 findings has about 150 MB."""

MOST: Final = 2**53 - 1
"""Of a number, either way: what every reader of JSON keeps exactly (RFC 8259, section 6)."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A JSON schema, ready to be held against documents.

    Attributes:
        name: what a document of it has under `schema`; None where it has no such key.
        check: raises JsonSchemaValueException for what does not keep to it.
        parts: the schemas of its parts, by the names that it refers to them by.

    """

    name: str | None
    check: Callable[[Any], Any]
    parts: Mapping[str, Any]


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
    if isinstance(value, float):
        return None if isnan(value) else value if abs(value) <= MOST else copysign(MOST, value)
    if isinstance(value, Mapping):
        return {key: _writable(one) for key, one in value.items()}
    return [_writable(one) for one in value] if isinstance(value, (list, tuple)) else value


def load_json(path: Path, schema: Schema) -> dict[str, Any]:
    """Return a document that keeps to its schema.

    Whole numbers are of type int, however they are written, since in JSON 3.0 is one too.

    Args:
        path: the document's.
        schema: as `packaged_schema` or `compiled` returns it.

    Raises:
        UserError: the file cannot be read or is damaged; names it, and the place in it.

    """
    try:
        data = read_regular(path, MOST_BYTES)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    return parse_json(data, path, schema)


def parse_json(data: bytes, path: Path, schema: Schema) -> dict[str, Any]:
    """Return a document that keeps to its schema, as `load_json` does.

    Args:
        data: the document.
        path: the file that it is in, or was derived from.
        schema: as `packaged_schema` or `compiled` returns it.

    Raises:
        UserError: it is damaged; names the file, and the place in it.

    """
    unkept: list[str] = []
    try:
        document = json_value(
            data,
            whole=partial(_whole, unkept),
            number=partial(_number, unkept),
            constant=partial(_text_of, unkept),
        )
        if schema.name and not (
            isinstance(document, dict) and document.get("schema") == schema.name
        ):
            raise UserError(f"{path} is not of the schema {schema.name}")
        schema.check(document)
        if unkept:  # where the schema wants text
            raise ValueError(f"it holds {unkept[0]}, which not every reader of JSON keeps exactly")
    except JsonSchemaValueException as error:
        raise UserError(f"{path} is damaged: {_explained(error, schema)}") from None
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}") from None
    return dict(document)


@lru_cache
def packaged_schema(package: str, name: str) -> Schema:
    """Return a schema that lies in one of our packages."""
    return compiled(json_value((files(package) / name).read_bytes()))


def compiled(schema: Mapping[str, Any]) -> Schema:
    """Return a JSON schema, ready to be held against documents."""
    # An $id that is no address would be looked for on the network.
    kept = {key: value for key, value in schema.items() if key not in ("$id", "$schema")}
    name = schema["properties"].get("schema", {}).get("const")
    return Schema(name, fastjsonschema.compile(kept, use_default=False), kept.get("$defs", {}))


def _whole(unkept: list[str], text: str) -> int | str:
    """Return a whole number; what is too large stays text, which no schema takes for a number."""
    if len(text) > 20 or abs(int(text)) > MOST:
        return _text_of(unkept, text)
    return int(text)


def _number(unkept: list[str], text: str) -> float | int | str:
    value = float(text)
    if not -MOST <= value <= MOST:
        return _text_of(unkept, text)
    return int(value) if value.is_integer() else value


def _text_of(unkept: list[str], text: str) -> str:
    """Return the text of a number that cannot be kept, and note it."""
    unkept.append(text)
    return text


def _explained(error: JsonSchemaValueException, schema: Schema) -> str:
    """Say where in a document which value is not what it should be."""
    if (inner := _inside(error, schema)) is not None:
        or_null = " or null" if (inner.name, inner.rule) == (error.name, "type") else ""
        return _explained(inner, schema) + or_null
    place = re.sub(r"^data\.?", "", str(error.name)) or "it"
    if error.rule == "required":
        missing = [key for key in error.rule_definition if key not in error.value]
        return f"{place} has no {', '.join(missing)}"
    if error.rule == "additionalProperties":
        unknown = sorted(set(error.value) - set(error.definition.get("properties", ())))
        return f"{place} has the unknown key {_short(unknown[0])}"
    if error.rule == "type":
        kinds = error.rule_definition
        expected = kinds if isinstance(kinds, str) else " or ".join(kinds)
        return f"{place} is {_short(error.value)}, expected {expected}"
    said = str(error.message).removeprefix(str(error.name)).strip()
    return f"{place} is {_short(error.value)}, but {said}"


def _inside(error: JsonSchemaValueException, schema: Schema) -> JsonSchemaValueException | None:
    """Return what is wrong inside of a value that may be one thing or null; None of another."""
    if error.rule != "anyOf":
        return None
    kinds = [kind for kind in error.rule_definition if kind != {"type": "null"}]
    if len(kinds) != 1:
        return None
    check = fastjsonschema.compile({**kinds[0], "$defs": schema.parts}, use_default=False)
    try:
        check(error.value, name_prefix=error.name)
    except JsonSchemaValueException as inner:
        return inner
    return None


def _short(value: Any) -> str:
    """Return a value as JSON, of a large one the beginning."""
    text = "".join(_beginning(json.JSONEncoder().iterencode(value), 60))
    return text if len(text) <= 60 else f"{text[:57]}…"


def _beginning(parts: Iterator[str], most: int) -> Iterator[str]:
    length = 0
    for part in parts:
        yield part
        length += len(part)
        if length > most:
            return
