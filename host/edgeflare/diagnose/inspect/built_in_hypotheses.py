"""The hypotheses that need no file of the user: of the decisions, and of the input as an array."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from edgeflare.hypothesis import InspectedInput, UnitHypothesis

DEVIATES = "deviates"
"""The hypothesis that a strip per layer and the lists of units are about."""

BUILT_IN_NAMES = (DEVIATES, "class pair", "brightness", "contrast", "high frequencies")

ClassPair = tuple[int, int]
"""Two classes, the lesser first: which of them is ahead does not matter."""


def built_in_hypotheses(commonest: ClassPair) -> tuple[UnitHypothesis, ...]:
    """Return the built-in hypotheses, in the order of `BUILT_IN_NAMES`.

    Args:
        commonest: the pair of classes for the second one, as `commonest_pair` returns it.

    """
    functions = (
        lambda one: one.deviates,
        lambda one: top_pair(one.original) == commonest,
        lambda one: float(_numbers(one).mean()),
        lambda one: float(_numbers(one).std()),
        lambda one: high_frequencies(one.input),
    )
    named = zip(BUILT_IN_NAMES, functions, strict=True)
    return tuple(UnitHypothesis(name, function, built_in=True) for name, function in named)


def top_pair(scores: NDArray[np.float64]) -> ClassPair:
    """Return the two classes with the greatest scores; of equal scores the first classes.

    Args:
        scores: (classes,), two or more.

    """
    first, second = np.argsort(-scores, kind="stable")[:2]
    return (int(min(first, second)), int(max(first, second)))


def commonest_pair(scores: Iterable[NDArray[np.float64]]) -> ClassPair:
    """Return the pair of top classes that most inputs have; of equally common ones the least.

    Args:
        scores: the original's (classes,) scores of each input that is to be inspected, one or more.

    """
    counts = Counter(map(top_pair, scores))
    return min(counts, key=lambda pair: (-counts[pair], pair))


def high_frequencies(array: NDArray[np.generic]) -> float:
    """Return which part of an input's variation lies between neighbouring values.

    That is the mean squared difference of neighbours over twice the variance, along each axis of
    three values or more, on average: 0 of what is smooth, 1 of white noise, up to 2 of what
    alternates (von Neumann's ratio, halved). A last axis of at most four, the channels of an image,
    is left out. Brightness and contrast do not change it. An input without variation has 0.

    Args:
        array: of any shape and numeric dtype.

    """
    values = np.asarray(array, dtype=np.float64)
    variance = float(values.var())
    channels_last = values.ndim >= 3 and values.shape[-1] <= 4
    axes = range(values.ndim - channels_last)
    rough = [
        float(np.square(np.diff(values, axis=axis)).mean())
        for axis in axes
        if values.shape[axis] >= 3
    ]
    return float(np.mean(rough)) / (2.0 * variance) if rough and variance else 0.0


def _numbers(one: InspectedInput) -> NDArray[np.float64]:
    return np.asarray(one.input, dtype=np.float64)
