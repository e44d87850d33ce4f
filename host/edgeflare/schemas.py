"""The JSON Schemas that are written from the types of documents, beside them: `make schemas`.

Other programs, and the readers of these documents, use the files; no command imports this module.

Such a document is a `msgspec.Struct`. Its docstring describes the object and, under *Attributes*,
each key; what a value may be is its annotation, with limits by `msgspec.Meta`. `make schemas`
writes the schemas beside the types, for other programs and for `load_json`.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from edgeflare.conform.kernel_table import KernelTable
from edgeflare.conform.record.conform_document import ConformDocument
from edgeflare.conform.version_table import VersionDocument
from edgeflare.diagnose.explain_document import ExplainDocument
from edgeflare.diagnose.inspect.inspect_document import InspectDocument
from edgeflare.diagnose.layers.layers_document import LayersDocument
from edgeflare.fleet.record.fleet_state import FleetState
from edgeflare.matrix.conform_matrix import ConformMatrixDocument, RetryMatrixDocument
from edgeflare.matrix.matrix_document import MatrixDocument
from edgeflare.rank.rank_document import RankDocument
from edgeflare.record.json_types import text_schema
from edgeflare.release.check_document import CheckDocument
from edgeflare.repair.repair_document import RepairDocument
from edgeflare.run.run_document import RunDocument
from edgeflare.survey.record.survey_document import SurveyDocument

_DOCUMENTS: tuple[tuple[str, str, tuple[type[msgspec.Struct], ...]], ...] = (
    ("edgeflare.release", "check", (CheckDocument,)),
    ("edgeflare.conform", "kernels", (KernelTable,)),
    ("edgeflare.conform", "versions", (VersionDocument,)),
    ("edgeflare.conform.record", "conform", (ConformDocument,)),
    ("edgeflare.diagnose", "explain", (ExplainDocument,)),
    ("edgeflare.diagnose.inspect", "inspect", (InspectDocument,)),
    ("edgeflare.diagnose.layers", "layers", (LayersDocument,)),
    ("edgeflare.fleet.record", "fleet", (FleetState,)),
    ("edgeflare.matrix", "matrix", (MatrixDocument, ConformMatrixDocument, RetryMatrixDocument)),
    ("edgeflare.rank", "rank", (RankDocument,)),
    ("edgeflare.repair", "repair", (RepairDocument,)),
    ("edgeflare.run", "run", (RunDocument,)),
    ("edgeflare.survey.record", "survey", (SurveyDocument,)),
)
"""The package of each document, its name, and its type, or those of its kinds."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_ENTRY = re.compile(r"    ((?:\w+, )*\w+): (.*)")
"""The first line of what a docstring says of one or more attributes."""

_NULL = {"type": "null"}


