"""The parameters of operators: what they may be, what is drawn, and what coverage counts.

The settings of a configuration are theirs, each as its Python type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import log2, prod
from typing import Literal

import numpy as np

ParameterKind = Literal["shape", "mode", "quantization"]
"""What a parameter changes: shapes of tensors, what is computed, or scales and zero points."""

_RARELY = 1 / 24
"""The share of draws that have a rare setting, such as a dimension of size zero. A model has
several dimensions, and one of size zero leaves nothing to compare."""


class OperatorParameter(ABC):
    """One parameter of an operator.

    Attributes:
        name: name in configurations, conditions and reports.
        kind: what it changes.
        unit: parameters of one unit are compared with each other in conditions, such as
            "stride_w > kernel_w"; empty where that would mean nothing.
        simplest: the setting that a finding is shrunk towards.
        buckets: the settings that coverage tells apart, by name.

    """

    name: str
    kind: ParameterKind
    unit: str
    simplest: Setting
    buckets: tuple[str, ...]

    @abstractmethod
    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting; ValueError for one out of range."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting, each bucket about as often as the others but for rare ones."""

    def simpler(self, setting: Setting) -> Iterator[Setting]:
        """Yield simpler settings than one, the simplest first; here that alone."""
        if setting != self.simplest:
            yield self.simplest

    def fault(self, setting: Setting) -> str | None:
        """Return why a setting is out of range, None if it is not."""
        try:
            self.bucket(setting)
        except (ValueError, TypeError):
            return f"{self.name} is {setting}, none of {', '.join(self.buckets)}"
        return None


class Choice(OperatorParameter):
    """One of a few settings, the first of which is the simplest."""

    unit = ""

    def __init__(
        self, name: str, settings: Sequence[bool | int | str], kind: ParameterKind = "mode"
    ) -> None:
        self.name, self.kind, self.settings = name, kind, tuple(settings)
        self.simplest = self.settings[0]
        self.buckets = tuple(map(str, self.settings))

    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting."""
        return self.buckets[[str(choice) for choice in self.settings].index(str(setting))]

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        return self.settings[int(rng.integers(len(self.settings)))]

    def simpler(self, setting: Setting) -> Iterator[Setting]:
        """Yield simpler settings."""
        yield from self.settings[: self.buckets.index(self.bucket(setting))]


class Whole(OperatorParameter):
    """A whole number between two limits."""

    def __init__(
        self,
        name: str,
        low: int,
        high: int,
        *,
        simplest: int | None = None,
        rare: Sequence[int] = (),
        limit: int | None = None,
        kind: ParameterKind = "shape",
        unit: str = "",
    ) -> None:
        """Declare a number.

        Args:
            name: name of the parameter.
            low: the least setting.
            high: the greatest one that is drawn.
            simplest: the setting that is shrunk to; None for the least that is not rare.
            rare: settings that are seldom drawn, such as the size 0.
            limit: the greatest setting, such as a size in a model that a user brings; None for
                `high`. What is beyond `high` is in the last bucket.
            kind: what it changes.
            unit: see `OperatorParameter`.

        """
        self.name, self.low, self.high, self.kind, self.unit = name, low, high, kind, unit
        self.limit, self.rare = high if limit is None else limit, tuple(rare)
        usual = [common for common in range(low, high + 1) if common not in self.rare]
        self.simplest = usual[0] if simplest is None else simplest
        starts = [
            start for start in (0, 1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256) if low < start <= high
        ]
        self._starts = (low, *starts, high + 1)
        self.buckets = tuple(
            str(begin) if end == begin + 1 else f"{begin} to {end - 1}"
            for begin, end in pairwise(self._starts)
        )

    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting."""
        number = _whole(setting)
        if not self.low <= number <= self.limit:
            raise ValueError(f"{self.name} {number}")
        at = bisect_right(self._starts, number) - 1
        return self.buckets[min(at, len(self.buckets) - 1)]

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        if self.rare and rng.random() < _RARELY:
            return self.rare[int(rng.integers(len(self.rare)))]
        while True:
            at = int(rng.integers(len(self.buckets)))
            number = int(rng.integers(self._starts[at], self._starts[at + 1]))
            if number not in self.rare:
                return number

    def simpler(self, setting: Setting) -> Iterator[Setting]:
        """Yield simpler settings."""
        number, goal = _whole(setting), _whole(self.simplest)
        if number == goal:
            return
        yield goal
        step = 1 if goal < number else -1
        middle = (number + goal) // 2
        if middle not in (number, goal):
            yield middle
        if number - step not in (goal, middle):
            yield number - step


