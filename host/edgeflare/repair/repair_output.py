"""The folder of a repaired model, which is a pair to be searched."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from edgeflare.models.pair import Pair
from edgeflare.models.pair_file import FILE
from edgeflare.models.pair_toml import pair_toml
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.path_inside import path_inside
from edgeflare.repair.repair_candidate import RepairCandidate
from edgeflare.repair.repair_document import RepairDocument, repair_bytes
from edgeflare.run.run_directory import REPAIR_DOCUMENT
from edgeflare.untrusted_text import for_json

MODEL = "repaired.tflite"

ORIGINAL = "original.tflite"
"""The original, where it was repaired itself."""

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

    It can be searched from any folder: paths are relative to its own where they lie below that, and
    absolute elsewhere.
    """
    text = pair_toml(replace(pair, seeds=seeds), out, f"{pair.name}-repaired", out / MODEL)
    write_atomically(out / FILE, text.encode())
