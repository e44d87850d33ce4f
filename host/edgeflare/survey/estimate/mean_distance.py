"""The mean distance of two arms over many items, of which the device was asked about some."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from edgeflare.survey.estimate.rate import Sample, SignedEstimate
from edgeflare.survey.estimate.strata import StratumWeights


def mean_distance(
    foretold: NDArray[np.float64],
    seen: NDArray[np.float64],
    sample: Sample,
    chosen: NDArray[np.bool_],
    confidence: float,
) -> SignedEstimate | None:
    """Return the mean of what the device says, by a difference estimator.

    It is the mean of what is foretold over all chosen items, corrected by the weighted mean of the
    differences of those asked; an item that was asked weighs as many as its stratum has for each
    asked. The interval is a normal one, with the variance of each stratum; that of the weighted
    mean is linearised (Särndal, Swensson and Wretman, "Model Assisted Survey Sampling", 1992,
    sections 5.7 and 6.3). Items on which the device failed have no distance, and are left out.

    Args:
        foretold: (items,) float64, the distance of the twin; 0 where nothing is foretold.
        seen: (items,) float64, that of the device; NaN where it failed or was not asked.
        sample: which items the device was asked about.
        chosen: (items,) bool, the items of the slice.
        confidence: of the interval, from 0 to 1.

    Returns:
        None where that cannot be said: no chosen item has a distance, or the device was asked about
        fewer than two items of a stratum with chosen ones, and not about all.

    """
    chosen = chosen & np.isfinite(foretold)
    known = sample.asked & chosen & np.isfinite(seen)
    if not known.any():
        return None
    strata = StratumWeights.of(sample)
    sizes, asked = strata.sizes, strata.asked
    touched = np.unique(sample.stratum[chosen])
    if (asked[touched] < np.minimum(2, sizes[touched])).any():
        return None
    weights = strata.weight[sample.stratum[known]]
    differences = seen[known] - foretold[known]
    correction = float(np.average(differences, weights=weights))
    residuals = np.zeros(len(sample.asked))
    residuals[known] = differences - correction
    variance = 0.0
    for stratum in touched[asked[touched] < sizes[touched]]:
        size, of = int(sizes[stratum]), int(asked[stratum])
        among = residuals[sample.asked & (sample.stratum == stratum)]
        variance += size * (size - of) / of * float(among.var(ddof=1))
    estimate = float(foretold[chosen].mean()) + correction
    half = NormalDist().inv_cdf((1.0 + confidence) / 2.0) * float(np.sqrt(variance))
    half /= float(weights.sum())
    return SignedEstimate(estimate, estimate - half, estimate + half)
