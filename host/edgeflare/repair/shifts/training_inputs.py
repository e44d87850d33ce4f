"""The inputs that repairers are trained with and judged by: three kinds, and a sample.

Triggers lie on the boundary, and most inputs do not; a repairer that changes whatever has a small
margin would look good if it were judged by inputs that have a large one. So the agreeing inputs
near the boundary get weights with which two things are distributed as in the triggers: the margin,
and the side of the boundary (whether the device still gives the label of the seed).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.repair.shifts.boundary_set import BoundarySet
from edgeflare.repair.shifts.repair_samples import (
    Labels,
    Samples,
    assign_folds,
    fold_of,
    together,
)
from edgeflare.repair.shifts.run_to_repair import RunInputs

Repair = Callable[[Samples], Labels]
"""The labels of a repaired model, given the answers of the model before: (k,)."""

Mask = NDArray[np.bool_]

BINS = 20
"""Bins of the margin, with equally many triggers in each where the margins differ enough: quantized
outputs have few distinct small margins, and equal margins are in one bin."""


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

    """

    triggers: Samples
    seeds: Samples
    agreeing: Samples
    near_deviating: Samples
    sampled: Samples

    @property
    def deviating(self) -> Samples:
        """All deviating inputs: the triggers, then those near the boundary."""
        return together([self.triggers, self.near_deviating])

    def weights(self) -> NDArray[np.float64]:
        """Return weights that give agreeing inputs the distribution of the run's triggers."""
        return match(self.triggers, self.agreeing)

    @property
    def kinds(self) -> dict[str, Samples]:
        """The inputs of each kind, by its name here."""
        kinds = "triggers", "near_deviating", "agreeing", "seeds", "sampled"
        return {kind: getattr(self, kind) for kind in kinds}

    def folds(self, split: int) -> dict[str, Labels]:
        """Return the fold of each input, by its kind."""
        assigned = assign_folds(self.seeds.seed_ids, self.seeds.originals, split)
        return {kind: fold_of(part.seed_ids, assigned) for kind, part in self.kinds.items()}

    def part(self, folds: Mapping[str, Labels], inside: Callable[[Labels], Mask]) -> TrainingInputs:
        """Return the inputs in the folds for which `inside` is true."""
        kept = {kind: part.take(inside(folds[kind])) for kind, part in self.kinds.items()}
        return TrainingInputs(**kept)


def training_inputs(run_inputs: RunInputs, boundary_set: BoundarySet) -> TrainingInputs:
    """Combine the run's own inputs with the boundary set."""
    deviating = boundary_set.bisected.deviating
    return TrainingInputs(
        run_inputs.triggers,
        run_inputs.seeds,
        boundary_set.bisected.take(~deviating),
        boundary_set.bisected.take(deviating),
        boundary_set.sampled,
    )


def match(triggers: Samples, agreeing: Samples) -> NDArray[np.float64]:
    """Weigh agreeing inputs so that they match the triggers in margin and side of the boundary.

    A trigger in whose bin there is no agreeing input cannot be matched, and adds no weight;
    `matched_share` says how many can.

    Returns:
        (len(agreeing),) weights, not negative; they sum to the number of triggers that are
        matched.

    """
    edges = np.unique(np.quantile(triggers.margins, np.linspace(0.0, 1.0, BINS + 1)))
    wanted = np.bincount(_cells(triggers, edges), minlength=2 * (BINS + 2)).astype(np.float64)
    cells = _cells(agreeing, edges)
    there = np.bincount(cells, minlength=len(wanted))
    weights: NDArray[np.float64] = (wanted / np.maximum(there, 1))[cells]
    return weights


def matched_share(triggers: Samples, weights: NDArray[np.float64]) -> float:
    """Return the share of the triggers that are matched by agreeing inputs."""
    return min(1.0, float(weights.sum()) / len(triggers))


def _cells(samples: Samples, edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bin of each sample; those beyond the triggers' margins have a bin of their own."""
    margins = samples.margins
    inner = np.searchsorted(edges[1:-1], margins, side="right")
    inner = np.where((margins < edges[0]) | (margins > edges[-1]), BINS + 1, inner)
    return 2 * inner + samples.on_seeds_side