def schemas() -> Iterator[tuple[Path, str]]:
    """Yield the file of each schema, and what belongs into it."""
    for package, name, documents in _DOCUMENTS:
        path = Path(str(files(package) / f"{name}.schema.json"))
        yield path, json.dumps(schema_of(*documents), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write them."""
    for path, text in schemas():
        path.write_text(text, encoding="utf-8")


def schema_of(*documents: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a document, or of those of several kinds under one name.

    Objects have no further keys. A key is absent, and never null, where a type that omits its
    defaults has None for it; one whose default is UNSET may be either.

    Args:
        documents: their types, tagged with the name of the schema under the key `schema`.

    """
    _, parts = msgspec.json.schema_components(
        documents, ref_template="#/$defs/{name}", schema_hook=text_schema
    )
    types: dict[type, None] = {}
    for document in documents:
        _types(msgspec.inspect.type_info(document), types)
    kinds = {type_.__name__: type_ for type_ in types}
    described = {
        name: _object(kinds[name], part)
        if name in kinds
        else {"description": part["description"], "enum": part["enum"]}
        for name, part in parts.items()
    }
    roots = [described.pop(document.__name__) for document in documents]
    roots = [{"title": root.pop("description").removesuffix("."), **root} for root in roots]
    whole: dict[str, Any] = roots[0] if len(roots) == 1 else {"oneOf": roots}
    schema = {"$schema": _DIALECT, "$id": documents[0].__struct_config__.tag, **whole}
    return schema | ({"$defs": described} if described else {})


def _types(info: Any, known: dict[type, None]) -> dict[type, None]:
    """Return the structs and dataclasses that a type is made of."""
    if isinstance(info, msgspec.inspect.StructType | msgspec.inspect.DataclassType):
        if info.cls in known:
            return known
        known[info.cls] = None
    parts = getattr(info, "types", ()) or getattr(info, "item_types", ())
    fields = (field.type for field in getattr(info, "fields", ()))
    inner = (getattr(info, name, None) for name in ("item_type", "value_type", "type"))
    for part in (*parts, *fields, *inner):
        if isinstance(part, msgspec.inspect.Type):
            _types(part, known)
    return known


def _object(kind: type, part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object, each key with what the docstring says of it."""
    said: dict[str, str] = {}
    for class_ in reversed(kind.__mro__):
        summary, attributes = _docstring(class_.__doc__ or "")
        said |= attributes
    config = getattr(kind, "__struct_config__", None)
    omits = config is not None and config.omit_defaults
    # A key whose default is made anew is written always; one whose default is UNSET is not.
    made = {
        field.encode_name
        for field in msgspec.inspect.type_info(kind).fields  # type: ignore[attr-defined]
        if field.default_factory is not msgspec.NODEFAULT
    }
    absent = {
        key
        for key, value in part["properties"].items()
        if key not in part["required"] and (omits or ("default" not in value and key not in made))
    }
    properties = {
        key: _value(value, nullable=key not in absent or "default" not in value)
        | ({"description": said[key]} if key in said else {})
        for key, value in part["properties"].items()
    }
    return {
        "description": summary,
        "type": "object",
        "additionalProperties": False,
        "required": [key for key in properties if key not in absent],
        "properties": properties,
    }


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return what a docstring says of a type in general, and of its attributes by name."""
    general, _, section = inspect.cleandoc(text).partition("\nAttributes:\n")
    said: dict[str, str] = {}
    names: list[str] = []
    for line in section.partition("\n\n")[0].splitlines():
        if entry := _ENTRY.fullmatch(line):
            names = entry[1].split(", ")
            said |= dict.fromkeys(names, entry[2])
        else:
            said |= {name: f"{said[name]} {line.strip()}" for name in names}
    sentences = {name: f"{line[:1].upper()}{line[1:]}" for name, line in said.items()}
    return " ".join(general.split()), sentences


def _value(value: Mapping[str, Any], *, nullable: bool = True) -> dict[str, Any]:
    """Return the schema of a value, in the words that validators of all drafts know."""
    kept = {key: inner for key, inner in value.items() if key not in ("default", "discriminator")}
    if places := kept.pop("prefixItems", None):
        kept["items"] = _joined(places)
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), Mapping):
            kept[key] = _value(kept[key])
    if "anyOf" in kept:
        some = kept.pop("anyOf")
        kept |= _joined(some if nullable else [choice for choice in some if choice != _NULL])
    if len(kept.get("enum", ())) == 1:
        (kept["const"],) = kept.pop("enum")
    return kept


def _joined(alternatives: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one schema for what may be any of some, as plain as it can be said."""
    some = _named_together(_numbers(list(map(_value, alternatives))))
    if len(some) == 1:
        return some[0]
    if len(some) == 2 and _NULL in some:
        (one,) = (each for each in some if each != _NULL)
        if isinstance(one.get("type"), str):
            return {**one, "type": [one["type"], "null"]}
    if all(set(choice) == {"type"} for choice in some):
        return {"type": [choice["type"] for choice in some]}
    return {"anyOf": some}


def _numbers(some: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out what is there twice, and integers where numbers are: each integer is one, too."""
    kept = [choice for at, choice in enumerate(some) if choice not in some[:at]]
    return [
        choice
        for choice in kept
        if choice.get("type") != "integer" or {**choice, "type": "number"} not in kept
    ]


def _named_together(some: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join alternatives that name values into one enumeration, with null where that is one."""
    named = [value for choice in some for value in _enumerated(choice)]
    if not named:
        return some
    null = [None] if _NULL in some else []
    others = [choice for choice in some if not _enumerated(choice) and choice != _NULL]
    return [{"enum": [*dict.fromkeys(named), *null]}, *others]


def _enumerated(choice: Mapping[str, Any]) -> list[Any]:
    return [choice["const"]] if "const" in choice else choice.get("enum", [])


if __name__ == "__main__":
    main()
