"""What an inspection found, and its document: `inspect.json`, schema `edgeflare.inspect/v1`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from edgeflare.diagnose.inspect.behaviour_block import InspectedUnit, UnitLayer
from edgeflare.diagnose.inspect.error_shares import ShareInterval
from edgeflare.diagnose.inspect.unit_measures import Measure
from edgeflare.record.document_reader import DocumentReader
from edgeflare.record.json_file import json_bytes
from edgeflare.record.json_types import Count, CountFromOne
from edgeflare_protos import __version__

Ending = Literal["precise", "full", "inputs"]
"""Why no more inputs were taken: what the verdict rests on is precise enough, as many are kept as
there may be, or there were no more."""


@dataclass(frozen=True, slots=True)
class BestScore:
    """The unit that was best on one half, and its score on the other.

    Attributes:
        behaviour: behaviour of the units.
        measure: measure by which it was chosen and scored.
        hypothesis: hypothesis that it was held against.
        unit: the unit; null for a regression over all units.
        score: score on the held-out half.
        low: lower limit of its 95 % interval.
        high: upper limit.
        beyond: whether the score reaches the level, to the side on which it was chosen; where it
            does not, it is nothing.

    """

    behaviour: str
    measure: Measure
    hypothesis: str
    unit: InspectedUnit | None
    score: float
    low: float
    high: float
    beyond: bool


@dataclass(frozen=True, slots=True)
class RankedUnit:
    """A unit in a list of the best, by its order on one half.

    Attributes:
        unit: the unit.
        score: on the held-out half.
        low: lower limit of its 95 % interval.
        high: upper limit.

    """

    unit: InspectedUnit
    score: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class LayerScore:
    """One cell of the strip per layer; all figures are of the held-out half.

    Attributes:
        aucs: AUC for `deviates` of the unit that was best on the other half, by behaviour.
        share: share of the margin's error of all units of the layer together; None without
            `error-gradient`, as all that follows.
        top_channel: the channel with the greatest share on the other half.
        top_share: share of the top channel.
        summed_auc: the AUC for `deviates` of the sum of the contributions.

    """

    aucs: Mapping[str, float]
    share: float | None = None
    top_channel: int | None = None
    top_share: float | None = None
    summed_auc: float | None = None


@dataclass(frozen=True, slots=True)
class InspectionVerdict:
    """Whether one channel has the margin's error.

    Attributes:
        name: `channel`: one has a large part of it; `diffuse`: none has; `nothing`: no unit has
            more than chance gives; `none`: not asked, without `error-gradient`.
        sentence: the verdict for people.
        unit: the unit that it is about; null under `none`.
        share: share of the unit on the held-out half; null under `none`.
        level: share that chance reaches; null under `none`.

    """

    name: Literal["channel", "diffuse", "nothing", "none"]
    sentence: str
    unit: InspectedUnit | None = None
    share: ShareInterval | None = None
    level: float | None = None


@dataclass(frozen=True, slots=True)
class InspectionResult:
    """What an inspection found.

    Attributes:
        layers: inspected layers.
        inputs: number of inputs used.
        halves: number of those to choose units on, and of those held out.
        groups: number of groups of inputs, in the same two halves.
        ended: why there were no more.
        precision: the precision asked for.
        permutations: number of permutations that levels come from.
        behaviours: names of the units' behaviours.
        hypotheses: names of those that were tried.
        constant: names of built-in hypotheses that were the same for all inputs of a half.
        levels: what the best score has to reach, by behaviour and measure; of an AUC the upper of
            two levels that lie evenly about one half.
        best: best score for each behaviour, measure and hypothesis.
        layer_scores: scores of each layer.
        top_units: best units, 20 at most by each of `share` and the behaviours' AUC for `deviates`.
        verdict: verdict on the margin's error.

    """

    layers: tuple[UnitLayer, ...]
    inputs: int
    halves: tuple[int, int]
    groups: tuple[int, int]
    ended: Ending
    precision: float
    permutations: int
    behaviours: tuple[str, ...]
    hypotheses: tuple[str, ...]
    constant: tuple[str, ...]
    levels: Mapping[tuple[str, str], float]
    best: tuple[BestScore, ...]
    layer_scores: tuple[LayerScore, ...]
    top_units: Mapping[str, tuple[RankedUnit, ...]]
    verdict: InspectionVerdict


INSPECTION: Final = "inspect.json"
"""Name of the document in the run directory."""


class InspectedLayer(msgspec.Struct, frozen=True, kw_only=True):
    """A layer; its figures are of the held-out half, and null where they were not asked for.

    Attributes:
        name: name of the operator.
        operator_index: position in the compressed model.
        channels: how many units it has.
        aucs: AUC for deviates of the layer's best unit, by behaviour.
        share: share of the margin's error of all units together.
        top_channel: the channel with the greatest share on the other half.
        top_share: share of the top channel.
        summed_auc: the AUC for deviates of the sum of the contributions.

    """

    name: str
    operator_index: Count
    channels: CountFromOne
    aucs: Mapping[str, float]
    share: float | None
    top_channel: Count | None
    top_share: float | None
    summed_auc: float | None

    def __str__(self) -> str:
        return f"{self.operator_index} {self.name}"

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
