"""Where windows lie that slide along a dimension, and the values in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Window:
    """Windows along one dimension.

    Attributes:
        size: of the dimension.
        kernel: values in a window.
        stride: from one window to the next.
        dilation: from one value of a window to the next.
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
    around = [(0, 0), *((one.before, one.after) for one in windows), (0, 0)]
    wide = np.pad(values, around, constant_values=padded)
    batch, *steps, channel = wide.strides
    counts = [one.count for one in windows]
    kernels = [one.kernel for one in windows]
    moves = [step * one.stride for step, one in zip(steps, windows, strict=True)]
    within = [step * one.dilation for step, one in zip(steps, windows, strict=True)]
    shape = (wide.shape[0], *counts, *kernels, wide.shape[-1])
    return as_strided(wide, shape, (batch, *moves, *within, channel), writeable=False)
