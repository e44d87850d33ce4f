"""An estimate of the gradient of the first side's scores, from the scores of evaluated inputs.

The gradient of a classifier lies mostly in the low frequencies: 100 of 784 cosines hold 88 % of its
length on LeNets; 256 of 16,000 hold 36 to 77 % of its squared length on three sounds of a keyword
spotter. So a probe changes the input by one cosine, the lowest first, and the gradient is estimated
as the mean of its posterior, given all steps and a prior that favours low frequencies (Gaussian
process regression). Steps farther away count less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod, sqrt
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.input_space import EIGHT_BIT, Input, InputSpace, Real
from edgeflare.strategies.refining.trigger_refinement import ProbedInput

_MOST = 256
"""Cosines over the cells: all of them along one axis, 16 along each of two, or 6 of three."""

_MOST_CHANNELS = 16
"""Cosines over the values of a cell."""

_OTHER_CHANNELS = 0.3
"""Frequency at which differences between channels count."""

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


class Basis(Protocol):
    """What the coefficients of inputs stand for."""

    def values(self, coefficients: Real) -> Real:
        """Return the input that has the coefficients, in levels."""
        ...


class ScoreGradient(Protocol):
    """What is known of the gradient of the first side's scores."""

    def learn(self, before: ProbedInput, after: ProbedInput) -> None:
        """Learn from the scores before and after a step."""
        ...

    def linear_model(self, candidate: Input) -> LinearModel:
        """Return a linear model of the scores around an input."""
        ...


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A linear model of the scores around a point.

    Attributes:
        slopes: (classes, cosines), per level.
        to_seed: (cosines,), the seed less the point.
        cosines: the basis of these coefficients, which are cosines where they are estimated.

    """

    slopes: Real
    to_seed: Real
    cosines: Basis

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
            space: space of the inputs.

        """
        self._space = space
        self._seed = space.levels(seed)
        self._cosines = DCTBasis(self._seed.shape, space.cell_axes)
        self._prior = 1.0 / (1.0 + (self._cosines.frequencies / SMOOTH) ** 4)
        self._order = np.argsort(self._cosines.frequencies, kind="stable")
        self._next, self._round = 0, FIRST_PROBES
        self._unread: list[tuple[ProbedInput, ProbedInput]] = []
        self._memory = _Memory.empty(len(self._cosines), classes)

    def probes(self, candidate: Input, count: int, rng: np.random.Generator) -> Sequence[Input]:
        """Return the input changed by each of the next cosines.

        Of the two signs it takes the one of which clipping to the limits of values leaves more.
        """
        numbers = self._order[[self._next_frequency() for _ in range(count)]]
        levels = self._space.levels(candidate)
        return [
            probe
            for part in _cached_parts(count, levels.size)
            for probe in self._probes_of(numbers[part], levels, rng)
        ]

    def _probes_of(
        self, numbers: NDArray[np.intp], levels: Real, rng: np.random.Generator
    ) -> list[Input]:
        """Return an input, given in levels, changed by each of some cosines."""
        waves = self._cosines.waves(numbers)
        values = tuple(range(1, waves.ndim))
        waves *= AMPLITUDE / np.abs(waves).max(axis=values, keepdims=True)
        both = np.empty((len(waves), 2, *levels.shape))
        np.add(levels, waves, out=both[:, 0])
        np.subtract(levels, waves, out=both[:, 1])
        senses = self._space.dithered(both, rng)
        change = self._space.levels(senses) - levels
        more = np.square(change).reshape(len(numbers), 2, -1).sum(axis=2).argmax(axis=1)
        return list(senses[np.arange(len(numbers)), more])

    def _next_frequency(self) -> int:
        """Return the index of the next cosine to probe, in the order of frequencies."""
        if self._next >= min(self._round, len(self._order)):
            self._next, self._round = 0, int(self._round * GROWTH)
        self._next += 1
        return self._next - 1

    def learn(self, before: ProbedInput, after: ProbedInput) -> None:
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
        space, cosines = self._space, self._cosines
        # Many probes begin at one point, whose levels and cosines are computed once.
        begins = {id(before): space.levels(before.input) for before, _ in self._unread}
        places = {begin: cosines.of(levels - self._seed) for begin, levels in begins.items()}
        changes, lengths = np.empty((len(self._unread), len(cosines))), np.empty(len(self._unread))
        for part in _cached_parts(len(self._unread), self._seed.size):
            moves = [
                space.levels(after.input) - begins[id(before)]
                for before, after in self._unread[part]
            ]
            steps = np.array(moves)
            changes[part] = cosines.of(steps)
            lengths[part] = np.linalg.norm(steps.reshape(len(steps), -1), axis=1)
        middles = np.array([places[id(before)] for before, _ in self._unread]) + changes / 2
        gains = np.array(
            [after.first.scores - before.first.scores for before, after in self._unread]
        )
        self._unread.clear()
        self._memory = self._memory.with_steps(
            changes / lengths[:, None], middles, gains / lengths[:, None], self._prior
        )


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


