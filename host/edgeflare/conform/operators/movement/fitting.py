"""Rules that settings of several operators have to keep, such as an axis within a rank."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd, prod

from edgeflare.conform.specification.settings import Setting, dimensions, whole

Settings = dict[str, Setting]


def axis_within(axis: int, rank: int) -> int:
    """Return an axis of a rank, negative ones counted from the end; the given one if it is one."""
    return axis if -rank <= axis < rank else axis % max(rank, 1)


def as_many(numbers: tuple[int, ...], count: int, usual: int) -> tuple[int, ...]:
    """Return so many numbers: the last of the given ones, with usual ones before them."""
    return (usual,) * (count - len(numbers)) + numbers[max(0, len(numbers) - count) :]


def fit_axis(beyond: int = 0) -> Callable[[Settings, str], Settings]:
    """Return the rule that the axis is one of the shape's, or of a rank so much larger."""

    def fit(settings: Settings, changed: str) -> Settings:
        del changed
        rank = len(dimensions(settings, "shape")) + beyond
        settings["axis"] = axis_within(whole(settings, "axis"), rank)
        return settings

    return fit


def same_size(sizes: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape near one with as many values as another has; one size may be -1.

    The shape itself if it has as many.
    """
    size, known = prod(shape), prod(one for one in sizes if one != -1)
    if -1 in sizes:
        if known and size % known == 0:
            return sizes
        sizes = tuple(1 if one == -1 else one for one in sizes)
    if prod(sizes) == size:
        return sizes
    if not sizes or not size:
        return tuple(shape)
    fitting = []
    for one in sizes[:-1]:
        fitting.append(gcd(size, one) if one else 1)
        size //= fitting[-1]
    return (*fitting, size)
