"""The candidate operators between two features of a block (Table 3 of the paper, and convolution).

All but a plain convolution end with a 1 × 1 convolution, the paper's identity layer, whose weights
are learned from zero. So a block to which candidates are added computes what it did before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final, NamedTuple

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

NONE: Final = "none"
"""No connection; it is no operator, and takes weight from the others while they are compared."""

_SAME, _VALID = schema.Padding.SAME, schema.Padding.VALID
_WIDEST = 7


@dataclass(frozen=True, slots=True)
class OperatorToAdd:
    """An operator of a candidate.

    Attributes:
        name: "CONV_2D".
        weights: initial weights as TFLite lays them out; None for a pool.
        channels: how many channels it makes.
        window: padding, size and strides of the window that it goes over its input with.
        options: further options, by their names in the schema's Python code.
        bias: initial biases, (channels,); None for zeros.

    """

    name: str
    weights: NDArray[np.float32] | None
    channels: int
    window: OperatorWindow
    options: Mapping[str, int]
    bias: NDArray[np.float32] | None = None

    def reached(self, height: int, width: int) -> tuple[int, int]:
        """Return the height and width that it makes of others."""
        dilation = self.options.get("dilationHFactor", 1)
        sizes = zip((height, width), self.window.size, self.window.strides, strict=True)
        made = [
            -(-(size if self.window.padding == _SAME else size - dilation * (over - 1)) // step)
            for size, over, step in sizes
        ]
        return made[0], made[1]


class OperatorWindow(NamedTuple):
    """How windows of a size take one height and width to another.

    Attributes:
        padding: the padding's number in the schema.
        size: height and width of the window.
        strides: steps from window to window, down and across.

    """

    padding: int
    size: tuple[int, int]
    strides: tuple[int, int]


Shape = tuple[int, ...]
"""(1, height, width, channels)."""


def candidates(
    given: Shape, made: Shape, rng: np.random.Generator
) -> dict[str, tuple[OperatorToAdd, ...]]:
    """Return the operators of each candidate between two features, by its name.

    Those whose windows do not fit are left out.

    Args:
        given: shape of the earlier feature.
        made: shape of the later one.
        rng: draws weights in front of those that begin at zero.

    """
    window = window_between(given, made)
    if window is None:
        return {}
    found = {name: make(given[3], made[3], window, rng) for name, make in _CANDIDATES.items()}
    return {name: operators for name, operators in found.items() if operators}


def window_between(given: Shape, made: Shape) -> OperatorWindow | None:
    """Return windows by which one feature can be made of another; None where none are as small.

    They are 3 × 3 with padding where the sizes are multiples of each other, and otherwise as wide
    as they have to be without, up to 7.
    """
    strides = tuple(-(-size // wanted) for size, wanted in zip(given[1:3], made[1:3], strict=True))
    reached = tuple(-(-size // step) for size, step in zip(given[1:3], strides, strict=True))
    if reached == made[1:3]:
        return OperatorWindow(_SAME, (3, 3), (strides[0], strides[1]))
    height, width = given[1] - made[1] + 1, given[2] - made[2] + 1
    if not (1 <= height <= _WIDEST and 1 <= width <= _WIDEST):
        return None
    return OperatorWindow(_VALID, (height, width), (1, 1))


_Candidate = Callable[[int, int, OperatorWindow, np.random.Generator], tuple[OperatorToAdd, ...]]


def _skip(
    given: int, made: int, window: OperatorWindow, _: np.random.Generator
) -> tuple[OperatorToAdd, ...]:
    return () if window.padding == _VALID else (_identity(given, made, window.strides),)


def _pool(name: str) -> _Candidate:
    def make(
        given: int, made: int, window: OperatorWindow, _: np.random.Generator
    ) -> tuple[OperatorToAdd, ...]:
        size = {"filterHeight": window.size[0], "filterWidth": window.size[1]}
        return OperatorToAdd(name, None, given, window, size), _identity(given, made)

    return make


def _separable(
    given: int, made: int, window: OperatorWindow, rng: np.random.Generator
) -> tuple[OperatorToAdd, ...]:
    weights = _drawn((1, *window.size, given), prod(window.size), rng)
    depthwise = OperatorToAdd(
        "DEPTHWISE_CONV_2D", weights, given, window, {**_UNDILATED, "depthMultiplier": 1}
    )
    return depthwise, _identity(given, made)


def _dilated(
    given: int, made: int, window: OperatorWindow, rng: np.random.Generator
) -> tuple[OperatorToAdd, ...]:
    dilation = {"dilationHFactor": 2, "dilationWFactor": 2}
    if window.padding == _VALID and window.size != (5, 5):
        return ()
    weights = _drawn((given, 3, 3, given), 9 * given, rng)
    # Not every kernel strides and dilates at once, so that the identity layer strides.
    unstrided = OperatorWindow(window.padding, (3, 3), (1, 1))
    wide = OperatorToAdd("CONV_2D", weights, given, unstrided, dilation)
    return wide, _identity(given, made, window.strides)


def _convolution(
    given: int, made: int, window: OperatorWindow, _: np.random.Generator
) -> tuple[OperatorToAdd, ...]:
    weights = np.zeros((made, *window.size, given), np.float32)
    return (OperatorToAdd("CONV_2D", weights, made, window, _UNDILATED),)


def _identity(given: int, made: int, strides: tuple[int, int] = (1, 1)) -> OperatorToAdd:
    weights = np.zeros((made, 1, 1, given), np.float32)
    return OperatorToAdd(
        "CONV_2D", weights, made, OperatorWindow(_SAME, (1, 1), strides), _UNDILATED
    )


def _drawn(shape: tuple[int, ...], read: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return weights that keep the size of values, drawn as He et al. do."""
    return rng.normal(scale=np.sqrt(2.0 / read), size=shape).astype(np.float32)


_UNDILATED: Final = {"dilationHFactor": 1, "dilationWFactor": 1}

_CANDIDATES: Final[Mapping[str, _Candidate]] = {
    "skip": _skip,
    "avg_pool": _pool("AVERAGE_POOL_2D"),
    "max_pool": _pool("MAX_POOL_2D"),
    "sep_conv": _separable,
    "dil_conv": _dilated,
    "conv": _convolution,
}
