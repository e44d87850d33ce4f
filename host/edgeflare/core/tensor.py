"""A model's inputs and outputs as they are, before any task reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Tensor:
    """One input or output of a model.

    Attributes:
        name: as the model calls it.
        shape: as the model declares it, the batch dimension included.
        dtype: numpy's name of the type, such as "int8" or "float32".
        scale: real = (raw - zero_point) * scale; 0 where the tensor is not quantized.
        zero_point: see scale.

    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float = 0.0
    zero_point: int = 0


@dataclass(frozen=True, slots=True)
class RawBatch:
    """A model's raw outputs on a batch.

    Attributes:
        outputs: (batch, size of one row); a failed input's row is zeros. Of a model with one
            output a row has its values, in the model's own dtype; of one with several it has their
            bytes, which `unpack_rows` takes apart.
        failures: why an input has no output, by its position: "crash", "hang" or "error".
        busy_seconds: time that the model was computing.
        details: what is known of a failure, by the same position: a signal, an exit code, the
            runtime's message. Nothing where that is unknown.

    """

    outputs: NDArray[np.generic]
    failures: Mapping[int, str] = field(default_factory=dict)
    busy_seconds: float = 0.0
    details: Mapping[int, str] = field(default_factory=dict)


def without_ones(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape without its dimensions of 1, in which tensors of one content may differ."""
    return tuple(size for size in shape if size != 1)


def dequantize(raw: NDArray[np.generic], tensor: Tensor) -> NDArray[np.float64]:
    """Return the real values of raw ones: (raw - zero_point) * scale."""
    real = raw.astype(np.float64)
    if tensor.dtype == "float32" or not tensor.scale:
        return real
    return (real - tensor.zero_point) * tensor.scale


def quantize(inputs: NDArray[np.floating[Any]], tensor: Tensor) -> NDArray[np.generic]:
    """Quantize as TFLite's reference Quantize does: divide in float32, halves away from zero, clip.

    An integer tensor without quantization takes the rounded values themselves.
    """
    if tensor.dtype == "float32":
        return inputs
    limits = np.iinfo(tensor.dtype)
    steps = inputs if not tensor.scale else inputs / np.float32(tensor.scale)
    steps = steps.astype(np.float64)
    rounded = np.copysign(np.floor(np.abs(steps) + 0.5), steps) + tensor.zero_point
    quantized: NDArray[np.generic] = np.clip(rounded, limits.min, limits.max).astype(tensor.dtype)
    return quantized
