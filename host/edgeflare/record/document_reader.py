"""Documents read from disk as what they are in code, held to all that their kind says of them.

A run is passed on between people, and a file may be damaged on its way. What the type of a document
says of every key and value is checked here, so that the rest of the code may rely on it. The JSON
Schema beside the type, which is written from it, is for other programs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from edgeflare.errors import UserError
from edgeflare.record.json_file import load_json, parse_json
from edgeflare.record.json_types import plain_json, read_text

Document = TypeVar("Document")


@dataclass(frozen=True, slots=True)
class DocumentReader(Generic[Document]):
    """How the documents of one kind are read.

    Attributes:
        kind: their type; what a tagged one has under `schema` is its tag.
        contradictions: returns what the type cannot say is wrong, each with its place.

    """

    kind: type[Document]
    contradictions: Callable[[Document], Iterable[str]] = lambda _: ()

    def read(self, path: Path) -> Document:
        """Return the document in a file.

        Raises:
            UserError: the file cannot be read, is damaged or of another schema; names it, and the
                place in it.

        """
        return self._held(load_json(path), path)

    def check(self, data: bytes, path: Path) -> Document:
        """Return a document that was derived from a file, held to all that one in a file is.

        Args:
            data: the document.
            path: the file that it was derived from.

        Raises:
            UserError: the file is damaged; names it, and the place in the document.

        """
        return self._held(parse_json(data, path), path)

    def _held(self, given: Any, path: Path) -> Document:
        tag = self.kind.__struct_config__.tag if issubclass(self.kind, msgspec.Struct) else None
        if tag and not (isinstance(given, dict) and given.get("schema") == tag):
            raise UserError(f"{path} is not of the schema {tag}")
        try:
            document = msgspec.convert(given, self.kind, dec_hook=read_text)
        except msgspec.ValidationError as error:
            raise UserError(f"{path} is damaged: {_explained(str(error), given)}") from None
        except UserError as error:  # what a type with checks of its own refuses
            raise UserError(f"{path} is damaged: {error}") from None
        for wrong in (*_otherwise(given, plain_json(document), ""), *self.contradictions(document)):
            raise UserError(f"{path} is damaged: {wrong}")
        return document


_REFUSED = re.compile(r"(?s)(.*?)(?: - at `(?:key` in `)?\$\.?(.*)`)?")
"""What msgspec says is wrong, and where; it does not tell which key of a mapping it is."""

_MISSING = re.compile(r"Object missing required field `(.*)`")
_STEP = re.compile(r"\[(\d+)\]|\[\.\.\.\]|[^.\[]+")


def _explained(error: str, given: Any) -> str:
    """Return what is wrong in a document, with its place first."""
    found = _REFUSED.fullmatch(error)
    said, place = (error, "") if found is None else (found[1], found[2] or "")
    if missing := _MISSING.fullmatch(said):
        return f"{place or 'it'} has no {missing[1]}"
    expected = f"{said[:1].lower()}{said[1:]}".replace("`", "")
    value = given
    for step in _STEP.finditer(place):
        if step[0] == "[...]":
            return f"{place}: {expected}"
        value = value[int(step[1]) if step[1] else step[0]]
    return f"{place or 'it'} is {_short(value)}: {expected}"


def _short(value: Any) -> str:
    """Return a value as JSON, of a large one the beginning."""
    text = "".join(islice(json.JSONEncoder().iterencode(value), 60))
    return text if len(text) <= 60 else f"{text[:57]}…"


def _otherwise(given: Any, written: Any, place: str) -> Iterator[str]:
    """Yield keys that a document has and would not be written with, or the other way round."""
    if given == written:
        return
    if isinstance(given, dict) and isinstance(written, dict):
        for key in given:
            there = f"{place}.{key}".lstrip(".")
            if key in written:
                yield from _otherwise(given[key], written[key], there)
            elif given[key] in (None, [], {}):
                yield f"{there} is {_short(given[key])}, which is left out"
            else:
                yield f"{place or 'it'} has the unknown key {_short(key)}"
        for key in written:
            if key not in given:
                yield f"{place or 'it'} has no {key}"
    elif isinstance(given, list) and isinstance(written, list):
        for at, (element, other) in enumerate(zip(given, written, strict=False)):
            yield from _otherwise(element, other, f"{place}[{at}]")
