"""JSON Schemas of documents: they say what the types and their docstrings say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from jsonschema import Draft202012Validator
from msgspec import UNSET, UnsetType

from edgeflare.errors import UserError
from edgeflare.record.document_reader import DocumentReader
from edgeflare.record.json_file import json_bytes
from edgeflare.record.json_types import Amount, Count, Number
from edgeflare.schemas import schema_of, schemas


class Side(str, Enum):
    """One of two."""

    LEFT = "left"
    RIGHT = "right"


class Inner(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of it.

    Attributes:
        ratio: from 0 to 1.
        left, right: where it ends.
        why: absent where there
            is no reason.
        other: absent, or nothing.

    """

    ratio: Annotated[float, msgspec.Meta(ge=0, le=1)] | None
    left: Number
    right: Number
    why: str | None = None
    other: int | UnsetType | None = UNSET


class Outer(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="a/v1"):
    """What a command wrote. It goes on."""

    parts: tuple[Inner, ...]
    by_name: Mapping[str, Inner | None]
    how: Literal["well", "badly"] | None
    pair: tuple[str, str]
    seconds: Amount
    counts: Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)]
    side: Side


SCHEMA = schema_of(Outer)
INNER = {"ratio": None, "left": 1, "right": 2.5}
WHOLE: dict[str, Any] = {
    "schema": "a/v1", "parts": [INNER], "by_name": {"one": None, "two": INNER}, "how": None,
    "pair": ["a", "b"], "seconds": 0.5, "counts": [0], "side": "left",
}  # fmt: skip


def test_each_key_has_what_the_docstring_says_of_it() -> None:
    assert (SCHEMA["$id"], SCHEMA["title"]) == ("a/v1", "What a command wrote. It goes on")
    inner = SCHEMA["$defs"]["Inner"]
    said = {key: one.get("description") for key, one in inner["properties"].items()}
    assert said == {
        "ratio": "From 0 to 1.",
        "left": "Where it ends.",
        "right": "Where it ends.",
        "why": "Absent where there is no reason.",
        "other": "Absent, or nothing.",
    }
    assert inner["description"] == "A part of it."
    assert inner["required"] == ["ratio", "left", "right"]
    assert SCHEMA["$defs"]["Side"] == {"description": "One of two.", "enum": ["left", "right"]}


@pytest.mark.parametrize(
    ("changed", "valid"),
    [
        ({}, True),
        ({"how": "well"}, True),
        ({"parts": [INNER | {"ratio": 1, "why": "so", "other": None}]}, True),
        ({"seconds": 3}, True),
        ({"how": "so"}, False),
        ({"schema": "a/v2"}, False),
        ({"more": 1}, False),
        ({"parts": [INNER | {"ratio": 1.5}]}, False),
        ({"parts": [INNER | {"why": None}]}, False),
        ({"parts": [{"ratio": None, "left": 1}]}, False),
        ({"by_name": {"one": {}}}, False),
        ({"pair": ["a"]}, False),
        ({"pair": ["a", 1]}, False),
        ({"seconds": -1}, False),
        ({"counts": []}, False),
        ({"counts": [-1]}, False),
        ({"side": "right"}, True),
        ({"side": "middle"}, False),
    ],
)
def test_schema_and_reader_take_what_the_types_take(
    changed: dict[str, Any], valid: bool, tmp_path: Path
) -> None:
    document = WHOLE | changed
    assert Draft202012Validator(SCHEMA).is_valid(document) == valid
    data, path = json_bytes(document), tmp_path / "document.json"
    if valid:
        assert DocumentReader(Outer).check(data, path) == msgspec.convert(document, Outer)
    else:
        with pytest.raises(UserError, match=r"document\.json is"):
            DocumentReader(Outer).check(data, path)


def test_the_schemas_beside_the_types_are_those_of_the_types() -> None:
    """`make schemas` writes them."""
    for path, text in schemas():
        assert path.read_text(encoding="utf-8") == text, path


def test_a_value_that_two_alternatives_have_is_named_once() -> None:
    class Ended(msgspec.Struct, frozen=True):
        """How it ended.

        Attributes:
            by: what ended it.

        """

        by: Literal["user", "time"] | Literal["all", "time"] | None

    assert schema_of(Ended)["properties"]["by"]["enum"] == ["time", "user", "all", None]


