"""What a command was asked: kept in its folder, compared, and held to when the command goes on.

A request is a dataclass or a Struct of which each field was asked for with an option, named like it
unless `Annotated` metadata of type `Option` says otherwise. A field of such a type stands for the
options of its own fields.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_type_hints

from edgeflare.errors import UserError

_SHOWN: Final = 60
"""Characters of an option's value that a message shows."""

More = Literal["smaller", "larger", "longer"]
"""The direction in which more is asked for; without a bound is more than with one."""


@dataclass(frozen=True, slots=True)
class Option:
    """How a field of a request is asked for.

    Attributes:
        name: the option, such as "--precision"; empty where the field was not asked for, but
            follows from others.
        words: returns what a value is written as behind the name; None where it is not asked for.
        more: how it may change when the command goes on; None where it has to stay as it was.
        ordered: whether the order of a mapping counts.

    """

    name: str
    words: Callable[[Any], str | None] | None = None
    more: More | None = None
    ordered: bool = False

    @property
    def asks_more(self) -> str | None:
        """What to type for more, such as "a larger --device-queries"; None where nothing does."""
        return self.more and f"a {self.more} {self.name}"


DERIVED: Final = Option("")
"""What marks a field that was not asked for: it follows from others, or from the pair."""


class AskedDifference(NamedTuple):
    """An option that two requests differ in, and its values as they are written; None without."""

    name: str
    one: str | None
    other: str | None


def differences(one: Any, other: Any, ignored: Collection[str] = ()) -> Iterator[AskedDifference]:
    """Yield the options in which two requests of one type differ, in the order of their fields.

    Args:
        one: the one request.
        other: the other.
        ignored: names of options that may differ.

    """
    for option, was, now in _changed(one, other):
        if option.name not in ignored:
            yield AskedDifference(option.name, *(_cut(_text(option, x)) for x in (was, now)))


def option_names(kind: type) -> frozenset[str]:
    """Return the names of all options of a type of requests."""
    return frozenset(option.name for _, option in _fields(kind))


def how_to_ask_more(kind: type, name: str) -> str | None:
    """Return what to type for more, such as "a larger --device-queries"; None where nothing does.

    Args:
        kind: kind of the requests.
        name: name of the option, which need not be one.

    """
    return next((option.asks_more for _, option in _fields(kind) if option.name == name), None)


def require_same_request(begun: Any, now: Any, folder: Path) -> bool:
    """Refuse to go on with what was asked for otherwise.

    Args:
        begun: what the command was asked that began the folder.
        now: what is asked of the one that goes on.
        folder: folder that the message names.

    Returns:
        Whether more is asked for now, in the directions that the options have for that.

    Raises:
        UserError: they differ in anything else; names the first difference.

    """
    more = False
    for option, was, wanted in _changed(begun, now):
        if option.more is None or not _is_more(option.more, was, wanted):
            raise UserError(_refusal(option, was, wanted, begun, folder))
        more = True
    return more


def not_as_begun(name: str, one: str | None, other: str | None) -> str:
    """Return what a command was begun with or without, and is not gone on with.

    Args:
        name: name of the option.
        one: value of the option where the command began, as it is written, empty for a flag; None
            without.
        other: value of the option now.

    """
    before, instead = (
        f"without {name}" if x is None else f"with {name} {x}".rstrip() for x in (one, other)
    )
    if before == instead:  # both were cut
        return f"with another value of {name}, not this one"
    return f"{before}, not {instead if None in (one, other) else other}"


def _refusal(option: Option, was: Any, wanted: Any, begun: Any, folder: Path) -> str:
    texts = _text(option, was), _text(option, wanted)
    if texts[0] == texts[1]:
        return (
            f"{folder} was begun with {option.name} {_cut(texts[0])}, which stands for something"
            " else now: restore what it names, or name another folder with --out"
        )
    growing = [
        field.asks_more
        for place, field in _fields(begun.__class__)
        if field.asks_more and _value(begun, place) is not None
    ]
    more = f", and {' or '.join(growing)} if more is wanted" if option.more and growing else ""
    said = not_as_begun(option.name, *(_cut("" if x == str(True) else x) for x in texts))
    return (
        f"{folder} was begun {said}: repeat the command that began it, with"
        f" --resume{more}, or name another folder with --out"
    )


def _text(option: Option, value: Any) -> str | None:
    """Return a value as it is written behind its option; None where it is not asked for."""
    if option.words is not None:
        return option.words(value)
    if value is None or value is False or value == ():
        return None
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _is_more(more: More, was: Any, wanted: Any) -> bool:
    if was is None:
        return False
    return wanted is None or bool(wanted < was if more == "smaller" else wanted > was)


def _changed(one: Any, other: Any) -> Iterator[tuple[Option, Any, Any]]:
    """Yield the options that differ, with both values; tuples of one option are joined."""
    by_name: dict[str, list[tuple[Option, Any, Any]]] = {}
    for place, option in _fields(one.__class__):
        values = (option, _value(one, place), _value(other, place))
        by_name.setdefault(option.name, []).append(values)
    for some in by_name.values():
        if all(isinstance(value, tuple) for _, *both in some for value in both):
            first = tuple(part for _, values, _ in some for part in values)
            second = tuple(part for _, _, values in some for part in values)
            some = [(some[0][0], first, second)]  # noqa: PLW2901 - several fields are one option
        for option, was, now in some:
            if was != now or (option.ordered and [*was] != [*now]):
                yield option, was, now


def _value(request: Any, place: tuple[str, ...]) -> Any:
    for name in place:
        request = getattr(request, name)
    return request


def option_of(kind: type, field: str) -> str:
    """Return the option that says a field of a type of requests, such as "--time-limit"."""
    return next(option.name for place, option in _fields(kind) if place == (field,))


@cache
def _fields(kind: Any) -> tuple[tuple[tuple[str, ...], Option], ...]:
    """Return the options of a type of requests, each behind the names that lead to its field."""
    found: list[tuple[tuple[str, ...], Option]] = []
    for name, hint in get_type_hints(kind, include_extras=True).items():
        said = [
            metadata
            for metadata in getattr(hint, "__metadata__", ())
            if isinstance(metadata, Option)
        ]
        if not said and (is_dataclass(hint) or hasattr(hint, "__struct_fields__")):
            found += (((name, *place), option) for place, option in _fields(hint))
            continue
        option = said[0] if said else Option("--" + name.replace("_", "-"))
        if option.name:
            found.append(((name,), option))
    return tuple(found)
