"""Parameters that are several whole numbers: one for each dimension, or some of the dimensions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgeflare.conform.specification.parameter import (
    Dimensions,
    OperatorParameter,
    ParameterKind,
    Setting,
)


class WholeNumbers(OperatorParameter):
    """Whole numbers between two limits, such as the paddings before each dimension.

    Coverage tells apart which of them are not the usual one: a kernel may take the numbers of one
    dimension alone for those of another.
    """

    unit = ""

    def __init__(
        self,
        name: str,
        low: int,
        high: int,
        *,
        usual: int = 0,
        counts: tuple[int, int] = (0, 5),
        kind: ParameterKind = "mode",
    ) -> None:
        """Declare several numbers.

        Args:
            name: name of the parameter.
            low: the least of each.
            high: the greatest of each that is drawn; models that a user brings may have greater.
            usual: what most are, such as a padding of 0 or a stride of 1.
            counts: the least count of numbers, and the greatest that is drawn.
            kind: what it changes.

        """
        self.name, self.low, self.high, self.usual = name, low, high, usual
        self.counts, self.kind = counts, kind
        self.simplest = (usual,) * counts[0]
        self.buckets = (f"all {usual}", "first", "last", "between", "several")

    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting."""
        numbers = whole_numbers(setting)
        if len(numbers) < self.counts[0]:
            raise ValueError(f"{self.name} {numbers}")
        if any(chosen < self.low for chosen in numbers):
            raise ValueError(f"{self.name} {numbers}")
        places = [at for at, number in enumerate(numbers) if number != self.usual]
        if not places:
            return self.buckets[0]
        if len(places) > 1:
            return "several"
        # With one number alone, first and last are the same: the last, where most data lie.
        if places[0] == len(numbers) - 1:
            return "last"
        return "first" if places[0] == 0 else "between"

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        count = int(rng.integers(self.counts[0], self.counts[1] + 1))
        numbers = [int(number) for number in rng.integers(self.low, self.high + 1, count)]
        if count and rng.random() < 1 / 2:
            # One alone that is not the usual one, as often the last as elsewhere.
            kept = count - 1 if rng.random() < 1 / 2 else int(rng.integers(count))
            numbers = [number if at == kept else self.usual for at, number in enumerate(numbers)]
        return tuple(numbers)

    def simpler(self, setting: Setting) -> Iterator[Setting]:
        """Yield simpler settings."""
        numbers = whole_numbers(setting)
        if any(chosen != self.usual for chosen in numbers):
            yield (self.usual,) * len(numbers)
        if len(numbers) > self.counts[0]:
            yield from (numbers[:at] + numbers[at + 1 :] for at in range(len(numbers)))
        for at, number in enumerate(numbers):
            nearer = number - 1 if number > self.usual else number + 1
            for simpler in dict.fromkeys((self.usual, nearer)):
                if simpler != number != self.usual:
                    yield (*numbers[:at], simpler, *numbers[at + 1 :])


class Order(OperatorParameter):
    """An order of dimensions, such as the permutation of a transposition."""

    kind: ParameterKind = "mode"
    unit = ""
    simplest: Setting = (0,)
    buckets = ("as it is", "last stays", "reversed", "other")

    def __init__(self, name: str, most: int = 5) -> None:
        """Declare an order of at least one and at most so many dimensions."""
        self.name, self.most = name, most

    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting."""
        order = whole_numbers(setting)
        if sorted(order) != list(range(len(order))) or not 1 <= len(order) <= self.most:
            raise ValueError(f"{self.name} {order}")
        if order == tuple(range(len(order))):
            return "as it is"
        if order[-1] == len(order) - 1:
            return "last stays"
        return "reversed" if order == tuple(range(len(order)))[::-1] else "other"

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        count = int(rng.integers(1, self.most + 1))
        kind = self.buckets[int(rng.integers(4))]
        if kind == "as it is":
            return tuple(range(count))
        if kind == "reversed":
            return tuple(range(count))[::-1]
        if kind == "last stays":
            return (*map(int, rng.permutation(count - 1)), count - 1)
        return tuple(map(int, rng.permutation(count)))

    def simpler(self, setting: Setting) -> Iterator[Setting]:
        """Yield simpler settings."""
        order = whole_numbers(setting)
        plain = tuple(range(len(order)))
        if order != plain:
            yield plain
            for at in range(len(order) - 1):
                if order[at] > order[at + 1]:
                    yield (*order[:at], order[at + 1], order[at], *order[at + 2 :])


class NewShape(Dimensions):
    """A shape of which one dimension may be -1: what the others leave for it."""

    def __init__(self, name: str, ranks: tuple[int, int] = (0, 5)) -> None:
        """Declare a shape of a rank between two."""
        super().__init__(name, ranks)
        self.buckets = (*self.buckets, "a dimension of -1")

    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting."""
        shape = whole_numbers(setting)
        if shape.count(-1) == 1:
            super().bucket(tuple(abs(size) for size in shape))
            return "a dimension of -1"
        return super().bucket(shape)


def whole_numbers(setting: Setting) -> tuple[int, ...]:
    """Return a setting as numbers; TypeError if it is none."""
    if not isinstance(setting, tuple | list):
        raise TypeError(f"{setting!r} is no list of numbers")
    return tuple(setting)


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
        return tuple(int(axis) - rank if rng.random() < 1 / 3 else int(axis) for axis in axes)

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
    inside = [min(max(axis, -rank), rank - 1) for axis in axes]
    return tuple({within(axis, rank): axis for axis in reversed(inside)}.values())[::-1]


def _axes(setting: Setting) -> tuple[int, ...]:
    if not isinstance(setting, tuple | list):
        raise TypeError(f"{setting!r} are no axes")
    return tuple(setting)
