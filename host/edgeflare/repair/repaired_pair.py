"""The folder of a repaired model, which is a pair to be searched."""

from __future__ import annotations

import json
from pathlib import Path

from edgeflare.models.pair import Pair
from edgeflare.models.pair_file import FILE, is_callable_module
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.path_inside import path_inside
from edgeflare.repair.repair_candidate import RepairCandidate
from edgeflare.repair.repair_document import RepairDocument, repair_bytes
from edgeflare.run.run_directory import REPAIR_DOCUMENT
from edgeflare.untrusted_text import for_json

MODEL = "repaired.tflite"

RECIPE = "recipe.json"
"""What the quantizer made the model by, where it did."""


def write_document(out: Path, document: RepairDocument) -> None:
    """Write `repair.json` into a folder, which is made if it is not there."""
    write_atomically(out / REPAIR_DOCUMENT, repair_bytes(document))


def write_repaired(out: Path, candidate: RepairCandidate) -> None:
    """Write a repaired model into a folder, made if it is not there, and what belongs beside it."""
    write_atomically(out / MODEL, candidate.content)
    for name, content in candidate.files.items():
        write_atomically(path_inside(out, name, single=True), content)
    if candidate.recipe is not None:
        text = for_json(json.dumps(candidate.recipe, indent=1, ensure_ascii=False))
        write_atomically(out / RECIPE, text.encode() + b"\n")


def write_pair(out: Path, pair: Pair, seeds: Path) -> None:
    """Write a `pair.toml` beside the repaired model, so that the folder is a pair to search.

    It can be searched from any folder: a path that was relative becomes absolute.
    """
    original = pair.original
    if original is not None and not is_callable_module(original):
        original = str(Path(original).expanduser().absolute())
    interface = pair.interface.described()
    outputs, preprocess = interface.outputs, interface.preprocess or {}
    lines = [
        f"name = {_toml(pair.name + '-repaired')}",
        f"original = {_toml(original)}",
        f"compressed = {_toml(MODEL)}",
        f"seeds = {_toml(str(seeds.absolute()))}",
        *([f"classes = {_toml(pair.classes)}"] if pair.classes else []),
        *([f"outputs = {_toml(outputs)}"] if outputs else []),
        "",
        "[preprocess]",
        *(f"{key} = {_toml(value)}" for key, value in preprocess.items()),
    ]
    write_atomically(out / FILE, ("\n".join(lines) + "\n").encode())


def _toml(value: object) -> str:
    """Return a text, a number, or a list of them as TOML, which is the same as JSON for these."""
    return for_json(json.dumps(value, ensure_ascii=False))
