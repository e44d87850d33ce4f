"""What units did on some inputs: the numbers that an inspection is fed, block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.record.json_types import Count

ERROR_GRADIENT: Final = "error-gradient"
"""The behaviour that is a share of the margin's error: the error of a unit's values times the
gradient of the original's margin, summed over their positions."""

CHOOSING: Final = 0
HELD_OUT: Final = 1
"""The halves: units are chosen on one, and their figures are from the other."""


@dataclass(frozen=True, slots=True)
class UnitLayer:
    """A layer whose channels are units.

    The layer that gives the scores themselves is none of them: its channels are the classes, and
    two of these have all of the margin's error in any network.

    Attributes:
        name: name of the layer's operator, such as "CONV_2D".
        operator_index: position of its operator in the compressed model, in execution order.
        channels: how many units it has, one or more.

    """

    name: str
    operator_index: int
    channels: int

    def __str__(self) -> str:
        return f"{self.name} (operator {self.operator_index})"


@dataclass(frozen=True, slots=True)
class BehaviourBlock:
    """What units did on some inputs, and what else is known of these.

    Attributes:
        values: (inputs, units) float32 of each behaviour: the units of all layers, one layer after
            the other; the same behaviours in every block. Under `error-gradient` they have the sign
            of `margin_errors`.
        hypotheses: (inputs, hypotheses) float64, as `hypothesis_values` returns them.
        margin_errors: (inputs,) float64, the original's margin less the compressed model's, in
            scores. Read only where `error-gradient` is among the behaviours.
        groups: (inputs,) int64: inputs of one number belong together, such as a seed and its
            triggers. They lie in one half, and count as one where intervals are computed.
        halves: (inputs,) int8: `CHOOSING`, to choose units on, or `HELD_OUT`. Groups that are held
            out are independent of each other and of the others.
        strata: (inputs,) int64: hypotheses are permuted among inputs of one number, such as a
            bin of the margin; all 0 where any two inputs may be exchanged.

    """

    values: Mapping[str, NDArray[np.float32]]
    hypotheses: NDArray[np.float64]
    margin_errors: NDArray[np.float64]
    groups: NDArray[np.int64]
    halves: NDArray[np.int8]
    strata: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.groups)

    def part(self, rows: slice) -> BehaviourBlock:
        """Return some of the inputs, without copying."""
        return BehaviourBlock(
            {name: values[rows] for name, values in self.values.items()},
            self.hypotheses[rows], self.margin_errors[rows],
            self.groups[rows], self.halves[rows], self.strata[rows],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class InspectedUnit:
    """One channel of one layer.

    Attributes:
        layer: index of the layer among those inspected.
        channel: index of the channel in it.

    """

    layer: Count
    channel: Count


def unit_at(layers: Sequence[UnitLayer], index: int) -> InspectedUnit:
    """Return the unit at a position among those of all layers."""
    for number, layer in enumerate(layers):
        if index < layer.channels:
            return InspectedUnit(number, index)
        index -= layer.channels
    raise IndexError(index)


def layer_slices(layers: Sequence[UnitLayer]) -> list[slice]:
    """Return where the units of each layer are among those of all layers."""
    ends = list(accumulate(layer.channels for layer in layers))
    return [slice(end - layer.channels, end) for end, layer in zip(ends, layers, strict=True)]
