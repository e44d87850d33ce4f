"""The inputs of an inspection: near the original's boundary, and what a run found.

Only there do the two models differ. On one line between two seeds of different labels lie two
neighbours, one on each side of the original's boundary. Whether they deviate depends on the margin
first of all, so hypotheses are permuted among inputs of like margins (strata).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.input import Input
from edgeflare.diagnose.near_boundary import Inputs, LabelOf, near_boundary_inputs
from edgeflare.errors import UserError

STRATA = 4
"""Bins of margins, of equally many inputs each."""

LEAST_LINES = 40
"""Fewer leave too few on each half."""


@dataclass(frozen=True, slots=True)
class InspectedInputs:
    """Inputs in the order in which they are inspected.

    Attributes:
        inputs: (n, *shape).
        groups: (n,), the line that an input lies on; a finding is a group of its own.
        strata: (n,), the bin of its margin.

    """

    inputs: Inputs
    groups: NDArray[np.int64]
    strata: NDArray[np.int64]


def inspected_inputs(
    seeds: Inputs,
    label_of: LabelOf,
    margin_of: Callable[[Inputs], NDArray[np.float64]],
    triggers: Sequence[Input],
    count: int,
    rng: np.random.Generator,
) -> InspectedInputs:
    """Make inputs near the boundary, add what was found, and put all in a drawn order.

    Args:
        seeds: (seeds, *shape).
        label_of: the original's labels.
        margin_of: by how much the original's best score exceeds the second, (n,).
        triggers: inputs that a run found.
        count: inputs near the boundary.
        rng: of all that is drawn.

    Raises:
        UserError: there are too few lines between seeds of different labels.

    """
    near = near_boundary_inputs(seeds, label_of(seeds), label_of, count, rng)
    lines = len(near.tight) // 2
    if lines < LEAST_LINES:
        raise UserError(
            f"there are {len(near.tight)} near-boundary inputs, and {2 * LEAST_LINES} are the"
            " least to inspect: raise --inputs, or search with more seeds of several classes"
        )
    groups = np.repeat(np.arange(lines), 2)
    inputs = near.tight
    if triggers:
        inputs = np.concatenate([inputs, np.stack(triggers)])
        groups = np.concatenate([groups, lines + np.arange(len(triggers))])
    margins = margin_of(inputs)
    order = np.argsort(rng.permutation(int(groups.max()) + 1)[groups], kind="stable")
    edges = np.quantile(margins, np.linspace(0, 1, STRATA + 1)[1:-1])
    strata = np.searchsorted(edges, margins, side="right").astype(np.int64)
    return InspectedInputs(inputs[order], groups[order], strata[order])
