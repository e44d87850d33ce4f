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
        behaviour: of the units.
        measure: by which it was chosen and scored.
        hypothesis: that it was held against.
        unit: the unit; None for a regression over all units.
        score: on the held-out half.
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
        aucs: by behaviour the AUC for `deviates` of the unit that was best on the other half.
        share: of the margin's error, of all units of the layer together; None without
            `error-gradient`, as all that follows.
        top_channel: the channel with the greatest share on the other half.
        top_share: its share.
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
        sentence: for people.
        unit: the unit that it is about; None under `none`.
        share: its share on the held-out half; None under `none`.
        level: that shares reach by chance; None under `none`.

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
        layers: that were inspected.
        inputs: that were used.
        halves: of them, those to choose units on, and those that were held out.
        groups: of inputs, in the same two halves.
        ended: why there were no more.
        precision: that was asked for.
        permutations: from which levels come.
        behaviours: of the units.
        hypotheses: names of those that were tried.
        constant: names of built-in hypotheses that were the same for all inputs of a half.
        levels: by behaviour and measure, what the best score has to reach; of an AUC the upper of
            two levels that lie evenly about one half.
        best: for each behaviour, measure and hypothesis.
        layer_scores: for each layer.
        top_units: at most 20 units by each of `share` and the behaviours' AUC for `deviates`.
        verdict: on the margin's error.

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
