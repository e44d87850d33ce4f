"""What an inspection found: scores from the held-out half, levels, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from edgeflare.diagnose.inspect.behaviour_block import InspectedUnit, UnitLayer
from edgeflare.diagnose.inspect.error_shares import ShareInterval
from edgeflare.diagnose.inspect.unit_measures import Measure

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
        unit: the unit; None for a regression over all units.
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
        unit: the unit that it is about; None under `none`.
        share: share of the unit on the held-out half; None under `none`.
        level: share that chance reaches; None under `none`.

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
