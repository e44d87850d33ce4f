"""What RNN and LSTM of two directions have in common.

The backward direction begins with the last step. A second sequence is multiplied with weights of
its own in both directions, or read by the backward direction in place of the first.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final, Protocol

import numpy as np

from edgeflare.conform.operator_graph import GraphValue
from edgeflare.conform.operators.recurrent.bounded_reals import BoundedReals
from edgeflare.conform.operators.recurrent.recurrent_operator import (
    RecurrentOperator,
    RecurrentTensor,
    RecurrentTensors,
)
from edgeflare.conform.specification.model_parts import ModelParts, OptionOf, Place, ReadFrom
from edgeflare.conform.specification.operand import Reals
from edgeflare.conform.specification.parameter import Choice, Configuration, whole, word, yes

_AUXILIARY: Final = Choice("auxiliary", ("none", "weighted", "backward"))
"""What a second sequence is for."""


class Direction(Protocol):
    """A direction of a recurrent operator."""

    def tensors(self) -> RecurrentTensors:
        """Return the tensors that it reads besides the sequence."""
        ...

    def steps(
        self, sequence: Reals, read: Mapping[int, Reals], auxiliary: Reals | None = None
    ) -> Iterator[BoundedReals]:
        """Yield the results after each step: (batch, width).

        Args:
            sequence: (steps, batch, features), the first step first.
            read: all tensors by their places.
            auxiliary: a second sequence that has weights, in the same order.

        """
        ...


def direction_places(sequence: int, weights: int) -> tuple[Place, ...]:
    """Return the places of what says how two directions are joined, and what is read besides.

    Args:
        sequence: the operand that is a second sequence.
        weights: an operand that there is where that has weights.

    """

    def auxiliary(parts: ModelParts) -> str:
        if weights in parts.tensors:
            return "weighted"
        return "backward" if sequence in parts.tensors else "none"

    merged = OptionOf(Choice("merged", (False, True)), "mergeOutputs", default=False)
    return merged, ReadFrom(_AUXILIARY, auxiliary)


@dataclass(frozen=True, eq=False)
class BidirectionalOperator(RecurrentOperator):
    """An operator that goes over a sequence in both directions.

    Attributes:
        second: the operand that is a second sequence.
        width_settings: the settings that are the last dimensions of the directions' results.

    """

    _: KW_ONLY
    second: int
    width_settings: tuple[str, str]

    @abstractmethod
    def directions(
        self, configuration: Configuration, *, rounds: bool
    ) -> tuple[Direction, Direction]:
        """Return the forward and the backward direction.

        Args:
            configuration: the operator's settings.
            rounds: whether what is multiplied with weights is rounded to eight bits.

        """

    def tensors(self, configuration: Configuration) -> RecurrentTensors:
        """Return the tensors that are read besides the sequence."""
        forward, backward = self.directions(configuration, rounds=False)
        found = {**forward.tensors(), **backward.tensors()}
        if word(configuration, "auxiliary") != "none":
            order = ("steps", "batch") if yes(configuration, "time_major") else ("batch", "steps")
            shape = tuple(whole(configuration, name) for name in (*order, "features"))
            found[self.second] = RecurrentTensor("given", shape)
        return found

    def widths(self, configuration: Configuration) -> tuple[int, ...]:
        """Return the last dimension of each result."""
        widths = tuple(whole(configuration, name) for name in self.width_settings)
        return (sum(widths),) if yes(configuration, "merged") else widths

    def run(
        self,
        configuration: Configuration,
        sequence: Reals,
        read: Mapping[int, Reals],
        rounds: bool,
        tensors: Mapping[int, GraphValue],
    ) -> Sequence[Sequence[BoundedReals]]:
        """Return what each result is at each step."""
        del tensors
        use = word(configuration, "auxiliary")
        ahead, back = self.directions(configuration, rounds=rounds)
        reverse = read[self.second] if use == "backward" else sequence
        weighted = read[self.second] if use == "weighted" else None
        forward = list(ahead.steps(sequence, read, weighted))
        weighted = None if weighted is None else weighted[::-1]
        backward = list(back.steps(reverse[::-1], read, weighted))[::-1]
        if yes(configuration, "merged"):
            return [[_concatenated(both) for both in zip(forward, backward, strict=True)]]
        return [forward, backward]


def _concatenated(parts: Sequence[BoundedReals]) -> BoundedReals:
    """Return values side by side in the last dimension."""
    return BoundedReals(
        np.concatenate([part.values for part in parts], axis=-1),
        np.concatenate([part.bound for part in parts], axis=-1),
    )
