"""What is run on an open model before it counts as open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from edgeflare_agent.runtime.answers import TensorSpec


class Called(Protocol):
    """A model, or a clip of one, as it is called on an input.

    Attributes:
        inputs: what goes in.
        outputs: what comes out.

    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    def invoke(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run it once; see `OpenedModel.step`."""
        ...


def warm_up(model: Called, inputs_of_zeros: int) -> None:
    """Run a model on some inputs of zeros, and leave the answers."""
    inputs = _zeros(model.inputs)
    outputs = _zeros(model.outputs)
    for _ in range(inputs_of_zeros):
        model.invoke(inputs, outputs)


def _zeros(specs: tuple[TensorSpec, ...]) -> list[Any]:
    return [np.zeros(spec.shape, spec.dtype) for spec in specs]