class ScaleParameter(OperatorParameter):
    """A scale of quantization: any number between two powers of 2."""

    kind: ParameterKind = "quantization"
    unit = "scale"
    simplest = 1.0

    def __init__(self, name: str, low: int = -12, high: int = 10) -> None:
        """Declare a scale between 2 to the power of `low` and of `high`."""
        self.name, self.low, self.high = name, low, high
        self._edges = sorted({low, -6, -3, 0, 3, 6, high} & set(range(low, high + 1)))
        self.buckets = tuple(f"2^{a} to 2^{b}" for a, b in pairwise(self._edges))

    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting."""
        if not _number(setting) > 0:
            raise ValueError(f"{self.name} {setting}")
        at = bisect_right(self._edges, log2(_number(setting))) - 1
        # The scales of a model that a user brings may be beyond those that are drawn.
        return self.buckets[min(max(at, 0), len(self.buckets) - 1)]

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        at = int(rng.integers(len(self.buckets)))
        return float(np.float32(2 ** rng.uniform(self._edges[at], self._edges[at + 1])))

    def simpler(self, setting: Setting) -> Iterator[Setting]:
        """Yield simpler settings."""
        number = _number(setting)
        rounded = float(2.0 ** round(log2(number)))
        yield from dict.fromkeys(simple for simple in (1.0, rounded) if simple != number)


class ZeroPoint(OperatorParameter):
    """A zero point of a quantized type, both ends of which have buckets of their own."""

    kind: ParameterKind = "quantization"
    unit = "zero point"

    def __init__(self, name: str, dtype: str) -> None:
        """Declare a zero point of a numpy type."""
        known = np.iinfo(dtype)
        self.name, self.low, self.high = name, int(known.min), int(known.max)
        self._middle = 128 if dtype == "uint8" else 0
        self.simplest = self._middle
        self.buckets = ("lowest", "between", "highest", "middle")

    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting."""
        number = _whole(setting)
        if not self.low <= number <= self.high:
            raise ValueError(f"{self.name} {number}")
        ends = {self.low: "lowest", self.high: "highest", self._middle: "middle"}
        return ends.get(number, "between")

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        drawn = int(rng.integers(self.low, self.high + 1))
        choices = (self.low, drawn, self.high, self._middle, drawn)
        return choices[int(rng.integers(len(choices)))]


class Dimensions(OperatorParameter):
    """The shape of a tensor, of any rank between two."""

    kind: ParameterKind = "shape"
    unit = ""

    def __init__(
        self, name: str, ranks: tuple[int, int] = (0, 5), *, most_values: int = 600
    ) -> None:
        """Declare a shape.

        Args:
            name: name of the parameter.
            ranks: the least and the greatest number of dimensions.
            most_values: the most values of a tensor of such a shape.

        """
        self.name, self.ranks, self.most_values = name, ranks, most_values
        self.simplest = (1,) * ranks[0]
        ranked = tuple(f"rank {rank}" for rank in range(ranks[0], ranks[1] + 1))
        self.buckets = (*ranked, "a dimension of 0") if ranks[1] else ranked

    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting."""
        shape = _shape(setting)
        if not self.ranks[0] <= len(shape) <= self.ranks[1] or any(size < 0 for size in shape):
            raise ValueError(f"{self.name} {shape}")
        return "a dimension of 0" if 0 in shape else f"rank {len(shape)}"

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        rank = int(rng.integers(self.ranks[0], self.ranks[1] + 1))
        shape = [drawn_size(rng) for _ in range(rank)]
        while prod(shape) > self.most_values:
            at = shape.index(max(shape))
            shape[at] = max(1, shape[at] // 2)
        if rank and rng.random() < _RARELY:
            shape[int(rng.integers(rank))] = 0
        return tuple(shape)

    def simpler(self, setting: Setting) -> Iterator[Setting]:
        """Yield simpler settings."""
        shape = _shape(setting)
        if len(shape) > self.ranks[0]:
            yield from (shape[:at] + shape[at + 1 :] for at in range(len(shape)))
        for at, size in enumerate(shape):
            for smaller in dict.fromkeys((1, size // 2, size - 1)):
                if 0 < smaller < size:
                    yield (*shape[:at], smaller, *shape[at + 1 :])


def drawn_size(rng: np.random.Generator) -> int:
    """Return the size of a dimension: mostly small, often odd, sometimes 1."""
    sizes = (1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 33)
    return sizes[int(rng.integers(len(sizes)))]


def _whole(setting: Setting) -> int:
    if not isinstance(setting, int):
        raise TypeError(f"{setting!r} is no whole number")
    return int(setting)


def _number(setting: Setting) -> float:
    if not isinstance(setting, int | float):
        raise TypeError(f"{setting!r} is no number")
    return float(setting)


def _shape(setting: Setting) -> tuple[int, ...]:
    if not isinstance(setting, tuple | list):
        raise TypeError(f"{setting!r} is no shape")
    return tuple(setting)


Setting = bool | int | float | str | tuple[int, ...]
"""The value of a parameter."""

Configuration = Mapping[str, Setting]
"""The settings of all parameters of an operator, by name."""

Settings = dict[str, Setting]
"""The same, while it is drawn, fitted or read."""


def whole(configuration: Configuration, name: str) -> int:
    """Return a whole number; TypeError if the setting is none."""
    setting = configuration[name]
    if not isinstance(setting, int):
        raise TypeError(f"{name} is {setting!r}, no whole number")
    return int(setting)


def number(configuration: Configuration, name: str) -> float:
    """Return a number; TypeError if the setting is none."""
    setting = configuration[name]
    if not isinstance(setting, int | float):
        raise TypeError(f"{name} is {setting!r}, no number")
    return float(setting)


def word(configuration: Configuration, name: str) -> str:
    """Return a word; TypeError if the setting is none."""
    setting = configuration[name]
    if not isinstance(setting, str):
        raise TypeError(f"{name} is {setting!r}, no word")
    return setting


def yes(configuration: Configuration, name: str) -> bool:
    """Return whether a setting is on; TypeError if it is neither on nor off."""
    setting = configuration[name]
    if not isinstance(setting, bool):
        raise TypeError(f"{name} is {setting!r}, neither true nor false")
    return setting


def dimensions(configuration: Configuration, name: str) -> tuple[int, ...]:
    """Return a shape, or other whole numbers; TypeError if the setting is none."""
    setting = configuration[name]
    if not isinstance(setting, tuple | list):
        raise TypeError(f"{name} is {setting!r}, no shape")
    return tuple(setting)
