"""What repairers are trained with and judged by: the three kinds of inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.repair.boundary_set import BoundarySet
from edgeflare.repair.folds import deal, fold_of
from edgeflare.repair.input_matching import match
from edgeflare.repair.mixture import Mixture
from edgeflare.repair.repair_samples import Labels, Samples, together
from edgeflare.repair.run_to_repair import KnownInputs

Repair = Callable[[Samples], Labels]
"""A repairer at work: (k,) labels in place of the device's."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TrainingInputs:
    """The inputs of a run that is to be repaired.

    Attributes:
        triggers: the run's triggering inputs.
        seeds: their seeds, in the same order.
        agreeing: near-boundary inputs that do not deviate.
        further: near-boundary inputs that do; they train and do not judge.
        unled: near-boundary inputs as they come, which deviate as often as test images.
        mixture: how the kinds count.

    """

    triggers: Samples
    seeds: Samples
    agreeing: Samples
    further: Samples
    unled: Samples
    mixture: Mixture

    @property
    def deviating(self) -> Samples:
        """All that deviates: the triggers, then the further ones."""
        return together([self.triggers, self.further])

    def weights(self) -> NDArray[np.float64]:
        """Return the weights with which agreeing inputs are like the run's triggers."""
        return match(self.triggers, self.agreeing)

    def folds(self, split: int) -> FoldSplit:
        """Return to which fold everything belongs."""
        dealt = deal(self.seeds.seed_ids, self.seeds.originals, split)
        return FoldSplit(
            *(
                fold_of(part.seed_ids, dealt)
                for part in (self.triggers, self.seeds, self.agreeing, self.further, self.unled)
            )
        )

    def part(self, folds: FoldSplit, inside: Callable[[Labels], Mask]) -> TrainingInputs:
        """Return what is in the folds that `inside` tells."""
        return TrainingInputs(
            self.triggers.take(inside(folds.triggers)),
            self.seeds.take(inside(folds.seeds)),
            self.agreeing.take(inside(folds.agreeing)),
            self.further.take(inside(folds.further)),
            self.unled.take(inside(folds.unled)),
            self.mixture,
        )


@dataclass(frozen=True, slots=True)
class FoldSplit:
    """The fold of each input."""

    triggers: Labels
    seeds: Labels
    agreeing: Labels
    further: Labels
    unled: Labels


def training_inputs(known: KnownInputs, near: BoundarySet, mixture: Mixture) -> TrainingInputs:
    """Put together what was gathered."""
    deviating = near.led.deviating
    return TrainingInputs(
        known.triggers,
        known.seeds,
        near.led.take(~deviating),
        near.led.take(deviating),
        near.unled,
        mixture,
    )
