"""Weights for agreeing inputs that give them the same distribution as the triggers.

Triggers lie on the boundary, and most inputs do not; a repairer that changes whatever has a small
margin would look good if it were judged by inputs that have a large one. So the agreeing inputs
near the boundary get weights with which two things are distributed as in the triggers: the margin,
and the side of the boundary (whether the device still gives the label of the seed).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.repair.shifts.repair_samples import Samples

BINS = 20
"""Bins of the margin, with equally many triggers in each where the margins differ enough: quantized
outputs have few distinct small margins, and equal margins are in one bin."""


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
