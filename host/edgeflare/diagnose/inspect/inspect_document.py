"""An inspection as a document: `inspect.json`, schema `edgeflare.inspect/v1`.

`inspect.schema.json` beside this file describes it.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from edgeflare import __version__
from edgeflare.diagnose.inspect.inspection_result import InspectionResult
from edgeflare.errors import UserError
from edgeflare.record.json_file import json_bytes, load_json, packaged_schema

SCHEMA: Final = "edgeflare.inspect/v1"
INSPECTION: Final = "inspect.json"
"""Its name in the run directory."""

InspectDocument = dict[str, Any]
"""An inspection as plain JSON values."""


def inspect_document(result: InspectionResult) -> InspectDocument:
    """Return a result as plain JSON values; limits and scores are rounded to six digits."""
    levels: dict[str, dict[str, float]] = {}
    for (behaviour, measure), level in result.levels.items():
        levels.setdefault(behaviour, {})[measure] = level
    layers = [
        asdict(layer) | asdict(scores)
        for layer, scores in zip(result.layers, result.layer_scores, strict=True)
    ]
    document = {
        "schema": SCHEMA,
        "edgeflare": __version__,
        "inputs": result.inputs,
        "halves": list(result.halves),
        "groups": list(result.groups),
        "ended": result.ended,
        "precision": result.precision,
        "permutations": result.permutations,
        "behaviours": list(result.behaviours),
        "hypotheses": list(result.hypotheses),
        "constant": list(result.constant),
        "levels": levels,
        "best": [asdict(one) for one in result.best],
        "layers": layers,
        "top_units": {
            name: [asdict(one) for one in ranked] for name, ranked in result.top_units.items()
        },
        "verdict": asdict(result.verdict),
    }
    rounded: InspectDocument = _rounded(document)
    return rounded


def inspect_bytes(document: InspectDocument) -> bytes:
    """Return a document as it is written."""
    return json_bytes(document)


def load_inspection(path: Path) -> InspectDocument:
    """Return a document that was written.

    Raises:
        UserError: it cannot be read, is damaged, or of another schema.

    """
    document = load_json(path, packaged_schema("edgeflare.diagnose.inspect", "inspect.schema.json"))
    if reason := _unlike_itself(document):
        raise UserError(f"{path} is damaged: {reason}")
    return document


def _unlike_itself(document: InspectDocument) -> str:
    """Say what of a document contradicts another part of it; empty where nothing does."""
    layers, verdict = document["layers"], document["verdict"]
    ranked = [one for some in document["top_units"].values() for one in some]
    units = [one["unit"] for one in (*document["best"], *ranked, verdict) if one["unit"]]
    for unit in units:
        if unit["layer"] >= len(layers):
            return f"a unit is of layer {unit['layer']}, but layers has {len(layers)}"
    if any(_known_of(layer) != _known_of(layers[0]) for layer in layers):
        return "what is known of one layer is not known of another"
    if verdict["name"] == "channel" and verdict["unit"] is None:
        return "the verdict is about a channel, and names none"
    return ""


def _known_of(layer: InspectDocument) -> frozenset[str]:
    """Return which figures are known of a layer."""
    named = ("share", "top_channel", "top_share", "summed_auc")
    return frozenset(name for name in named if layer[name] is not None) | set(layer["aucs"])


def _rounded(value: Any) -> Any:
    """Return a value with its numbers rounded to six digits after the point."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value
