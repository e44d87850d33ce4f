"""The settings of operators with windows: sizes, kernels, strides, dilation, padding.

Drawn sizes are halved or doubled until a model has about as many values as it should.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from edgeflare.conform.specification.model_parts import OptionOf, Place, SizeOf
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    OperatorParameter,
    Setting,
    Whole,
    whole,
    word,
)

SIZES = {"d": "depth", "h": "height", "w": "width"}
"""The names of dimensions, by the letter that parameters and options end with."""

PADDING = Choice("padding", ("VALID", "SAME"))

_LARGEST = 4096
"""Largest dimension in a model that a user brings."""

_WIDEST = 17
"""What windows that have to lie within a dimension reach when they are drawn."""


def size_parameter(name: str, high: int, rare: Sequence[int] = (), unit: str = "") -> Whole:
    """Return the parameter of a dimension that is at most `high` when it is drawn."""
    low = 0 if 0 in rare else 1
    return Whole(name, low, high, rare=rare, limit=_LARGEST, unit=unit)


def window_places(
    axes: str,
    high: int,
    *,
    dilated: int,
    kernel: Callable[[OperatorParameter, int], Place],
    data: int = 0,
) -> tuple[Place, ...]:
    """Return the places of sizes, kernels, strides, dilations and padding of windows along axes.

    Args:
        axes: letters of `SIZES`.
        high: the largest size that is drawn.
        dilated: the largest dilation that is drawn; 1 for operators that have none.
        kernel: returns the place of a kernel's size along one of the axes.
        data: the operand that windows are of, (batch, *sizes, channels).

    """

    def pixels(name: str, most: int) -> Whole:
        return size_parameter(name, most, unit="pixels")

    def option(name: str, most: int, schema: str) -> Place:
        return OptionOf(pixels(name, most), schema)

    sizes = [
        SizeOf(pixels(SIZES[a], high), at, len(axes) + 2, data) for at, a in enumerate(axes, 1)
    ]
    kernels = [kernel(pixels(f"kernel_{a}", 7), at) for at, a in enumerate(axes)]
    strides = [option(f"stride_{a}", 5, f"stride{a.upper()}") for a in axes]
    dilations = [option(f"dilation_{a}", dilated, f"dilation{a.upper()}Factor") for a in axes]
    padding = OptionOf(PADDING, "padding")
    return (*sizes, *kernels, *strides, *(dilations if dilated > 1 else []), padding)


def windows_of(configuration: Configuration, axes: str) -> tuple[Window, ...]:
    """Return the windows of a configuration, one for each of the axes."""
    padding = word(configuration, "padding")
    return tuple(
        Window(
            whole(configuration, SIZES[axis]),
            whole(configuration, f"kernel_{axis}"),
            whole(configuration, f"stride_{axis}"),
            whole(configuration, f"dilation_{axis}") if f"dilation_{axis}" in configuration else 1,
            padding,
        )
        for axis in axes
    )


def windows_fault(configuration: Configuration, axes: str) -> str | None:
    """Return why windows do not fit, None if they do."""
    for axis, window in zip(axes, windows_of(configuration, axes), strict=True):
        if window.padding == "VALID" and window.size < window.reach:
            return f"windows of {window.reach} do not fit into a {SIZES[axis]} of {window.size}"
    return None


def window_facts(configuration: Configuration, axes: str) -> dict[str, Setting]:
    """Return what follows from the settings of windows."""
    windows = windows_of(configuration, axes)
    found: dict[str, Setting] = {
        "kernel_size": prod(each.kernel for each in windows),
        "largest_stride": max(each.stride for each in windows),
    }
    for axis, window in zip(axes, windows, strict=True):
        found[f"windows_{axis}"] = window.count
        found[f"padded_{axis}"] = window.missing
        found[f"uneven_padding_{axis}"] = window.before != window.after
    return found


def tamed_windows(
    settings: Mapping[str, Setting], axes: str, rng: np.random.Generator
) -> dict[str, Setting]:
    """Return drawn settings with less dilation, and with windows that may fit into a tensor."""
    found = dict(settings)
    for axis, window in zip(axes, windows_of(settings, axes), strict=True):
        dilation = f"dilation_{axis}"
        if f"stride_{axis}" in settings and rng.random() < 1 / 3:
            found[f"stride_{axis}"] = 1
        too_wide = settings["padding"] == "VALID" and window.reach > _WIDEST
        if dilation in settings and (rng.random() < 1 / 2 or too_wide):
            found[dilation] = 1
    return found


def widened(settings: Mapping[str, Setting], axes: str) -> dict[str, Setting]:
    """Return settings whose sizes have room for a window at least."""
    found = dict(settings)
    if settings["padding"] == "VALID":
        for axis, window in zip(axes, windows_of(settings, axes), strict=True):
            found[SIZES[axis]] = max(window.size, window.reach)
    return found


@dataclass(frozen=True, slots=True)
class Window:
    """Windows along one dimension.

    Attributes:
        size: size of the dimension.
        kernel: values in a window.
        stride: distance from one window to the next.
        dilation: distance from one value of a window to the next.
        padding: "SAME", so that there are ⌈size / stride⌉ windows, or "VALID", so that all lie
            within the dimension.

    """

    size: int
    kernel: int
    stride: int
    dilation: int = 1
    padding: str = "VALID"

    @property
    def reach(self) -> int:
        """From the first value of a window to the last, both included."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def count(self) -> int:
        """Number of windows; not positive where the dimension is too small for one."""
        if self.padding == "SAME":
            return -(-self.size // self.stride)
        return (self.size - self.reach) // self.stride + 1

    @property
    def missing(self) -> int:
        """Number of values that are padded, before and after together."""
        if self.padding != "SAME":
            return 0
        return max((self.count - 1) * self.stride + self.reach - self.size, 0)

    @property
    def before(self) -> int:
        """Number of values that are padded before the first; an odd one more comes after."""
        return self.missing // 2

    @property
    def after(self) -> int:
        """Number of values that are padded after the last."""
        return self.missing - self.before


def window_values(
    values: NDArray[Any], windows: Sequence[Window], padded: float = 0.0
) -> NDArray[Any]:
    """Return the values in all windows.

    Args:
        values: (batch, *sizes, channels).
        windows: one for each of the sizes; each counts at least 0.
        padded: the value around them.

    Returns:
        (batch, *counts, *kernels, channels), a view that shares its memory.

    """
    around = [(0, 0), *((each.before, each.after) for each in windows), (0, 0)]
    wide = np.pad(values, around, constant_values=padded)
    batch, *steps, channel = wide.strides
    counts = [each.count for each in windows]
    kernels = [each.kernel for each in windows]
    moves = [step * window.stride for step, window in zip(steps, windows, strict=True)]
    within = [step * window.dilation for step, window in zip(steps, windows, strict=True)]
    shape = (wide.shape[0], *counts, *kernels, wide.shape[-1])
    return as_strided(wide, shape, (batch, *moves, *within, channel), writeable=False)


Work = tuple[int, int, int, int]
"""Values of the input, of the weights and of the result, and multiplications."""

_MOST: Work = (1000, 4000, 600, 100_000)
_WANTED = (5.0, 9.0)
"""Powers of 2 between which the wanted number of results is drawn: mean errors need many, and
kernels treat few in another way."""

_ATTEMPTS = 8


def fitted_sizes(
    settings: Mapping[str, Setting],
    sizes: Sequence[str],
    fitted: Callable[[Mapping[str, Setting]], dict[str, Setting]],
    work: Callable[[Configuration], Work],
    rng: np.random.Generator,
) -> dict[str, Setting]:
    """Return settings of a model of a suitable size, or nearly.

    Args:
        settings: as they are drawn.
        sizes: names of settings that may be changed.
        fitted: puts settings in order that do not fit each other.
        work: the work that a configuration makes.
        rng: draws how large the model should be, and what is doubled for it.

    """
    found = _shrunk(fitted(settings), sizes, fitted, work)
    wanted = 2 ** rng.uniform(*_WANTED)
    for _ in range(_ATTEMPTS):
        if not 0 < work(found)[2] < wanted:
            break
        name = sizes[int(rng.integers(len(sizes)))]
        doubled = fitted({**found, name: whole(found, name) * 2 + int(rng.integers(2))})
        if _small(work(doubled)):
            found = doubled
    return found


def _shrunk(
    settings: dict[str, Setting],
    sizes: Sequence[str],
    fitted: Callable[[Mapping[str, Setting]], dict[str, Setting]],
    work: Callable[[Configuration], Work],
) -> dict[str, Setting]:
    found, fixed = settings, set[str]()
    while len(fixed) < len(sizes) and not _small(work(found)):
        largest = max(
            (size for size in sizes if size not in fixed), key=lambda size: whole(found, size)
        )
        halved = fitted({**found, largest: max(whole(found, largest) // 2, 1)})
        if halved[largest] == found[largest]:
            fixed.add(largest)
        found = halved
    return found


def _small(work: Work) -> bool:
    return all(amount <= most for amount, most in zip(work, _MOST, strict=True))
