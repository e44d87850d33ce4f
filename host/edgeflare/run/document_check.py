"""A `run.json` that somebody hands over: held to its schema, and to what a schema cannot say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgeflare.errors import UserError
from edgeflare.run.json_file import Schema, load_json, packaged_schema, parse_json

LISTS = ("deviating_seeds", "findings", "flaky", "unverified")


def read_document(path: Path) -> dict[str, Any]:
    """Return the document in a file.

    Raises:
        UserError: the file cannot be read or is damaged; names it, and the place in it.

    """
    return _consistent(load_json(path, _schema()), path)


def check_document(document: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return a document that was derived from a journal, held to all that one in a file is held to.

    Args:
        document: as `build_document` returns it.
        path: the journal.

    Raises:
        UserError: the journal is damaged; names it, and the place in the document.

    """
    return _consistent(parse_json(json.dumps(document).encode(), path, _schema()), path)


def _schema() -> Schema:
    return packaged_schema("edgeflare.run", "run.schema.json")


def _consistent(document: dict[str, Any], path: Path) -> dict[str, Any]:
    for wrong in _inconsistencies(document):
        raise UserError(f"{path} is damaged: {wrong}")
    return document


def _inconsistencies(document: dict[str, Any]) -> Iterator[str]:
    """Yield what contradicts itself, each with its place."""
    devices = {device["name"] for device in document["devices"]}
    replay = document.get("replay")
    lists = {key: document[key] for key in LISTS}
    if replay is not None:
        lists["replay.mended"] = replay["mended"]
    for key, entries in lists.items():
        for n, entry in enumerate(entries):
            yield from _wrong_entry(f"{key}[{n}]", entry, devices)
    totals = document["totals"]
    if totals["deviating_seeds"] + totals["searched"] > totals["seeds"]:
        yield "totals has fewer seeds than searched and deviating_seeds together"
    if replay is not None:
        known = {entry["seed_id"] for entries in lists.values() for entry in entries}
        for key in ("new", "deviating_seeds"):
            for n, seed_id in enumerate(replay[key]):
                if seed_id not in known:
                    yield f"replay.{key}[{n}] is {seed_id}, but no entry has this seed_id"


def _wrong_entry(place: str, entry: dict[str, Any], devices: set[str]) -> Iterator[str]:
    if entry["device"] not in devices:
        yield f"{place}.device is {entry['device']!r}, but devices has none of this name"
    for arm, label in entry["labels"].items():
        classes = len(entry["probabilities"].get(arm, ()))
        if label is not None and label >= classes:
            yield f"{place}.labels.{arm} is {label}, but {arm} has {classes} probabilities"
