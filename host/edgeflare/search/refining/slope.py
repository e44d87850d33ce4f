"""How an arm's scores change with its input, learned from how they did.

The gradient of a classifier lies mostly in the low frequencies: 100 of an image's 784 cosines hold
88 % of its length on LeNets. So each probe changes the input by one cosine, the lowest first, and
the gradient is the mean of its posterior, given all that was seen and a prior that favours low
frequencies (a Gaussian process regression of the slope). What was seen elsewhere counts less.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from edgeflare.search.outcome import Image
from edgeflare.search.refining.trial import Seen

Real = NDArray[np.float64]

FREQUENCIES = 16
"""Cosines along each side of the image that the slope is made of."""

SMOOTH = 0.15
"""Frequency, as a share of the highest, at which the prior's variance has halved."""

FIRST_PROBES = 80
GROWTH = 1.3
"""How many cosines are probed before the lowest are probed anew, and by how much that number grows
each time: the slope changes on the way, and the low frequencies of it matter most."""

AMPLITUDE = 6.0
"""Gray levels of a probe. With 16 the slope is no longer that of the place."""

NOISE, AGE = 0.02, 0.3
"""Variance of what was seen, as a share of the prior's: here, and as far away as the seed is."""

MEMORY = 300
"""Things seen that are remembered: enough for four rounds of probes, and quick to solve."""


class Slope:
    """The slope of the first side's scores around the place where the search is."""

    def __init__(self, seed: Image) -> None:
        """Know nothing yet; `seed` gives the shape, and the place from which distances count."""
        self._seed = seed.astype(np.float64)
        self._bases = tuple(_cosines(size) for size in seed.shape)
        height, width, _ = (np.arange(len(basis)) for basis in self._bases)
        channel = np.where(np.arange(len(self._bases[2])) > 0, 0.3, 0.0)
        squared = (
            ((height / seed.shape[0]) ** 2)[:, None, None]
            + ((width / seed.shape[1]) ** 2)[None, :, None]
            + (channel**2)[None, None, :]
        )
        self._prior = 1.0 / (1.0 + (squared / SMOOTH**2) ** 2)
        self._order = np.argsort(squared, axis=None, kind="stable")
        self._next, self._round = 0, FIRST_PROBES
        self._directions: list[Real] = []
        self._places: list[Real] = []
        self._gains: list[Real] = []

    def probe(self, image: Image, rng: np.random.Generator) -> Image:
        """Return the image changed by the next cosine, in the sense that leaves more of it."""
        if self._next >= min(self._round, len(self._order)):
            self._next, self._round = 0, int(self._round * GROWTH)
        coefficients = np.zeros(self._prior.size)
        coefficients[self._order[self._next]] = 1.0
        self._next += 1
        wave = self._image(coefficients.reshape(self._prior.shape))
        wave *= AMPLITUDE / np.abs(wave).max()
        up, down = dithered(image + wave, rng), dithered(image - wave, rng)
        return up if _distance(up, image) >= _distance(down, image) else down

    def learn(self, before: Seen, after: Seen) -> None:
        """Learn from what a step did to the scores."""
        change = after.image.astype(np.float64) - before.image
        length = float(np.linalg.norm(change))
        if length == 0.0 or before.first.failure or after.first.failure:
            return
        self._directions.append(self._coefficients(change) / length)
        self._places.append(self._coefficients(before.image + change / 2 - self._seed))
        self._gains.append((after.first.scores - before.first.scores) / length)
        for memory in (self._directions, self._places, self._gains):
            del memory[:-MEMORY]

    def around(self, image: Image) -> Plane:
        """Return the scores' slopes at a place."""
        shape = self._prior.shape
        directions = np.array(self._directions).reshape(len(self._directions), -1)
        covariance = directions * self._prior.reshape(-1)
        kernel = covariance @ directions.T
        place = self._coefficients(image - self._seed)
        apart = np.linalg.norm((np.array(self._places) - place).reshape(len(kernel), -1), axis=1)
        reach = max(1.0, _distance(image, self._seed))
        noise = np.trace(kernel) / len(kernel) * (NOISE + AGE * (apart / reach) ** 2)
        weights = np.linalg.solve(kernel + np.diag(noise), np.array(self._gains))
        return Plane(weights.T @ covariance, place.reshape(-1), lambda one: self._image(one, shape))

    def _coefficients(self, image: Real) -> Real:
        rows, columns, channels = self._bases
        part = np.tensordot(rows, image, (1, 0))
        part = np.tensordot(columns, part, (1, 1)).swapaxes(0, 1)
        return np.asarray(part @ channels.T)

    def _image(self, coefficients: Real) -> Real:
        rows, columns, channels = self._bases
        part = np.tensordot(rows.T, coefficients, (1, 0))
        part = np.tensordot(columns.T, part, (1, 1)).swapaxes(0, 1)
        return np.asarray(part @ channels)


def dithered(values: Real, rng: np.random.Generator) -> Image:
    """Round to 8 bits, up or down by chance, so that steps below a gray level are steps."""
    return np.clip(np.floor(values + rng.random(values.shape)), 0, 255).astype(np.uint8)


@lru_cache(maxsize=16)
def _cosines(size: int) -> Real:
    """Return the lowest cosines of a length, (frequencies, size), orthonormal."""
    waves = np.arange(min(size, FREQUENCIES))[:, None]
    cosines = np.cos(np.pi * (np.arange(size) + 0.5) * waves / size)
    return np.asarray(cosines / np.linalg.norm(cosines, axis=1, keepdims=True))


def _distance(one: Image | Real, other: Image | Real) -> float:
    return float(np.linalg.norm(one.astype(np.float64) - other))
