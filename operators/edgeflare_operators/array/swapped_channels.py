"""Two channels in each other's place, as of a sensor that was connected or mounted wrongly."""

from __future__ import annotations

import numpy as np

from edgeflare_operators.operator_registry import Sample, operator


@operator("swapped-channels", domain="array")
def swapped_channels(array: Sample, rng: np.random.Generator) -> Sample:
    """Swap two channels; without channels, two values. A single one stays where it is."""
    mutant: Sample = array.copy()
    if mutant.shape[-1] > 1:
        one, other = rng.choice(mutant.shape[-1], 2, replace=False)
        mutant[..., [one, other]] = array[..., [other, one]]
    return mutant
