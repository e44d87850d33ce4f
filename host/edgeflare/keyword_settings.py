"""Classes constructed from a table of settings, such as one of `pair.toml`, checked key by key."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from edgeflare.errors import UserError, suggestion
from edgeflare.record.json_types import JsonValue

Made = TypeVar("Made")


def constructed(made: Callable[..., Made], settings: Mapping[str, JsonValue], where: str) -> Made:
    """Return an instance of a class, constructed with settings as keyword arguments.

    Args:
        made: the class. The annotations of its constructor say of which types the values are; whole
            numbers are taken where numbers are, and lists where tuples are.
        settings: settings by the names of the constructor's arguments.
        where: they stand, for messages, such as "pair.toml: [task]".

    Raises:
        UserError: a key is unknown or missing, or a value is of another type, or the constructor
            refuses it.

    """
    try:
        return made(**checked(made, settings, where))
    except UserError as error:
        said = str(error)
        raise UserError(said if said.startswith(where) else f"{where}: {said}") from None


def checked(
    made: Callable[..., Any], settings: Mapping[str, JsonValue], where: str
) -> dict[str, Any]:
    """Return settings with their values in the types that a constructor's annotations say.

    Raises:
        UserError: a key is unknown or missing, or a value is of another type.

    """
    # The type of each keyword argument of the constructor, and whether it has to be given.
    hints = get_type_hints(vars(made).get("__init__", made) if isinstance(made, type) else made)
    known = {
        name: (hints.get(name, Any), parameter.default is parameter.empty)
        for name, parameter in inspect.signature(made).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    for key in settings:
        if key not in known:
            keys = ", ".join(known) or "none"
            raise UserError(f"{where}: unknown key {key}{suggestion(key, known)}; keys are {keys}")
    if missing := [key for key, (_, needed) in known.items() if needed and key not in settings]:
        are, them = ("are", "them") if len(missing) > 1 else ("is", "it")
        raise UserError(f"{where}: {', '.join(missing)} {are} missing: add {them}")
    values = {}
    for key, value in settings.items():
        try:
            values[key] = msgspec.convert(value, known[key][0])
        except msgspec.ValidationError as error:
            kind = known[key][0]
            why = _choices(kind) or _table_line(kind, where, key) or _in_words_of_toml(str(error))
            raise UserError(f"{where}: {key} is {value!r}: {why}") from None
    return values


def _choices(annotation: Any) -> str:
    """Return what a value may be where that is one of a few; empty elsewhere."""
    inner = [arg for arg in get_args(annotation) if get_origin(arg) is Literal]
    literal = inner[0] if inner else annotation
    if get_origin(literal) is not Literal:
        return ""
    return f"expected {' or '.join(map(repr, get_args(literal)))}"


def _table_line(annotation: Any, where: str, key: str) -> str:
    """Return the line to write above a value that has to be a table; empty for other values."""
    union = get_origin(annotation) in (Union, UnionType)
    kinds = get_args(annotation) if union else (annotation,)
    if not any(get_origin(kind) is Mapping for kind in kinds):
        return ""
    table = where.rpartition("[")[2].removesuffix("]") if where.endswith("]") else ""
    return f"expected a table: write [{table}.{key}] above its keys" if table else ""


def _in_words_of_toml(message: str) -> str:
    """Return a message of msgspec's with TOML's names of types; TOML has no null."""
    lowered = message[:1].lower() + message[1:]
    return lowered.replace("`object", "`table").replace(" | null`", "`")
