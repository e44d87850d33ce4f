"""The steps of DeepXplore: a gradient that is normalized, and constrained to what could be real.

Paper: Pei, Cao, Yang, Jana: "DeepXplore: Automated Whitebox Testing of Deep Learning Systems", SOSP
2017, sections 4.2 and 6.2; as its published code computes them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgeflare.core.input_space import Real

_LEAST_RMS = 1e-5
"""What the published code adds to the root mean square, so that a gradient of 0 stays 0."""


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle of the first two axes of an input, all channels included.

    Of an input with one axis it is a stretch: the rows alone count.

    Attributes:
        top: its first row.
        left: its first column.
        height: rows, at least 1.
        width: columns, at least 1.

    """

    top: int
    left: int
    height: int
    width: int

    def of(self, values: Real) -> tuple[slice, ...]:
        """Return the index of its part of an array; what lies beyond the array is cut off."""
        sides = (
            slice(self.top, self.top + self.height),
            slice(self.left, self.left + self.width),
        )
        return sides[: values.ndim]


def normalized(gradient: Real) -> Real:
    """Return a gradient over its root mean square."""
    return gradient / (float(np.sqrt(np.square(gradient).mean())) + _LEAST_RMS)


def lighting(gradient: Real) -> Real:
    """Return a change of all values alike, by the gradient's mean: lighter or darker."""
    return np.full_like(gradient, gradient.mean())


def occlusion(gradient: Real, rectangle: Rectangle) -> Real:
    """Return the gradient within a rectangle and 0 outside: anything may cover that part."""
    step = np.zeros_like(gradient)
    part = rectangle.of(gradient)
    step[part] = gradient[part]
    return step


def blackout(gradient: Real, rectangle: Rectangle) -> Real:
    """Return -1 within a rectangle whose mean gradient is below 0, and 0 elsewhere: dirt."""
    step = np.zeros_like(gradient)
    part = rectangle.of(gradient)
    if gradient[part].mean() < 0.0:
        step[part] = -1.0
    return step


def random_rectangle(
    shape: tuple[int, ...], height: int, width: int, rng: np.random.Generator
) -> Rectangle:
    """Return a rectangle anywhere within inputs of a shape, each place as likely.

    One that is higher or wider than the inputs begins at their edge.
    """
    rows, columns = (*shape, 1)[:2]
    top = int(rng.integers(max(rows - height, 0) + 1))
    left = int(rng.integers(max(columns - width, 0) + 1))
    return Rectangle(top, left, height, width)
