"""Windows of an input: overlapping parts of it, each of which is an inference.

A model that is given windows is called as one that is given the frames of a clip is, see
`edgeflare.models.evaluator.Invocation`: windows only say how the frames of an input overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.domain import Encoder
from edgeflare.core.tensor import Tensor, row_layout, without_ones
from edgeflare.errors import UserError
from edgeflare.keyword_settings import constructed
from edgeflare.record.json_types import JsonValue


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows along the first axis of an input, which is that of time.

    Attributes:
        length: number of rows of a window.
        step: number of rows from the begin of a window to that of the next.

    """

    length: int
    step: int

    def __post_init__(self) -> None:
        for key in ("length", "step"):
            if getattr(self, key) < 1:
                raise UserError(f"{key} has to be 1 or more, not {getattr(self, key)}")

    @classmethod
    def of(cls, settings: Mapping[str, JsonValue] | None) -> Windows | None:
        """Return the windows of a table of `pair.toml`; None where there is no table.

        Raises:
            UserError: it does not say both keys, or says others.

        """
        return None if settings is None else constructed(cls, settings, "windows")

    def count(self, rows: int) -> int:
        """Return how many windows so many rows have; rows that fill no further one are left out."""
        return 0 if rows < self.length else 1 + (rows - self.length) // self.step

    def rows(self, count: int) -> int:
        """Return how many rows so many windows have together."""
        return (count - 1) * self.step + self.length

    def row(self, tensor: Tensor, model: str) -> tuple[int, ...]:
        """Return the shape of a row of a model's input.

        Args:
            tensor: the input, (windows, *shape). The first axis of the shape, without a batch
                dimension of 1, is a window's; or it is the only axis, and a window is flat.
            model: what the user calls the model, for messages.

        Raises:
            UserError: no such window has the input's shape.

        """
        shape = tensor.shape[1:]
        if len(shape) > 1 and shape[0] == 1:
            shape = shape[1:]
        if self.length == 1:
            return shape
        if shape[:1] == (self.length,):
            return shape[1:]
        size = prod(shape)
        if len(without_ones(shape)) == 1 and size % self.length == 0:
            return (size // self.length,)
        raise UserError(
            f"{model}: input {tensor.name!r} has shape {tensor.shape[1:]}, which is no window of"
            f" {self.length} rows, (1, {self.length}, …) or (1, {self.length} times a row): correct"
            " length under windows, or convert the model so that time is the first axis"
        )

    def whole(self, tensor: Tensor, model: str = "the model") -> Tensor:
        """Return an input as of all rows at once: (rows, *row) for (windows, *shape)."""
        row = self.row(tensor, model)
        return replace(tensor, shape=(self.rows(tensor.shape[0]), *row))

    def cut(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the windows of rows: (batch, windows, length, …) for (batch, rows, …)."""
        cut = np.lib.stride_tricks.sliding_window_view(rows, self.length, axis=1)
        return np.moveaxis(cut[:, :: self.step], -1, 2)


class FeatureWindows:
    """Encodes an input as a whole, and cuts windows out of what comes of it."""

    def __init__(self, windows: Windows, encoder: Encoder, rows: int, tensor: Tensor) -> None:
        """Take the windows and the encoder of a whole input.

        Args:
            windows: windows to be cut.
            encoder: what encodes a whole input as so many rows.
            rows: number of rows of a whole input.
            tensor: the model's input, (windows, *shape).

        """
        self._windows, self._encoder, self._rows = windows, encoder, rows
        self._row, _ = row_layout([tensor])

    def encode(self, inputs: NDArray[Any]) -> NDArray[np.generic]:
        """Return the windows of inputs: (batch, windows, *shape), in the model's dtype."""
        encoded = self._encoder.encode(inputs).reshape(len(inputs), self._rows, -1)
        return np.ascontiguousarray(self._windows.cut(encoded)).reshape(len(inputs), *self._row)


class InputWindows:
    """Cuts windows out of an input, and encodes each by itself."""

    def __init__(self, windows: Windows, encoder: Encoder, tensor: Tensor) -> None:
        """Take the windows and the encoder of one of them.

        Args:
            windows: windows to be cut.
            encoder: what encodes a window.
            tensor: the model's input, (windows, *shape).

        """
        self._windows, self._encoder = windows, encoder
        self._row, _ = row_layout([tensor])

    def encode(self, inputs: NDArray[Any]) -> NDArray[np.generic]:
        """Return the windows of inputs: (batch, windows, *shape), in the model's dtype."""
        cut = np.ascontiguousarray(self._windows.cut(inputs))
        each = self._encoder.encode(cut.reshape(-1, *cut.shape[2:]))
        return each.reshape(len(inputs), *self._row)
