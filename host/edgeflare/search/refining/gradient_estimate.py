"""An estimate of the gradient of the first side's scores, from the scores of evaluated inputs.

The gradient of a classifier lies mostly in the low frequencies: 100 of 784 cosines hold 88 % of its
length on LeNets; 256 of 16,000 hold 36 to 77 % of its squared length on three sounds of a keyword
spotter. So a probe changes the input by one cosine, the lowest first, and the gradient is estimated
as the mean of its posterior, given all steps and a prior that favours low frequencies (Gaussian
process regression). Steps farther away count less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.core.input import Input
from edgeflare.core.input_space import EIGHT_BIT, InputSpace, Real
from edgeflare.search.refining.dct_basis import DCTBasis
from edgeflare.search.refining.trigger_refinement import EvaluatedInput

SMOOTH = 0.15
"""Frequency at which the prior's variance has halved; 1 is the sampling frequency, 0.5 the highest
that an input can have."""

FIRST_PROBES = 80
GROWTH = 1.3
"""Number of cosines that are probed before the lowest are probed anew, and the factor by which it
grows each time: the gradient changes along the way, and its low frequencies matter most."""

AMPLITUDE = 6.0
"""Largest change by a probe, in levels. 16 are too many: the gradient changes within them."""

NOISE, AGE = 0.02, 0.3
"""Variance of a step's gain as a share of the prior's: at the point, and at the seed's distance."""

MEMORY = 300
"""Steps that are kept: a dozen rounds of probes, and quick to solve."""


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A linear model of the scores around a point.

    Attributes:
        slopes: (classes, cosines), per level.
        to_seed: (cosines,), the seed less the point.
        cosines: the basis of these coefficients.

    """

    slopes: Real
    to_seed: Real
    cosines: DCTBasis

    def at_seed(self, values: Real, contrasts: Real) -> Real:
        """Return combinations of scores at the seed, given their values at the point."""
        return values + contrasts @ (self.slopes @ self.to_seed)

    def steepness(self, contrasts: Real) -> Real:
        """Return the gradients' lengths."""
        return np.asarray(np.linalg.norm(contrasts @ self.slopes, axis=1))

    def gradient(self, contrast: Real) -> Real:
        """Return the gradient of a combination of scores, shaped as inputs."""
        return self.cosines.values(contrast @ self.slopes)


class GradientEstimate:
    """The gradient of the first side's scores, learned while a refinement goes on."""

    def __init__(self, seed: Input, classes: int, space: InputSpace = EIGHT_BIT) -> None:
        """Begin without any step.

        Args:
            seed: the point from which distances are measured.
            classes: the number of scores.
            space: of the inputs.

        """
        self._space = space
        self._seed = space.levels(seed)
        self._cosines = DCTBasis(self._seed.shape, space.cell_axes)
        self._prior = 1.0 / (1.0 + (self._cosines.frequencies / SMOOTH) ** 4)
        self._order = np.argsort(self._cosines.frequencies, kind="stable")
        self._next, self._round = 0, FIRST_PROBES
        self._unread: list[tuple[EvaluatedInput, EvaluatedInput]] = []
        self._memory = _Memory.empty(len(self._cosines), classes)

    def probes(self, candidate: Input, count: int, rng: np.random.Generator) -> Sequence[Input]:
        """Return the input changed by each of the next cosines.

        Of the two signs it takes the one of which clipping to the limits of values leaves more.
        """
        waves = self._cosines.waves(self._order[[self._next_frequency() for _ in range(count)]])
        values = tuple(range(1, waves.ndim))
        waves *= AMPLITUDE / np.abs(waves).max(axis=values, keepdims=True)
        levels = self._space.levels(candidate)
        senses = self._space.dithered(levels + np.stack([waves, -waves], axis=1), rng)
        change = self._space.levels(senses) - levels
        more = np.square(change).reshape(count, 2, -1).sum(axis=2).argmax(axis=1)
        return list(senses[np.arange(count), more])

    def _next_frequency(self) -> int:
        """Return the index of the next cosine to probe, in the order of frequencies."""
        if self._next >= min(self._round, len(self._order)):
            self._next, self._round = 0, int(self._round * GROWTH)
        self._next += 1
        return self._next - 1

    def learn(self, before: EvaluatedInput, after: EvaluatedInput) -> None:
        """Learn from the scores before and after a step."""
        if before.first.failure or after.first.failure:
            return
        if np.array_equal(before.input, after.input):
            return
        self._unread.append((before, after))
        del self._unread[:-MEMORY]

    def linear_model(self, candidate: Input) -> LinearModel:
        """Return a linear model of the scores around an input; it is constant before any step."""
        position = self._cosines.of(self._space.levels(candidate) - self._seed)
        self._read()
        memory = self._memory
        if not len(memory.gains):
            return LinearModel(memory.gains.T @ memory.directions, -position, self._cosines)
        apart = np.linalg.norm(memory.places - position, axis=1)
        reach = max(1.0, float(np.linalg.norm(self._space.levels(candidate) - self._seed)))
        noise = np.trace(memory.kernel) / len(apart) * (NOISE + AGE * (apart / reach) ** 2)
        weights = np.linalg.solve(memory.kernel + np.diag(noise), memory.gains)
        return LinearModel((weights.T @ memory.directions) * self._prior, -position, self._cosines)

    def _read(self) -> None:
        """Add the steps that were learned since the last call to the memory."""
        if not self._unread:
            return
        before = np.array([self._space.levels(one.input) for one, _ in self._unread])
        after = np.array([self._space.levels(one.input) for _, one in self._unread])
        gains = np.array(
            [after.first.scores - before.first.scores for before, after in self._unread]
        )
        self._unread.clear()
        lengths = np.linalg.norm((after - before).reshape(len(gains), -1), axis=1)[:, None]
        directions = self._cosines.of(after - before) / lengths
        places = self._cosines.of((before + after) / 2 - self._seed)
        self._memory = self._memory.with_steps(directions, places, gains / lengths, self._prior)


@dataclass(frozen=True, slots=True)
class _Memory:
    """The last steps, at most `MEMORY`.

    Attributes:
        directions: (steps, cosines), of length 1 in the input.
        places: (steps, cosines), the middle of each, less the seed.
        gains: (steps, classes), the change of the scores per level.
        kernel: (steps, steps), the prior's covariance between the gains.

    """

    directions: Real
    places: Real
    gains: Real
    kernel: Real

    @classmethod
    def empty(cls, cosines: int, classes: int) -> _Memory:
        """Return a memory without steps."""
        none = np.zeros((0, cosines))
        return cls(none, none, np.zeros((0, classes)), np.zeros((0, 0)))

    def with_steps(self, directions: Real, places: Real, gains: Real, prior: Real) -> _Memory:
        """Return the memory with these steps added; only the new part of the kernel is computed."""
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
