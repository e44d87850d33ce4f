"""Agreeing inputs weighted so that nothing but the deviation tells triggers from them.

Triggers lie on the boundary, and most inputs do not; a repairer that changes whatever has a small
margin looks good beside inputs that have a large one. So the agreeing inputs near the boundary get
weights with which their margins, and which side of the boundary they lie on (whether the device
still gives its seed's label), are distributed as those of the triggers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.repair.repair_samples import Samples

BINS = 20
"""Classes of margin with as many triggers in each; quantized outputs have fewer values than that
among small margins, and equal ones stay together."""


def match(triggers: Samples, agreeing: Samples) -> NDArray[np.float64]:
    """Weigh agreeing inputs to be like triggers in margin and in side.

    A trigger in whose class there is no agreeing input has nothing to be matched with, and adds no
    weight; `matched_share` says how many there are.

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
    """Return the share of the triggers that have agreeing inputs like them."""
    return min(1.0, float(weights.sum()) / len(triggers))


def _cells(samples: Samples, edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the class of each sample; those beyond the triggers' margins are in one of no one."""
    margins = samples.margins
    inner = np.searchsorted(edges[1:-1], margins, side="right")
    inner = np.where((margins < edges[0]) | (margins > edges[-1]), BINS + 1, inner)
    return 2 * inner + samples.on_seeds_side
