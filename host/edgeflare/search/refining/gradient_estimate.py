"""How the first side's scores change with the input, learned from how they did.

The gradient of a classifier lies mostly in the low frequencies: 100 of an image's 784 cosines hold
88 % of its length on LeNets. So a probe changes the input by one cosine, the lowest first, and the
slope is the mean of its posterior, given all that was seen and a prior that favours low frequencies
(Gaussian process regression). What was seen elsewhere counts less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.core.answer import Image
from edgeflare.search.refining.dct_basis import DCTBasis, Real
from edgeflare.search.refining.trigger_refinement import EvaluatedInput

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
    cosines: DCTBasis

    def at_seed(self, here: Real, contrasts: Real) -> Real:
        """Return what combinations of scores, `here` at the place, would be at the seed."""
        return here + contrasts @ (self.slopes @ self.to_seed)

    def steepness(self, contrasts: Real) -> Real:
        """Return the gradients' lengths."""
        return np.asarray(np.linalg.norm(contrasts @ self.slopes, axis=1))

    def gradient(self, contrast: Real) -> Real:
        """Return the gradient of a combination of scores: (H, W, C)."""
        return self.cosines.image(contrast @ self.slopes)


class GradientEstimate:
    """The slope of the first side's scores around the place where the search is."""

    def __init__(self, seed: Image, classes: int) -> None:
        """Know nothing yet.

        Args:
            seed: the place from which distances count.
            classes: how many scores there are.

        """
        self._seed = seed.astype(np.float64)
        self._cosines = DCTBasis(seed.shape)
        self._prior = 1.0 / (1.0 + (self._cosines.frequencies / SMOOTH) ** 4)
        self._order = np.argsort(self._cosines.frequencies, kind="stable")
        self._next, self._round = 0, FIRST_PROBES
        self._unread: list[tuple[EvaluatedInput, EvaluatedInput]] = []
        self._memory = _Memory.empty(len(self._cosines), classes)

    def probes(self, image: Image, count: int, rng: np.random.Generator) -> Sequence[Image]:
        """Return the image changed by each of the next cosines, in the sense that leaves more."""
        waves = self._cosines.waves(self._order[[self._turn() for _ in range(count)]])
        waves *= AMPLITUDE / np.abs(waves).max(axis=(1, 2, 3), keepdims=True)
        senses = dithered(image.astype(np.float64) + np.stack([waves, -waves], axis=1), rng)
        change = np.subtract(senses, image, dtype=np.int16).astype(np.int64)
        more = np.square(change).sum(axis=(2, 3, 4)).argmax(axis=1)
        return list(senses[np.arange(count), more])

    def _turn(self) -> int:
        """Return whose turn it is, in the order of frequencies."""
        if self._next >= min(self._round, len(self._order)):
            self._next, self._round = 0, int(self._round * GROWTH)
        self._next += 1
        return self._next - 1

    def learn(self, before: EvaluatedInput, after: EvaluatedInput) -> None:
        """Learn from what a step did to the scores."""
        if before.first.failure or after.first.failure:
            return
        if np.array_equal(before.image, after.image):
            return
        self._unread.append((before, after))
        del self._unread[:-MEMORY]

    def around(self, image: Image) -> Plane:
        """Return the scores around a place: flat where nothing was learned."""
        place = self._cosines.of(image - self._seed)
        self._read()
        memory = self._memory
        if not len(memory.gains):
            return Plane(memory.gains.T @ memory.directions, -place, self._cosines)
        apart = np.linalg.norm(memory.places - place, axis=1)
        reach = max(1.0, _distance(image, self._seed))
        noise = np.trace(memory.kernel) / len(apart) * (NOISE + AGE * (apart / reach) ** 2)
        weights = np.linalg.solve(memory.kernel + np.diag(noise), memory.gains)
        return Plane((weights.T @ memory.directions) * self._prior, -place, self._cosines)

    def _read(self) -> None:
        """Bring the steps that were learned since the last time into the memory."""
        if not self._unread:
            return
        before = np.array([one.image for one, _ in self._unread], np.float64)
        after = np.array([one.image for _, one in self._unread], np.float64)
        gains = np.array([there.first.scores - here.first.scores for here, there in self._unread])
        self._unread.clear()
        lengths = np.linalg.norm((after - before).reshape(len(gains), -1), axis=1)[:, None]
        directions = self._cosines.of(after - before) / lengths
        places = self._cosines.of((before + after) / 2 - self._seed)
        self._memory = self._memory.with_steps(directions, places, gains / lengths, self._prior)


@dataclass(frozen=True, slots=True)
class _Memory:
    """The last steps that were seen, at most `MEMORY`.

    Attributes:
        directions: (steps, cosines), of the steps; their length in the image is 1.
        places: (steps, cosines), of the middle of each, from the seed.
        gains: (steps, classes), of the scores per gray level.
        kernel: (steps, steps), the prior's covariance between the gains.

    """

    directions: Real
    places: Real
    gains: Real
    kernel: Real

    @classmethod
    def empty(cls, cosines: int, classes: int) -> _Memory:
        """Return a memory of nothing."""
        none = np.zeros((0, cosines))
        return cls(none, none, np.zeros((0, classes)), np.zeros((0, 0)))

    def with_steps(self, directions: Real, places: Real, gains: Real, prior: Real) -> _Memory:
        """Return a memory of these steps too; only what is new of the kernel is computed."""
        old = max(0, MEMORY - len(gains))
        kept = slice(max(0, len(self.gains) - old), None)
        everything = np.concatenate([self.directions[kept], directions])
        new = (directions * prior) @ everything.T
        kernel = np.empty((len(everything), len(everything)))
        kernel[: -len(gains), : -len(gains)] = self.kernel[kept, kept]
        kernel[-len(gains) :] = new
        kernel[:, -len(gains) :] = new.T
        return _Memory(
            everything,
            np.concatenate([self.places[kept], places]),
            np.concatenate([self.gains[kept], gains]),
            kernel,
        )


def dithered(values: Real, rng: np.random.Generator) -> Image:
    """Round to 8 bits, up or down by chance, so that steps below a gray level are steps."""
    rounded = np.floor(values + rng.random(values.shape))
    return np.clip(rounded, 0, 255).astype(np.uint8)


def _distance(one: Image | Real, other: Image | Real) -> float:
    return float(np.linalg.norm(one.astype(np.float64) - other))
