"""How the first side's scores change with the input, learned from how they did.

The gradient of a classifier lies mostly in the low frequencies: 100 of an image's 784 cosines hold
88 % of its length on LeNets. So a probe changes the input by one cosine, the lowest first, and the
slope is the mean of its posterior, given all that was seen and a prior that favours low frequencies
(Gaussian process regression). What was seen elsewhere counts less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgeflare.search.outcome import Image
from edgeflare.search.refining.cosines import Cosines, Real
from edgeflare.search.refining.trial import Seen

SMOOTH = 0.15
"""Frequency at which the prior's variance has halved; 1 is the sampling frequency, 0.5 the highest
that an image can have."""

FIRST_PROBES = 80
GROWTH = 1.3
"""How many cosines are probed before the lowest are probed anew, and by how much that number grows
each time: the slope changes on the way, and the low frequencies of it matter most."""

AMPLITUDE = 6.0
"""Gray levels of a probe. With 16 the slope is no longer that of the place."""

NOISE, AGE = 0.02, 0.3
"""Variance of what was seen, as a share of the prior's: here, and as far away as the seed is."""

MEMORY = 300
"""Steps that are remembered: a dozen rounds of probes, and quick to solve."""


@dataclass(frozen=True, slots=True)
class Plane:
    """The scores around a place, as if they were linear.

    Attributes:
        slopes: (classes, cosines), per gray level.
        to_seed: (cosines,), the way from the place to the seed.
        cosines: what these are coefficients of.

    """

    slopes: Real
    to_seed: Real
    cosines: Cosines

    def at_seed(self, here: Real, contrasts: Real) -> Real:
        """Return what combinations of scores, `here` at the place, would be at the seed."""
        return here + contrasts @ (self.slopes @ self.to_seed)

    def steepness(self, contrasts: Real) -> Real:
        """Return the gradients' lengths."""
        return np.asarray(np.linalg.norm(contrasts @ self.slopes, axis=1))

    def gradient(self, contrast: Real) -> Real:
        """Return the gradient of a combination of scores: (H, W, C)."""
        return self.cosines.image(contrast @ self.slopes)


class Slope:
    """The slope of the first side's scores around the place where the search is."""

    def __init__(self, seed: Image, classes: int) -> None:
        """Know nothing yet.

        Args:
            seed: the place from which distances count.
            classes: how many scores there are.

        """
        self._classes = classes
        self._seed = seed.astype(np.float64)
        self._cosines = Cosines(seed.shape)
        self._prior = 1.0 / (1.0 + (self._cosines.frequencies / SMOOTH) ** 4)
        self._order = np.argsort(self._cosines.frequencies, kind="stable")
        self._next, self._round = 0, FIRST_PROBES
        self._directions: list[Real] = []
        self._places: list[Real] = []
        self._gains: list[Real] = []

    def probe(self, image: Image, rng: np.random.Generator) -> Image:
        """Return the image changed by the next cosine, in the sense that leaves more of it."""
        if self._next >= min(self._round, len(self._order)):
            self._next, self._round = 0, int(self._round * GROWTH)
        wave = self._cosines.image(np.eye(1, len(self._order), self._order[self._next])[0])
        self._next += 1
        wave *= AMPLITUDE / np.abs(wave).max()
        up, down = dithered(image + wave, rng), dithered(image - wave, rng)
        return up if _distance(up, image) >= _distance(down, image) else down

    def learn(self, before: Seen, after: Seen) -> None:
        """Learn from what a step did to the scores."""
        change = after.image.astype(np.float64) - before.image
        length = float(np.linalg.norm(change))
        if length == 0.0 or before.first.failure or after.first.failure:
            return
        self._directions.append(self._cosines.of(change) / length)
        self._places.append(self._cosines.of(before.image + change / 2 - self._seed))
        self._gains.append((after.first.scores - before.first.scores) / length)
        for memory in (self._directions, self._places, self._gains):
            del memory[:-MEMORY]

    def around(self, image: Image) -> Plane:
        """Return the scores around a place: flat where nothing was learned."""
        place = self._cosines.of(image - self._seed)
        if not self._directions:
            return Plane(np.zeros((self._classes, len(self._cosines))), -place, self._cosines)
        directions = np.array(self._directions)
        covariance = directions * self._prior
        kernel = covariance @ directions.T
        apart = np.linalg.norm(np.array(self._places) - place, axis=1)
        reach = max(1.0, _distance(image, self._seed))
        noise = np.trace(kernel) / len(kernel) * (NOISE + AGE * (apart / reach) ** 2)
        weights = np.linalg.solve(kernel + np.diag(noise), np.array(self._gains))
        return Plane(weights.T @ covariance, -place, self._cosines)


def dithered(values: Real, rng: np.random.Generator) -> Image:
    """Round to 8 bits, up or down by chance, so that steps below a gray level are steps."""
    return np.clip(np.floor(values + rng.random(values.shape)), 0, 255).astype(np.uint8)


def _distance(one: Image | Real, other: Image | Real) -> float:
    return float(np.linalg.norm(one.astype(np.float64) - other))
