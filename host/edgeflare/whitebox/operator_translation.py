"""What the translation of an operator is told of it, and the arithmetic of quantized outputs.

A rounded value is a step function, whose gradient is 0. Its straight-through gradient is that of
the value before rounding: Bengio et al., "Estimating or Propagating Gradients Through Stochastic
Neurons", arXiv 1308.3432, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NoReturn

import numpy as np

from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import GraphTensor
from edgeflare.whitebox.array_library import jnp, lax

Array = Any
"""An array of jax's, float32, of the raw values of a tensor: whole numbers where it is quantized.

The raw values of quantized tensors are exact: float32 holds whole numbers up to 2^24."""


@dataclass(frozen=True)
class TranslatedOperator:
    """An operator that is to be translated.

    Attributes:
        name: "CONV_2D".
        place: what a message calls it, such as "model.tflite: operator 5, CONV_2D".
        options: options by name.
        inputs: the tensors that it reads.
        output: the tensor that it writes, of several that whose values are wanted.
        at: position of that tensor among all that it writes.

    """

    name: str
    place: str
    options: Mapping[str, Any]
    inputs: Sequence[GraphTensor]
    output: GraphTensor
    at: int = 0

    @property
    def quantized(self) -> bool:
        """Whether it writes quantized values."""
        return bool(self.output.scales)

    def refuse(self, why: str) -> NoReturn:
        """Refuse to translate it."""
        raise UserError(f"{self.place}: {why}, which cannot be differentiated here")


Translation = Callable[[TranslatedOperator, Sequence[Array]], Array]
"""Returns the raw output of an operator for its raw inputs, constants among them; of several
outputs the one that it is told.

It is called once while jax traces the network, and computes with arrays of jax's."""


class FusedActivation(IntEnum):
    """The activations that a file may fuse into an operator, by their numbers in it."""

    NONE = 0
    RELU = 1
    RELU_N1_TO_1 = 2
    RELU6 = 3


_REAL_LIMITS = {
    FusedActivation.NONE: (-np.inf, np.inf),
    FusedActivation.RELU: (0.0, np.inf),
    FusedActivation.RELU_N1_TO_1: (-1.0, 1.0),
    FusedActivation.RELU6: (0.0, 6.0),
}


def straight_through(real: Array, exact: Array) -> Array:
    """Return exact values, with the gradient of the real ones that they are rounded from."""
    return real + lax.stop_gradient(exact - real)


def rounded(real: Array) -> Array:
    """Return the nearest whole numbers, halves to even ones, with a straight-through gradient."""
    return straight_through(real, jnp.round(real))


def activated(operator: TranslatedOperator, real: Array) -> Array:
    """Return float values with the operator's fused activation."""
    low, high = _REAL_LIMITS[_activation(operator)]
    return real if (low, high) == (-np.inf, np.inf) else jnp.clip(real, low, high)


def requantized(operator: TranslatedOperator, scaled: Array) -> Array:
    """Return values in units of the output's scale as the output has them: whole, and clipped.

    XNNPACK clips before it rounds, and then adds the zero point.
    """
    zero_point = operator.output.zero_points[0]
    low, high = quantized_limits(operator)
    return rounded(jnp.clip(scaled, low - zero_point, high - zero_point)) + zero_point


def clipped(operator: TranslatedOperator, raw: Array) -> Array:
    """Return raw values within the limits of the output and of its fused activation."""
    return jnp.clip(raw, *quantized_limits(operator))


def quantized_limits(operator: TranslatedOperator) -> tuple[int, int]:
    """Return the least and largest raw value that an operator writes."""
    tensor = operator.output
    limits = np.iinfo(tensor.dtype)
    low, high = _REAL_LIMITS[_activation(operator)]
    scale, zero_point = tensor.scales[0], tensor.zero_points[0]
    return (
        int(max(limits.min, limits.min if low == -np.inf else zero_point + round(low / scale))),
        int(min(limits.max, limits.max if high == np.inf else zero_point + round(high / scale))),
    )


def one_scale(operator: TranslatedOperator, tensor: GraphTensor) -> np.float32:
    """Return the scale of a tensor that has one for all its values.

    Raises:
        UserError: it has none, or several.

    """
    if len(tensor.scales) != 1 or tensor.dtype not in ("int8", "uint8"):
        operator.refuse(
            f"tensor {tensor.name!r} is {tensor.type_name} with {len(tensor.scales)} scales"
        )
    scale: np.float32 = np.float32(tensor.scales[0])
    return scale


def _activation(operator: TranslatedOperator) -> FusedActivation:
    number = int(operator.options.get("fusedActivationFunction", 0))
    if number not in _REAL_LIMITS:
        operator.refuse(f"it fuses the activation {number}")
    return FusedActivation(number)
