"""The net effect of a repairer: by how much deviations fall over a stated mixture of inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.bench.bench_statistics import BOOTSTRAP_SEED, RESAMPLES, Estimate
from edgeflare.repair.shift_details import Mixture
from edgeflare.repair.shifts.repair_samples import Labels


@dataclass(frozen=True, slots=True)
class MixtureCounts:
    """How many inputs of the three kinds a repairer changed, seed by seed.

    Attributes:
        counts: (3, seeds): how many there are of each seed: triggers, agreeing inputs by weight,
            seeds.
        changed: (3, seeds): how many of them are repaired, or made to deviate.

    """

    counts: NDArray[np.float64]
    changed: NDArray[np.float64]

    @property
    def ratios(self) -> NDArray[np.float64]:
        """(3,) the shares of triggers repaired, and of agreeing inputs and of seeds induced."""
        ratios: NDArray[np.float64] = self.changed.sum(1) / np.maximum(self.counts.sum(1), 1e-12)
        return ratios

    def net(self, mixture: Mixture) -> Estimate:
        """Return by how much deviations fall, as a share of the mixture.

        The interval is a 95 % bootstrap interval over the seeds, each drawn with all that was made
        from it.
        """
        seeds = self.counts.shape[1]
        rng = np.random.default_rng(BOOTSTRAP_SEED)
        drawn = rng.multinomial(seeds, np.full(seeds, 1.0 / seeds), size=RESAMPLES).T
        rates = (self.changed @ drawn) / np.maximum(self.counts @ drawn, 1e-12)
        signs = np.array([mixture.triggers, -mixture.agreeing, -mixture.seeds])
        low, high = np.quantile(signs @ rates, (0.025, 0.975))
        return Estimate(float(signs @ self.ratios), float(low), float(high))


def count_mixture(
    seed_ids: Labels,
    parts: tuple[
        tuple[Labels, NDArray[np.float64], NDArray[np.float64]],
        tuple[Labels, NDArray[np.float64], NDArray[np.float64]],
        tuple[Labels, NDArray[np.float64], NDArray[np.float64]],
    ],
) -> MixtureCounts:
    """Sum the changed labels of each kind of inputs, seed by seed.

    Args:
        seed_ids: (seeds,), each once, ascending.
        parts: for triggers, agreeing inputs and seeds: their seeds' ids, their weights, and the
            share of the splits in which each was changed, from 0 to 1.

    """
    counts, changed = np.zeros((2, 3, len(seed_ids)))
    for row, (ids, weights, done) in enumerate(parts):
        places = np.searchsorted(seed_ids, ids)
        counts[row] = np.bincount(places, weights, len(seed_ids))
        changed[row] = np.bincount(places, weights * done, len(seed_ids))
    return MixtureCounts(counts, changed)
