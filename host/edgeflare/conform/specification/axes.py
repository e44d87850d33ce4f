"""The parameter that says which dimensions of a tensor an operator works along."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgeflare.conform.specification.parameter import OperatorParameter, ParameterKind
from edgeflare.conform.specification.settings import Setting


class Axes(OperatorParameter):
    """Several dimensions of one tensor, in any order; those below zero count from the last one."""

    kind: ParameterKind = "shape"
    unit = ""
    simplest = (0,)
    buckets = ("first", "inner", "last", "inner from the last", "several", "several from the last")

    def __init__(self, name: str, most_dimensions: int = 5) -> None:
        """Declare axes of tensors that have up to some number of dimensions."""
        self.name, self.most_dimensions = name, most_dimensions

    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting."""
        axes = _axes(setting)
        if not axes or not all(-self.most_dimensions <= a < self.most_dimensions for a in axes):
            raise ValueError(f"{self.name} {axes}")
        if len(axes) > 1:
            return "several from the last" if min(axes) < 0 else "several"
        one = axes[0]
        if one in (0, -1):
            return "last" if one else "first"
        return "inner" if one > 0 else "inner from the last"

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        return self.drawn(1 + int(rng.integers(self.most_dimensions)), rng)

    def drawn(self, rank: int, rng: np.random.Generator) -> tuple[int, ...]:
        """Return axes of a tensor that has a number of dimensions, at least one."""
        count = 1 if rng.random() < 2 / 3 else int(rng.integers(1, rank + 1))
        axes = rng.permutation(rank)[:count]
        if rng.random() < 3 / 4:
            axes.sort()
        return tuple(int(one) - rank if rng.random() < 1 / 3 else int(one) for one in axes)

    def simpler(self, setting: Setting) -> Iterator[Setting]:
        """Yield simpler settings."""
        axes = _axes(setting)
        if axes != self.simplest:
            yield self.simplest
        if len(axes) > 1:
            yield from (axes[:at] + axes[at + 1 :] for at in range(len(axes)))
            if axes != tuple(sorted(axes)):
                yield tuple(sorted(axes))


def within(axis: int, rank: int) -> int:
    """Return an axis counted from the first dimension, of a tensor that has it."""
    return axis + rank if axis < 0 else axis


def clipped(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Return the axes near some, each of them once, that a tensor of a rank has."""
    inside = [min(max(one, -rank), rank - 1) for one in axes]
    return tuple({within(one, rank): one for one in reversed(inside)}.values())[::-1]


def _axes(setting: Setting) -> tuple[int, ...]:
    if not isinstance(setting, tuple | list):
        raise TypeError(f"{setting!r} are no axes")
    return tuple(setting)
