"""What stands between arrays and a model's input: mean and spread, and quantization."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import Rounding, Tensor, quantize, row_layout
from edgeflare.errors import UserError


class ArrayEncoder:
    """Encodes arrays as a model's input: (value - mean) / std, quantized."""

    def __init__(
        self,
        mean: NDArray[np.float64],
        std: NDArray[np.float64],
        tensor: Tensor,
        rounding: Rounding = "half-away",
    ) -> None:
        """Take what is subtracted and divided by: one number, or one along the last axis.

        Raises:
            UserError: they are neither.

        """
        self._row, _ = row_layout([tensor])
        last = self._row[-1] if self._row else 1
        for key, values in (("mean", mean), ("std", std)):
            if values.ndim and values.shape != (last,):
                raise UserError(
                    f"{key} has {values.size} values, but input {tensor.name!r} has {last} along "
                    f"its last axis: give 1 or {last}"
                )
        self._mean, self._std, self._tensor = mean, std, tensor
        self._rounding: Rounding = rounding

    def encode(self, inputs: NDArray[Any]) -> NDArray[np.generic]:
        """Encode arrays.

        Args:
            inputs: (batch, *shape) of the domain's dtype.

        Returns:
            (batch, *input shape without a batch dimension of 1), C-contiguous, in the input's
            dtype.

        """
        rows = inputs.reshape(len(inputs), *self._row)
        scaled = (rows - self._mean) / self._std
        if self._tensor.dtype == "float32" or self._tensor.scale:
            scaled = scaled.astype(np.float32)  # as TFLite quantizes; else float32 loses digits
        return np.ascontiguousarray(quantize(scaled, self._tensor, self._rounding))

    def pulled_back(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a gradient by the values of an array; see `DifferentiableEncoder`."""
        return gradient.reshape(self._row) / self._std
