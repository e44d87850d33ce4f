"""What a repair by shifts says of itself in `repair.json`: the section `shifts` of its `details`.

docs/shifts.md says what each figure means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from edgeflare.record.json_types import Amount, Count, CountFromOne, Number, Share
from edgeflare.statistics.bootstrap import Estimate

NOTE: Final = "edgeflare.repair"
"""Key of the metadata entry of a file with shifts: name and sha256 of the model before, as JSON."""

PERCEPTRON: Final = "perceptron"
ABSTAINING: Final = "perceptron-abstaining"
SECOND: Final = "second-class"
MIXTURE_ONLY: Final = "shifts-mixture-only"
SHIFTS: Final = "shifts"

REPAIRERS: Final[Mapping[str, str]] = {
    PERCEPTRON: "the paper's perceptron",
    ABSTAINING: "perceptron, abstaining",
    SECOND: "second class, always",
    MIXTURE_ONLY: "shifts, mixture only",
    SHIFTS: "shifts (the default)",
}
"""The repairers that are compared, in words, in the order in which they are shown."""

MOST_STEPS: Final = 48
"""Steps of the largest shift. Beyond 64, S p could reach -1, and a probability become negative; see
`shifts`."""

RepairerName = Annotated[str, msgspec.Meta(pattern=f"^({'|'.join(REPAIRERS)})$")]
"""One of `REPAIRERS`."""


class JudgedRepairer(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a repairer on held-out inputs, averaged over all splits.

    Counts are for one fold, as in the paper's Table 7 (§5.5.2).

    Attributes:
        repair_count: triggers that no longer deviate.
        repair_ratio: share of the triggers that no longer deviate.
        inducing_count: seeds that begin to deviate.
        inducing_ratio: share of the seeds that begin to deviate.
        improvement_count: `repair_count` less `inducing_count`.
        improvement_ratio: `repair_ratio` less `inducing_ratio`; negative where deviations rise.
        induced_agreeing: share of the matched agreeing inputs that begin to deviate.
        unguided_mended: inputs as they come that no longer deviate; they are sampled near the
            boundary by a search that the original does not lead.
        unguided_broken: inputs as they come that begin to deviate.
        unguided_ratio: deviations among them after for each before; null where there were none.
        net: the fall of deviations over the mixture, a third each of triggers, agreeing inputs and
            seeds, as a share of it.

    """

    repair_count: Amount
    repair_ratio: Share
    inducing_count: Amount
    inducing_ratio: Share
    improvement_count: Number
    improvement_ratio: Number
    induced_agreeing: Share
    unguided_mended: Amount
    unguided_broken: Amount
    unguided_ratio: Amount | None
    net: Estimate


JudgedRepairers = Annotated[
    Mapping[RepairerName, JudgedRepairer], msgspec.Meta(min_length=len(REPAIRERS))
]
"""All repairers, by name."""


class ShiftInputs(msgspec.Struct, frozen=True, kw_only=True):
    """How many inputs of each kind shifts are fitted to.

    Attributes:
        triggers: the run's, from the seeds to fit with.
        seeds: those of the triggers.
        not_reproduced: triggers that are left out, since they do not deviate now.
        rounds: searches from each seed for inputs near the boundary.
        near_boundary_agreeing: inputs near the boundary that do not deviate.
        near_boundary_deviating: inputs near the boundary that do.
        unguided: inputs as they come.
        unguided_deviating: inputs as they come that deviate.
        matched_share: share of the triggers that have an agreeing input like them.

    """

    triggers: Count
    seeds: Count
    not_reproduced: Count
    rounds: CountFromOne
    near_boundary_agreeing: Count
    near_boundary_deviating: Count
    unguided: Count
    unguided_deviating: Count
    matched_share: Share


class ShiftQueries(msgspec.Struct, frozen=True):
    """How many inputs original and device were asked about.

    Attributes:
        known: the run's own.
        near_boundary: those that searches made near the boundary.

    """

    known: Count
    near_boundary: Count


class MovedBoundary(msgspec.Struct, frozen=True):
    """The shift of the boundary between two classes.

    Attributes:
        classes: the two.
        steps: multiples of the step, in favour of the first.

    """

    classes: tuple[Count, Count]
    steps: Annotated[int, msgspec.Meta(ge=-MOST_STEPS, le=MOST_STEPS)]


class FoundShifts(msgspec.Struct, frozen=True, kw_only=True):
    """Shifts that are fitted to everything.

    Attributes:
        strength: standard deviations that a shift had to gain; null where none gained anything.
        step: what a shift is a multiple of.
        pairs: those that are not zero.

    """

    strength: Amount | None
    step: Number
    pairs: tuple[MovedBoundary, ...]


class StandaloneShifts(msgspec.Struct, frozen=True):
    """The shifts without the model, for one that cannot be edited.

    Attributes:
        file: name beside the repaired model.
        sha256: digest of the file.
        size_bytes: size of the file.

    """

    file: str
    sha256: str
    size_bytes: Count


class ShiftDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What a repair by shifts says of itself.

    Attributes:
        inputs: what shifts are fitted to.
        queries: what that took.
        folds: parts of the seeds in the cross-validation.
        splits: how often the seeds are divided into folds.
        repairers: what each does on held-out folds, by name.
        ceiling: the largest net that shifts reach on the inputs that they are fitted to.
        shifts: fitted to everything.
        alone: the shifts without the model; null where shifts are no candidate.

    """

    inputs: ShiftInputs
    queries: ShiftQueries
    folds: CountFromOne
    splits: CountFromOne
    repairers: JudgedRepairers
    ceiling: Number
    shifts: FoundShifts
    alone: StandaloneShifts | None
