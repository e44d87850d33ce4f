"""A model's inputs and outputs as they are, before any task reads them; and rows of them.

A row has all tensors of one item. Rows are what batches carry, so that nothing between a model and
the decoder of its outputs has to know how many tensors there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError

Rounding = Literal["half-away", "half-even", "truncate"]
"""How an input is rounded to a whole number where it is quantized; see `quantize`."""

Layout = Literal["NHWC", "NCHW"]
"""The order of a tensor's dimensions: batch, height, width and channels, or the channels first."""

_HALF = 0.5
"""The least value that is rounded away from 0."""


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

    @property
    def range(self) -> tuple[float, float] | None:
        """The least and the greatest real value of a quantized tensor; None of any other."""
        if not self.scale or not self.dtype.startswith(("int", "uint")):
            return None
        ends = np.iinfo(self.dtype)
        low, high = ((end - self.zero_point) * self.scale for end in (ends.min, ends.max))
        return low, high


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


def in_one_order(first: Sequence[int], second: Sequence[int]) -> bool:
    """Whether the values of two shapes of one size stand in one order.

    They do where one shape is the other with neighbouring dimensions joined, such as (32, 32, 3)
    and (1024, 3), and not where dimensions are exchanged, as in (3, 32, 32).
    """
    ends = [set(accumulate(without_ones(shape), mul)) for shape in (first, second)]
    return ends[0] <= ends[1] or ends[1] <= ends[0]


