"""The inputs that repairers are trained with and judged by: three kinds, and a sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.repair.shift_details import Mixture
from edgeflare.repair.shifts.boundary_set import BoundarySet
from edgeflare.repair.shifts.fold_assignment import assign_folds, fold_of
from edgeflare.repair.shifts.input_matching import match
from edgeflare.repair.shifts.repair_samples import Labels, Samples, together
from edgeflare.repair.shifts.run_to_repair import RunInputs

Repair = Callable[[Samples], Labels]
"""The labels of a repaired model, given the answers of the model before: (k,)."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TrainingInputs:
    """The inputs of a run that is to be repaired.

    Attributes:
        triggers: the run's triggering inputs.
        seeds: their seeds, in the same order.
        agreeing: near-boundary inputs that do not deviate.
        near_deviating: near-boundary inputs that do; used to train repairers, not to judge them.
        sampled: inputs sampled near the boundary without the original's answers; they deviate as
            often as test images of the same margin.
        mixture: the shares of triggers, agreeing inputs and seeds.

    """

    triggers: Samples
    seeds: Samples
    agreeing: Samples
    near_deviating: Samples
    sampled: Samples
    mixture: Mixture

    @property
    def deviating(self) -> Samples:
        """All deviating inputs: the triggers, then those near the boundary."""
        return together([self.triggers, self.near_deviating])

    def weights(self) -> NDArray[np.float64]:
        """Return weights that give agreeing inputs the distribution of the run's triggers."""
        return match(self.triggers, self.agreeing)

    def folds(self, split: int) -> FoldSplit:
        """Return the fold of each input."""
        assigned = assign_folds(self.seeds.seed_ids, self.seeds.originals, split)
        return FoldSplit(
            *(
                fold_of(part.seed_ids, assigned)
                for part in (
                    self.triggers,
                    self.seeds,
                    self.agreeing,
                    self.near_deviating,
                    self.sampled,
                )
            )
        )

    def part(self, folds: FoldSplit, inside: Callable[[Labels], Mask]) -> TrainingInputs:
        """Return the inputs in the folds for which `inside` is true."""
        return TrainingInputs(
            self.triggers.take(inside(folds.triggers)),
            self.seeds.take(inside(folds.seeds)),
            self.agreeing.take(inside(folds.agreeing)),
            self.near_deviating.take(inside(folds.near_deviating)),
            self.sampled.take(inside(folds.sampled)),
            self.mixture,
        )


@dataclass(frozen=True, slots=True)
class FoldSplit:
    """The fold of each input."""

    triggers: Labels
    seeds: Labels
    agreeing: Labels
    near_deviating: Labels
    sampled: Labels


def training_inputs(
    run_inputs: RunInputs, boundary_set: BoundarySet, mixture: Mixture
) -> TrainingInputs:
    """Combine the run's own inputs with the boundary set."""
    deviating = boundary_set.bisected.deviating
    return TrainingInputs(
        run_inputs.triggers,
        run_inputs.seeds,
        boundary_set.bisected.take(~deviating),
        boundary_set.bisected.take(deviating),
        boundary_set.sampled,
        mixture,
    )
