"""The types of a document and its published schema say the same, key by key."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import msgspec
import pytest

from edgeflare.run.run_document import RunDocument

Schema = Mapping[str, Any]

PUBLISHED: Schema = json.loads((files("edgeflare.run") / "run.schema.json").read_bytes())
TYPED: Schema = msgspec.json.schema(RunDocument)


def resolved(part: Schema, whole: Schema) -> Schema:
    """A part of a schema, with what it refers to in its place."""
    if "$ref" not in part:
        return part
    found: Any = whole
    for key in part["$ref"].removeprefix("#/").split("/"):
        found = found[key]
    return resolved(found, whole)


def alternatives(part: Schema, whole: Schema) -> list[Schema]:
    part = resolved(part, whole)
    return [resolved(one, whole) for one in part.get("anyOf", [part])]


def kinds(part: Schema, whole: Schema) -> set[str]:
    """The types of JSON that a schema allows; those of none are all."""
    found: set[str] = set()
    for one in alternatives(part, whole):
        values = one.get("enum", [one["const"]] if "const" in one else [])
        if values:
            found |= {"null" if value is None else "string" for value in values}
        else:
            told = one.get("type", [])
            found |= {told} if isinstance(told, str) else set(told)
    return found - {"integer"} if "number" in found else found


def of_kind(part: Schema, kind: str, whole: Schema) -> Schema:
    """What a schema says of values of one type."""
    return next(one for one in alternatives(part, whole) if kind in kinds(one, whole))


def differences(published: Schema, typed: Schema, place: str = "run") -> Iterator[str]:
    """Yield where the two do not say the same; a map whose values are anything is not gone into."""
    allowed, held = kinds(published, PUBLISHED), kinds(typed, TYPED)
    if allowed != held:
        yield f"{place}: {sorted(allowed)} published, {sorted(held)} typed"
    elif "array" in held:
        one, other = of_kind(published, "array", PUBLISHED), of_kind(typed, "array", TYPED)
        yield from differences(one["items"], other["items"], f"{place}[]")
    elif len(held_forms := _objects(typed, TYPED)) > 1:
        published_forms = _objects(published, PUBLISHED)
        if published_forms.keys() != held_forms.keys():
            yield f"{place}: forms {sorted(published_forms)} and {sorted(held_forms)}"
        for form in published_forms.keys() & held_forms.keys():
            yield from _of_objects(published_forms[form], held_forms[form], f"{place}.{form}")
    elif "object" in held:
        one, other = of_kind(published, "object", PUBLISHED), of_kind(typed, "object", TYPED)
        if "properties" in other:
            yield from _of_objects(one, other, place)
        elif isinstance(other.get("additionalProperties"), Mapping):
            yield from _of_maps(one, other["additionalProperties"], place)


def _objects(part: Schema, whole: Schema) -> dict[str, Schema]:
    """The objects that may stand in one place, by the constant that tells them apart."""
    found = [one for one in alternatives(part, whole) if "object" in kinds(one, whole)]
    if len(found) < 2:
        return {str(n): one for n, one in enumerate(found)}
    tags = [one["properties"]["form"] for one in found]
    forms = [tag.get("const") or tag["enum"][0] for tag in tags]
    return dict(zip(forms, found, strict=True))


def _of_objects(published: Schema, typed: Schema, place: str) -> Iterator[str]:
    keys, fields = published["properties"], typed["properties"]
    for key in keys.keys() ^ fields.keys():
        yield f"{place}.{key} is only {'published' if key in keys else 'typed'}"
    required = set(published.get("required", ())) ^ set(typed.get("required", ()))
    for key in required:
        yield f"{place}.{key} is required by one of them"
    if published.get("additionalProperties") is not False:
        yield f"{place} may have further keys, which its type has not"
    for key in keys.keys() & fields.keys():
        told = fields[key]
        optional = "default" in told and "null" not in kinds(keys[key], PUBLISHED)
        if optional:  # None stands for a key that is absent
            told = {"anyOf": [one for one in told["anyOf"] if one.get("type") != "null"]}
        yield from differences(keys[key], told, f"{place}.{key}")


def _of_maps(published: Schema, values: Schema, place: str) -> Iterator[str]:
    """Yield how the values of a map differ, whose keys the schema may name."""
    named = list(published.get("properties", {}).items())
    if isinstance(published.get("additionalProperties"), Mapping):
        named.append(("*", published["additionalProperties"]))
    for key, part in named:
        yield from differences(part, values, f"{place}.{key}")


def test_the_types_are_those_of_the_schema() -> None:
    assert list(differences(PUBLISHED, TYPED)) == []


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (("properties", "totals", "properties", "seeds"), {"type": "string"}),
        (("$defs", "finding", "properties"), {"another": {"type": "string"}}),
        (("$defs", "finding"), {"required": ["seed_id"]}),
        (("$defs", "answer", "anyOf", 2, "properties", "size"), {"type": "string"}),
        (("$defs", "answer", "anyOf", 0, "properties", "form"), {"const": "other"}),
        (("$defs", "readings", "additionalProperties", "properties", "min"), {"type": "null"}),
    ],
)
def test_a_schema_that_says_otherwise_is_noticed(
    place: tuple[Any, ...], change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = json.loads(json.dumps(PUBLISHED))
    at = changed
    for key in place:
        at = at[key]
    at |= change
    monkeypatch.setitem(globals(), "PUBLISHED", changed)
    assert list(differences(changed, TYPED))
