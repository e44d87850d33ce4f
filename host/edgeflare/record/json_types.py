"""Values as documents have them, with their limits, for the annotations of their types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Any

import msgspec

Number = int | float
"""A number as JSON has it: of a file, one without a fraction is of type int."""

Count = Annotated[int, msgspec.Meta(ge=0)]
"""Count of things, or the position of one of them, from 0."""

CountFromOne = Annotated[int, msgspec.Meta(ge=1)]
"""Count of things of which there is at least one."""

Amount = Annotated[int, msgspec.Meta(ge=0)] | Annotated[float, msgspec.Meta(ge=0)]
"""A number of seconds or bytes, or a distance."""

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A part of a whole, a probability, or an area below a curve of such."""

ShareAsWritten = Annotated[int, msgspec.Meta(ge=0, le=1)] | Share
"""A share that stays an integer where a file has one, so that it is written again as it was."""

Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}(?!\n)$")]
"""The SHA-256 digest of a file, in hexadecimal."""

TwoNames = Annotated[tuple[str, ...], msgspec.Meta(min_length=2, max_length=2)]
"""The names of two things, in their order."""

JsonValue = str | int | float | bool | list[Any] | dict[str, Any] | None
"""What somebody else chose to write, such as a setting of a domain: any value of JSON."""


class Text(ABC):
    """What documents and journals have as text, which `str` writes; base of such classes.

    They are no dataclasses, of which msgspec would write the fields.
    """

    @classmethod
    @abstractmethod
    def read(cls, text: str) -> Any:
        """Return what `str` wrote.

        Raises:
            ValueError: it wrote no such thing.

        """


def written_text(value: object) -> str:
    """Return a `Text` as text: what msgspec takes as `enc_hook`.

    Raises:
        NotImplementedError: it is none.

    """
    if not isinstance(value, Text):
        raise NotImplementedError(f"{type(value)} has no form in JSON")
    return str(value)


def plain_json(value: object) -> Any:
    """Return an object as plain JSON values: lists for tuples, texts for what is `Text`."""
    return _plain(msgspec.to_builtins(value, enc_hook=written_text))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(element) for element in value] if isinstance(value, list | tuple) else value


def read_text(kind: type[Text], text: str) -> Any:
    """Return a `Text` of a kind from its text: what msgspec takes as `dec_hook`."""
    return kind.read(text)


def text_schema(kind: type) -> dict[str, str]:
    """Return the schema of a `Text`: what msgspec takes as `schema_hook`.

    Raises:
        NotImplementedError: it is none.

    """
    if not issubclass(kind, Text):
        raise NotImplementedError(f"{kind} has no form in JSON")
    return {"type": "string"}