class DCTBasis:
    """The lowest cosines of inputs of a shape, orthonormal.

    Every input is computed with in four axes: frames, rows and columns of cells, and the channels
    of a cell. Those that it does not have are of length 1, which has one cosine, the constant 1.
    """

    def __init__(self, shape: tuple[int, ...], cell_axes: int = 2) -> None:
        """Make the basis.

        Args:
            shape: shape of the inputs.
            cell_axes: how many of the leading axes number the cells: 1 for rows alone, 2 for rows
                and columns, 3 for frames as well; see `InputSpace`.

        """
        cells, channels_of_cell = shape[:cell_axes], prod(shape[cell_axes:])
        self._input_shape = shape
        before, behind = int(cell_axes < 3), int(cell_axes < 2)
        self._planes = (*(1,) * before, *cells, *(1,) * behind, channels_of_cell)
        most = round(_MOST ** (1 / cell_axes))
        self._bases = (
            *(_cosines(size, most) for size in self._planes[:-1]),
            _cosines(self._planes[-1], _MOST_CHANNELS),
        )
        self.shape = tuple(len(basis) for basis in self._bases)
        frames, rows, columns, channels = np.ix_(*map(np.arange, self.shape))
        self.frequencies = np.sqrt(
            (rows / self._planes[1]) ** 2
            + (columns / self._planes[2]) ** 2
            + (channels > 0) * _OTHER_CHANNELS**2
            + (frames / self._planes[0]) ** 2
        ).reshape(-1)

    def __len__(self) -> int:
        """Return the number of cosines."""
        return self.frequencies.size

    def of(self, real: Real) -> Real:
        """Return the coefficients of an input, (cosines,), or of several: (N, cosines)."""
        frames, rows, columns, channels = self._bases
        length, height, width, depth = self._planes
        planes = real.reshape(-1, height, width * depth)
        part = _lowest_dct(planes, len(rows)) if height >= _LONG else rows @ planes
        part = columns @ part.reshape(-1, len(rows), width, depth)
        part = frames @ (part @ channels.T).reshape(-1, length, prod(self.shape[1:]))
        several = real.shape[: real.ndim - len(self._input_shape)]
        return np.asarray(part.reshape(*several, -1))

    def values(self, coefficients: Real) -> Real:
        """Return the input that has the coefficients, in levels."""
        frames, rows, columns, channels = self._bases
        part = columns.T @ (coefficients.reshape(self.shape) @ channels)
        height = self._planes[1]
        if height >= _LONG:
            part = _from_lowest_dct(part.reshape(*self.shape[:2], -1), height).swapaxes(0, 1)
        else:
            part = np.tensordot(rows, part, (0, 1))
        return np.tensordot(frames, part, (0, 1)).reshape(self._input_shape)

    def waves(self, numbers: NDArray[np.intp]) -> Real:
        """Return some of the cosines as inputs: (N, *shape)."""
        frames, rows, columns, channels = (
            basis[at]
            for basis, at in zip(self._bases, np.unravel_index(numbers, self.shape), strict=True)
        )
        waves = rows[:, None, :, None, None]
        for basis, axes in ((columns, (1, 2, 4)), (channels, (1, 2, 3)), (frames, (2, 3, 4))):
            if basis.shape[1] > 1:  # else it is 1
                waves = waves * np.expand_dims(basis, axes)
        return np.asarray(waves.reshape(-1, *self._input_shape))


_CACHED_VALUES: Final = 16_384
"""Values of inputs that are computed with at once, so that a core's cache holds what comes between;
many small inputs together take less time than one after the other."""


def _cached_parts(count: int, size: int) -> Iterator[slice]:
    """Yield the parts in which so many inputs of a size are computed with."""
    together = max(1, _CACHED_VALUES // size)
    for begin in range(0, count, together):
        yield slice(begin, begin + together)


_LONG: Final = 1024
"""Length of an axis from which on a fast Fourier transform takes less time than the product with
the cosines, a matrix of a megabyte or more that is read anew for each input."""


def _lowest_dct(real: Real, count: int) -> Real:
    """Return the coefficients of the lowest `count` cosines along the second axis of three.

    They are those of `_cosines(size, count) @ real`, by the transform of the even values in front
    of the odd ones backwards (Makhoul 1980, "A fast cosine transform in one and two dimensions").
    """
    folded = np.concatenate([real[:, ::2], real[:, 1::2][:, ::-1]], axis=1)
    spectrum = np.fft.rfft(folded, axis=1)[:, :count]
    return np.asarray((spectrum * _turns(real.shape[1], count).conj()[:, None]).real)


def _from_lowest_dct(coefficients: Real, size: int) -> Real:
    """Return the values, along the second axis of three, of coefficients of the lowest cosines."""
    turned = coefficients * _turns(size, coefficients.shape[1])[:, None]
    turned[:, 0] *= 2.0
    return np.asarray(np.fft.irfft(turned * size, 2 * size, axis=1)[:, :size])


@lru_cache(maxsize=16)
def _turns(size: int, count: int) -> NDArray[np.complex128]:
    """Return the factors of the lowest terms of a Fourier transform in the orthonormal cosines."""
    turns = np.exp(0.5j * np.pi * np.arange(count) / size) * sqrt(2.0 / size)
    turns[0] *= sqrt(0.5)
    return np.asarray(turns)


@lru_cache(maxsize=16)
def _cosines(size: int, most: int) -> Real:
    """Return the lowest cosines of a length: (cosines, size)."""
    waves = np.arange(min(size, most))[:, None]
    cosines = np.cos(np.pi * (np.arange(size) + 0.5) * waves / size)
    return np.asarray(cosines / np.linalg.norm(cosines, axis=1, keepdims=True))