def test_the_first_key_of_a_document_that_is_wrong_is_named(tmp_path: Path) -> None:
    more = {"zoo": 1, "ant": 2, "elk": 3}
    for named, extra in (("zoo", more), ("ant", dict(sorted(more.items())))):
        with pytest.raises(UserError, match=f'it has the unknown key "{named}"'):
            DocumentReader(Outer).check(json_bytes(WHOLE | extra), tmp_path / "document.json")


def test_a_default_that_is_left_out_is_no_unknown_key(tmp_path: Path) -> None:
    parts = [INNER | {"why": None}]
    with pytest.raises(UserError, match=r"parts\[0\]\.why is null, which is left out"):
        DocumentReader(Outer).check(json_bytes(WHOLE | {"parts": parts}), tmp_path / "d.json")


UNITS = {
    "seconds": r"\bseconds\b|\bSeconds\b|\bDuration\b|\bmilliseconds\b",
    "bytes": r"\bbytes\b|\bBytes\b|^Size of (the|its|his) (file|arena)|\bmegabytes\b",
    "db": r"\bdB\b|\bdecibel",
    "percent": r"\b[Pp]ercent\b",
    "celsius": r"\bCelsius\b",
    "mhz": r"\bMHz\b",
}
"""What a description of a number in that unit says."""

OF_NO_UNIT = {"ratio", "latency_ratio", "area"}
"""Keys of numbers that are made of others, which their descriptions name."""


def keys() -> list[tuple[str, str, Mapping[str, Any]]]:
    """Each key of each object of a document: the object, the key, and its schema."""
    found = []
    for path, text in schemas():
        schema = json.loads(text)
        objects = [(path.name, root) for root in schema.get("oneOf", [schema])]
        for name, part in (*objects, *schema.get("$defs", {}).items()):
            found += [(name, key, value) for key, value in part.get("properties", {}).items()]
    return found


def holds_numbers(value: Mapping[str, Any]) -> bool:
    kinds = value.get("type", [])
    if {"number", "integer"} & set([kinds] if isinstance(kinds, str) else kinds):
        return True
    inner = [*value.get("anyOf", []), value.get("items"), value.get("additionalProperties")]
    return any(isinstance(part, dict) and holds_numbers(part) for part in inner)


def test_a_key_of_a_number_with_a_unit_ends_in_the_unit() -> None:
    wrong = [
        (name, key, unit)
        for name, key, value in keys()
        if holds_numbers(value) and key not in OF_NO_UNIT
        for unit, said in UNITS.items()
        if re.search(said, value.get("description", "")) and key.split("_")[-1] != unit
    ]
    assert not wrong


def test_no_key_has_another_unit_than_these() -> None:
    others = {
        "ms",
        "msec",
        "sec",
        "secs",
        "s",
        "us",
        "minutes",
        "kb",
        "mb",
        "mib",
        "pct",
        "hz",
        "ghz",
    }
    assert not [(name, key) for name, key, _ in keys() if key.split("_")[-1] in others]


def test_descriptions_speak_of_json() -> None:
    for name, key, value in keys():
        assert not re.search(r"\b(None|True|False|UNSET)\b", value.get("description", "")), (
            name,
            key,
        )


OTHERS_NAMES = {"NaN", "MEAN", "QUANTIZE"}
"""Values that are names of another standard: of floating point, and operators of TFLite."""


def choices(part: object) -> Iterator[object]:
    """Each value that a schema names for a key."""
    if isinstance(part, dict):
        yield from part.get("enum", ())
        for inner in part.values():
            yield from choices(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from choices(inner)


def test_a_value_that_is_one_of_several_is_lower_case_words_with_hyphens() -> None:
    found = {value for _, text in schemas() for value in choices(json.loads(text))}
    assert found > OTHERS_NAMES
    wrong = {
        value
        for value in found - OTHERS_NAMES - {None}
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", str(value))
    }
    assert not wrong


def test_what_stops_a_command_or_becomes_of_a_gate_has_one_word_in_all_documents() -> None:
    found: dict[str, set[object]] = {"stopped_by": set(), "gates": set()}
    for name, key, value in keys():
        if key == "stopped_by":
            found["stopped_by"] |= set(choices(value))
        if key == "state" and name in ("CheckGate", "DescribedGate"):
            found["gates"] |= set(choices(value))
    assert found == {
        "gates": {"pass", "fail", "open", "not-checked"},
        "stopped_by": {
            *("interrupt", "sigterm", "killed", "infrastructure", "error", "merge", "screening"),
            *("time-limit", "device-queries", "precision", "gates", "all-items"),
            *("models", "nothing-left", None),
        },
    }