def float_tensors(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return what quantized tensors stand for; others stay what they are."""
    return tuple(
        replace(tensor, dtype="float32", scale=0.0, zero_point=0) if tensor.scale else tensor
        for tensor in tensors
    )


def dequantize(raw: NDArray[np.generic], tensor: Tensor) -> NDArray[np.float64]:
    """Return the real values of raw ones: (raw - zero_point) * scale."""
    # A signalling NaN, as memory may hold that no operator wrote, becomes a quiet one.
    with np.errstate(invalid="ignore"):
        real = raw.astype(np.float64)
    if tensor.dtype == "float32" or not tensor.scale:
        return real
    return (real - tensor.zero_point) * tensor.scale


def quantize(
    inputs: NDArray[np.floating[Any]], tensor: Tensor, rounding: Rounding = "half-away"
) -> NDArray[np.generic]:
    """Quantize: divide by the scale in float32, add the zero point, round, and clip.

    Args:
        inputs: real values.
        tensor: says the type, the scale and the zero point.
        rounding: "half-away" as TFLite's reference Quantize, which rounds before it adds the zero
            point; "half-even", as numpy and Python round; "truncate", towards zero, as a cast to an
            integer does in C, Java and numpy. The last two round what has the zero point added, in
            float32 where the inputs are: what is nearly a half or a whole number mostly is one
            then.

    An integer tensor without quantization takes the rounded values themselves, a bool one whether
    they are not 0, and one of floats the values.

    Raises:
        UserError: the tensor is of another type.

    """
    if tensor.dtype.startswith("float"):
        return inputs.astype(tensor.dtype, copy=False)
    if tensor.dtype == "bool":
        return np.asarray(np.abs(inputs) >= _HALF, np.bool_)
    if not tensor.dtype.startswith(("int", "uint")):
        raise UserError(
            f"the tensor {tensor.name!r} is of type {tensor.dtype or 'unknown'}, which is given no"
            " values here: convert the model so that it reads numbers or bools"
        )
    limits = np.iinfo(tensor.dtype)
    steps = inputs if not tensor.scale else inputs / np.float32(tensor.scale)
    if rounding == "half-away":
        steps = steps.astype(np.float64)
        rounded = np.copysign(np.floor(np.abs(steps) + _HALF), steps) + tensor.zero_point
    else:
        whole = np.rint if rounding == "half-even" else np.trunc
        rounded = whole(steps + steps.dtype.type(tensor.zero_point)).astype(np.float64)
    quantized: NDArray[np.generic] = np.clip(rounded, limits.min, limits.max).astype(tensor.dtype)
    return quantized


@dataclass(frozen=True, slots=True)
class GivenRows:
    """What a model is given for a batch.

    Attributes:
        rows: inputs of the model; see `Evaluator`.
        features: the same before they were quantized, where the task reads them; else None.

    """

    rows: NDArray[np.generic]
    features: NDArray[np.generic] | None = None


def row_layout(tensors: Sequence[Tensor]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and the dtype of one row.

    Of one tensor it is the tensor itself, without a batch dimension of 1. Of several it is their
    bytes, one tensor behind the other: (bytes,), uint8.
    """
    if len(tensors) == 1:
        (tensor,) = tensors
        shape = tensor.shape[1:] if tensor.shape[:1] == (1,) else tensor.shape
        return shape, np.dtype(tensor.dtype)
    return (sum(map(tensor_bytes, tensors)),), np.dtype(np.uint8)


def tensor_bytes(tensor: Tensor) -> int:
    """Return the size of a tensor."""
    return prod(tensor.shape) * np.dtype(tensor.dtype).itemsize


def pack_rows(
    tensors: Sequence[Tensor], arrays: Sequence[NDArray[np.generic]]
) -> NDArray[np.generic]:
    """Return the rows of a batch.

    Args:
        tensors: the inputs or outputs of a model.
        arrays: one for each of them, (batch, *shape) in its dtype; dimensions of 1 may differ.

    Returns:
        (batch, *row), see `row_layout`.

    Raises:
        ValueError: an array has another size or dtype than its tensor.

    """
    batch = len(arrays[0])
    for tensor, array in zip(tensors, arrays, strict=True):
        if array.dtype != tensor.dtype or array.size != batch * prod(tensor.shape):
            raise ValueError(
                f"{tensor.name} is {array.dtype} {array.shape}, expected {tensor.dtype} "
                f"({batch}, {', '.join(map(str, tensor.shape))})"
            )
    shape, dtype = row_layout(tensors)
    if len(tensors) == 1:
        return arrays[0].reshape(batch, *shape)
    parts = [np.ascontiguousarray(array).reshape(batch, -1).view(dtype) for array in arrays]
    return np.concatenate(parts, axis=1)


def unpack_rows(
    tensors: Sequence[Tensor], rows: NDArray[np.generic]
) -> tuple[NDArray[np.generic], ...]:
    """Return the arrays of a batch's rows: one for each tensor, (batch, *shape) in its dtype."""
    batch = len(rows)
    raw = np.ascontiguousarray(rows).reshape(batch, -1).view(np.uint8)
    arrays = []
    start = 0
    for tensor in tensors:
        stop = start + tensor_bytes(tensor)
        part = np.ascontiguousarray(raw[:, start:stop]).view(tensor.dtype)
        arrays.append(part.reshape(batch, *tensor.shape))
        start = stop
    return tuple(arrays)


def unpack_tensor(
    tensors: Sequence[Tensor], rows: NDArray[np.generic], at: int
) -> NDArray[np.generic]:
    """Return the array of one tensor of a batch's rows: (batch, *shape) in its dtype.

    Args:
        tensors: the inputs or outputs of a model.
        rows: (batch, *row); see `row_layout`.
        at: the position of the tensor.

    Raises:
        ValueError: the rows are not as long as those of these tensors.

    """
    if len(tensors) == 1:
        return rows.reshape(len(rows), *tensors[0].shape)
    start = sum(map(tensor_bytes, tensors[:at]))
    raw = rows.reshape(len(rows), sum(map(tensor_bytes, tensors)))
    part = np.ascontiguousarray(raw[:, start : start + tensor_bytes(tensors[at])])
    return part.view(tensors[at].dtype).reshape(len(rows), *tensors[at].shape)
