"""What the translation of an operator is told of it, and how a refusal is worded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import GraphTensor

Array = Any
"""An array of jax's, float32, of the raw values of a tensor: whole numbers where it is quantized.

The raw values of quantized tensors are exact: float32 holds whole numbers up to 2^24."""


@dataclass(frozen=True)
class TranslatedOperator:
    """An operator that is to be translated.

    Attributes:
        name: "CONV_2D".
        place: what a message calls it, such as "model.tflite: operator 5, CONV_2D".
        options: its options by name.
        inputs: the tensors that it reads.
        output: the tensor that it writes.

    """

    name: str
    place: str
    options: Mapping[str, Any]
    inputs: Sequence[GraphTensor]
    output: GraphTensor

    @property
    def quantized(self) -> bool:
        """Whether it writes quantized values."""
        return bool(self.output.scales)

    def refuse(self, why: str) -> NoReturn:
        """Refuse to translate it.

        Raises:
            UserError: always.

        """
        raise UserError(f"{self.place}: {why}, which cannot be differentiated here")


Translation = Callable[[TranslatedOperator, Sequence[Array]], Array]
"""Returns the raw output of an operator for its raw inputs, constants among them.

It is called once while jax traces the network, and computes with arrays of jax's."""
