"""The hypotheses of an inspection: those that are built in, a user's, and what they say of inputs.

What is built in is of the decisions, and of the input as an array. A hypothesis says finite
numbers, or there is one line about the function that gave none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.hypothesis import InspectedInput, UnitHypothesis
from edgeflare.python_callable import load_module, reason

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
        lambda seed: seed.deviates,
        lambda seed: top_pair(seed.original) == commonest,
        lambda seed: float(_numbers(seed).mean()),
        lambda seed: float(_numbers(seed).std()),
        lambda seed: high_frequencies(seed.input),
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
        array: array of any shape and numeric dtype.

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


def _numbers(inspected: InspectedInput) -> NDArray[np.float64]:
    return np.asarray(inspected.input, dtype=np.float64)


def load_hypotheses(sources: Sequence[str]) -> tuple[UnitHypothesis, ...]:
    """Import files or modules, and return their hypotheses in the order in which they stand there.

    Whether the user trusts them has to be asked before.

    Args:
        sources: `path/to/file.py`, or a module that is importable, from the working directory too.

    Raises:
        UserError: one cannot be imported or has no hypothesis, or a name is that of another one.

    """
    found: dict[str, UnitHypothesis] = {}
    for source in sources:
        # A function may have several names there, and still is one.
        values = [
            var for var in vars(load_module(source)).values() if isinstance(var, UnitHypothesis)
        ]
        here = list({id(value): value for value in values}.values())
        if not here:
            raise UserError(
                f"{source} has no hypothesis: decorate a function of one input with"
                ' @hypothesis("name"), from edgeflare.hypothesis'
            )
        for hypothesis in here:
            if not isinstance(hypothesis.name, str) or not hypothesis.name.strip():
                raise UserError(
                    f"{source}: a hypothesis is named {hypothesis.name!r}: give it a text"
                )
            if hypothesis.name in BUILT_IN_NAMES:
                raise UserError(
                    f"{source}: {hypothesis.name!r} is the name of a built-in hypothesis: choose"
                    " another"
                )
            if hypothesis.name in found and found[hypothesis.name] is not hypothesis:
                raise UserError(
                    f"{source}: two hypotheses are named {hypothesis.name!r}: rename one"
                )
            found[hypothesis.name] = hypothesis
    return tuple(found.values())


Values = NDArray[np.float64]


def hypothesis_values(
    hypotheses: Sequence[UnitHypothesis], inputs: Iterable[InspectedInput]
) -> Values:
    """Return (inputs, hypotheses) float64, what each hypothesis says of each input.

    Raises:
        UserError: a hypothesis raises, or returns anything but a finite number or a bool.

    """
    rows = [[_value(hypothesis, input_) for hypothesis in hypotheses] for input_ in inputs]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(hypotheses))


def varying(halves: Sequence[Values]) -> NDArray[np.bool_]:
    """Return (H,) bool, whether each hypothesis varies in all halves, (inputs, H) each."""
    return np.asarray(np.all([np.ptp(half, axis=0) > 0.0 for half in halves], axis=0))


def telling(hypotheses: Sequence[UnitHypothesis], halves: Sequence[Values]) -> NDArray[np.bool_]:
    """Tell which hypotheses vary in both halves, so that something can be held against them.

    Args:
        hypotheses: H of them.
        halves: (inputs, H) float64 of each half.

    Returns:
        (H,) bool. A built-in one that does not vary is false: nobody asked for it.

    Raises:
        UserError: one of the user's is constant in a half.

    """
    require_varying(hypotheses, halves)
    return varying(halves)


def require_varying(hypotheses: Sequence[UnitHypothesis], parts: Sequence[Values]) -> None:
    """Refuse hypotheses of the user's that are constant over a part of the inputs.

    Args:
        hypotheses: H of them.
        parts: (inputs, H) float64 of each.

    """
    for hypothesis, told in zip(hypotheses, varying(parts), strict=True):
        if not told and not hypothesis.built_in:
            size = min(len(part) for part in parts)
            raise UserError(
                f"hypothesis {hypothesis.name!r} is constant over {size} inputs: nothing can be"
                " held against it; return what differs between inputs"
            )


def _value(hypothesis: UnitHypothesis, inspected: InspectedInput) -> float:
    try:
        said = hypothesis(inspected)
        number = float(said) if isinstance(said, Real | np.bool_) else math.nan
    except Exception as error:  # whatever the user's code raises is the user's to correct
        raise UserError(f"hypothesis {hypothesis.name!r} failed: {reason(error)}") from error
    if not math.isfinite(number):
        shown = " ".join(repr(said).split())
        raise UserError(
            f"hypothesis {hypothesis.name!r} returned {shown[:60]}: return a finite number or"
            " a bool"
        )
    return number
