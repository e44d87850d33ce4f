"""Documents read from disk as what they are in code, held to all that their kind says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from edgeflare.errors import UserError
from edgeflare.record.json_file import Schema, load_json, packaged_schema, parse_json
from edgeflare.record.json_types import read_text

Document = TypeVar("Document")


@dataclass(frozen=True, slots=True)
class DocumentReader(Generic[Document]):
    """How the documents of one kind are read.

    Attributes:
        kind: their type.
        package: the package in which their schema lies.
        name: of the schema's file, before `.schema.json`.
        contradictions: returns what a schema cannot say is wrong, each with its place.

    """

    kind: type[Document]
    package: str
    name: str
    contradictions: Callable[[Document], Iterable[str]] = lambda _: ()

    def read(self, path: Path) -> Document:
        """Return the document in a file.

        Raises:
            UserError: the file cannot be read, is damaged or of another schema; names it, and the
                place in it.

        """
        return self._held(load_json(path, self._schema()), path)

    def check(self, data: bytes, path: Path) -> Document:
        """Return a document that was derived from a file, held to all that one in a file is.

        Args:
            data: the document.
            path: the file that it was derived from.

        Raises:
            UserError: the file is damaged; names it, and the place in the document.

        """
        return self._held(parse_json(data, path, self._schema()), path)

    def _schema(self) -> Schema:
        return packaged_schema(self.package, f"{self.name}.schema.json")

    def _held(self, fields: Mapping[str, Any], path: Path) -> Document:
        try:
            document = msgspec.convert(fields, self.kind, dec_hook=read_text)
        except (msgspec.ValidationError, UserError) as error:  # what the types refuse beyond it
            raise UserError(f"{path} is damaged: {error}") from None
        for wrong in self.contradictions(document):
            raise UserError(f"{path} is damaged: {wrong}")
        return document
