"""The space of tokens: ids are names and no quantities, so a step of an id has no meaning."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.input import Input
from edgeflare.core.input_space import InputSpace, Real

REPLACEMENT = 16.0
"""Levels between two inputs that differ in one id. Two that differ in k of them are
`REPLACEMENT` * sqrt(k) apart, so a search that bisects to less than a level tells up to 256
replacements apart."""

_WEIGHT = REPLACEMENT / sqrt(2.0)
_GOLDEN = (sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True, slots=True)
class TokenSpace(InputSpace):
    """Ids of a vocabulary; in levels, a weight for each id at each position.

    An id at a position is a weight of `REPLACEMENT` / sqrt(2) for it and 0 for all others (one-hot
    encoding): (length,) ids are (length, vocabulary) levels. Weights between two inputs are a
    mixture of their ids, of which `nearest` takes each position's id by a threshold of the
    position's own, and `dithered` by one drawn at random. All thresholds differ, so the line from
    one input to another is a path of single replacements, in an order that is always the same.

    A search that computes in levels, such as `boundary`, keeps some six arrays of 8 bytes *
    length * vocabulary for each open chain.
    """

    @classmethod
    def of_vocabulary(cls, size: int) -> TokenSpace:
        """Return the space of the ids 0 to `size` - 1."""
        return cls("int32", 0, size - 1, cell_axes=1)

    @property
    def ordered(self) -> bool:
        """Return False: ids are names."""
        return False

    @property
    def vocabulary(self) -> int:
        """Return the number of ids."""
        return int(self.highest) + 1

    def levels(self, one: Input) -> Real:
        """Return the weights of the ids of an input: (..., length) → (..., length, vocabulary)."""
        weights = np.zeros((*one.shape, self.vocabulary))
        np.put_along_axis(weights, one[..., np.newaxis].astype(np.intp), _WEIGHT, axis=-1)
        return weights

    def nearest(self, levels: Real) -> Input:
        """Return the ids that the thresholds of their positions take of a mixture."""
        return self._taken(levels, _thresholds(levels.shape[-2]))

    def dithered(self, levels: Real, rng: np.random.Generator) -> Input:
        """Return ids drawn from a mixture, each as often as its weight says."""
        return self._taken(levels, rng.random(levels.shape[:-1]))

    def between(self, begin: Input, end: Input, share: float) -> Input:
        """Return the input at that share of the path of single replacements from one to another.

        Each position has the id of `begin` or of `end`.
        """
        thresholds = _thresholds(begin.shape[-1])
        replaced_from = np.where(end > begin, 1.0 - thresholds, thresholds)
        return np.where(share > replaced_from, end, begin).astype(self.dtype)

    def distance(self, one: Input, other: Input) -> float:
        """Return `REPLACEMENT` * sqrt(the number of ids that differ), in levels."""
        return REPLACEMENT * sqrt(int(np.count_nonzero(one != other)))

    def limits(self, one: Input) -> tuple[Real, Real]:
        """Return by how much the weight of each id may fall and rise, in levels."""
        weights = self.levels(one)
        return -weights, _WEIGHT - weights

    def _taken(self, levels: Real, thresholds: NDArray[np.float64]) -> Input:
        """Return at each position the first id at which the weights so far exceed a threshold.

        A threshold is a share of all weights above 0. Where there is none, the id of the highest
        weight is taken.
        """
        weights = np.maximum(levels, 0.0)
        reached = np.cumsum(weights, axis=-1)
        whole = reached[..., -1:]
        taken = (reached > thresholds[..., np.newaxis] * whole).argmax(axis=-1)
        return np.where(whole[..., 0] > 0.0, taken, levels.argmax(axis=-1)).astype(self.dtype)


def _thresholds(length: int) -> NDArray[np.float64]:
    """Return a threshold for each position, between 0 and 1: evenly spread, and no two equal."""
    thresholds: NDArray[np.float64] = np.mod((np.arange(length) + 1) * _GOLDEN, 1.0)
    return thresholds
