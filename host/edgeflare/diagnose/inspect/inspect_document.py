"""An inspection as a document: `inspect.json`, schema `edgeflare.inspect/v1`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from edgeflare import __version__
from edgeflare.diagnose.inspect.inspection_result import (
    BestScore,
    Ending,
    InspectionResult,
    InspectionVerdict,
    RankedUnit,
)
from edgeflare.record.document_reader import DocumentReader
from edgeflare.record.json_file import json_bytes
from edgeflare.record.json_types import Count, CountFromOne

INSPECTION: Final = "inspect.json"
"""Name of the document in the run directory."""


class InspectedLayer(msgspec.Struct, frozen=True, kw_only=True):
    """A layer; its figures are of the held-out half, and null where they were not asked for.

    Attributes:
        name: name of the operator.
        operator: position in the compressed model.
        channels: how many units it has.
        aucs: AUC for deviates of the layer's best unit, by behaviour.
        share: share of the margin's error of all units together.
        top_channel: the channel with the greatest share on the other half.
        top_share: share of the top channel.
        summed_auc: the AUC for deviates of the sum of the contributions.

    """

    name: str
    operator: Count
    channels: CountFromOne
    aucs: Mapping[str, float]
    share: float | None
    top_channel: Count | None
    top_share: float | None
    summed_auc: float | None

    def __str__(self) -> str:
        return f"{self.operator} {self.name}"

    @property
    def known(self) -> frozenset[str]:
        """The names of the figures that are known of it."""
        named = ("share", "top_channel", "top_share", "summed_auc")
        return frozenset(name for name in named if getattr(self, name) is not None) | set(self.aucs)


class InspectDocument(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="edgeflare.inspect/v1"
):
    """Which hidden units of a compressed model foretell what.

    Attributes:
        edgeflare: version that wrote the document.
        inputs: number of inputs used.
        halves: number of those to choose units on, and of those held out.
        groups: number of groups of inputs, in the same two halves; one lies wholly in one half.
        ended: why no more inputs were taken: precise enough, as many kept as there may be, or no
            more there.
        precision: half the width of a 95 % interval that was precise enough.
        permutations: number of permutations that levels come from.
        behaviours: names of the units' behaviours.
        hypotheses: those that were tried.
        constant: built-in hypotheses that were left out, since they were the same for all inputs of
            a half.
        levels: the 99.9th percentile, over permutations, of the best score of all units and
            hypotheses, by behaviour and measure.
        best: the unit that was best on one half, for each behaviour, measure and hypothesis.
        layers: layers in execution order.
        top_units: the best units by share of the margin's error, and by the AUC for deviates under
            each behaviour; in their order on the other half.
        verdict: verdict on the margin's error.

    """

    edgeflare: str
    inputs: Count
    halves: tuple[Count, Count]
    groups: tuple[Count, Count]
    ended: Ending
    precision: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    permutations: CountFromOne
    behaviours: tuple[str, ...]
    hypotheses: tuple[str, ...]
    constant: tuple[str, ...]
    levels: Mapping[str, Mapping[str, float]]
    best: tuple[BestScore, ...]
    layers: Annotated[tuple[InspectedLayer, ...], msgspec.Meta(min_length=1)]
    top_units: Mapping[str, Annotated[tuple[RankedUnit, ...], msgspec.Meta(max_length=20)]]
    verdict: InspectionVerdict


def inspect_document(result: InspectionResult) -> InspectDocument:
    """Return a result as a document; limits and scores are rounded to six digits."""
    levels: dict[str, dict[str, float]] = {}
    for (behaviour, measure), level in result.levels.items():
        levels.setdefault(behaviour, {})[measure] = level
    layers = [
        asdict(layer) | asdict(scores)
        for layer, scores in zip(result.layers, result.layer_scores, strict=True)
    ]
    fields = asdict(result) | {"edgeflare": __version__, "levels": levels, "layers": layers}
    del fields["layer_scores"]
    return msgspec.convert(_rounded(fields), InspectDocument)


def inspect_bytes(document: InspectDocument) -> bytes:
    """Return a document as it is written."""
    return json_bytes(msgspec.to_builtins(document))


def load_inspection(path: Path) -> InspectDocument:
    """Return a document that was written."""
    return _READER.read(path)


def _contradictions(document: InspectDocument) -> Iterator[str]:
    layers, verdict = document.layers, document.verdict
    ranked = [ranked_unit.unit for some in document.top_units.values() for ranked_unit in some]
    for unit in (*(best.unit for best in document.best), *ranked, verdict.unit):
        if unit is not None and unit.layer >= len(layers):
            yield f"a unit is of layer {unit.layer}, but layers has {len(layers)}"
    if any(layer.known != layers[0].known for layer in layers):
        yield "what is known of one layer is not known of another"
    if verdict.name == "channel" and verdict.unit is None:
        yield "the verdict is about a channel, and names none"


_READER = DocumentReader(InspectDocument, _contradictions)


def _rounded(value: Any) -> Any:
    """Return a value with its numbers rounded to six digits after the point."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: _rounded(number) for key, number in value.items()}
    return [_rounded(element) for element in value] if isinstance(value, list | tuple) else value
