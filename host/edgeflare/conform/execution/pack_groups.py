"""Which models go into one file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.conform.execution.kernel_arm import PosedModel

_SUSPICIOUS = 0.01
"""Odds from which on a model is kept apart from ordinary ones, which it would stop."""

_MOST_ODDS = 0.7
"""Sum of the odds of a file's models. Above it, fewer at a time need fewer processes to find
those that fail (group testing: files of 0.69 ÷ odds)."""


@dataclass(frozen=True, slots=True)
class PackLimits:
    """How large a file may be.

    Attributes:
        models: in it. A process takes far longer to start than hundreds of them to run.
        tensors: of all models, each of which costs some microseconds for each row.
        bytes: of all tensors, constants included: so that a row ends long before it counts as
            hanging.
        row_bytes: of all inputs, and of all outputs: what one message carries.

    """

    models: int = 400
    tensors: int = 8000
    bytes: int = 4 << 20
    row_bytes: int = 16 << 20


@dataclass(frozen=True, slots=True)
class _Size:
    """What models take of the limits; odds are those of any of them giving no answer."""

    models: int = 0
    tensors: int = 0
    bytes: int = 0
    given: int = 0
    answered: int = 0
    odds: float = 0.0

    def with_(self, other: _Size) -> _Size:
        return _Size(
            self.models + other.models,
            self.tensors + other.tensors,
            self.bytes + other.bytes,
            self.given + other.given,
            self.answered + other.answered,
            self.odds + other.odds,
        )

    def within(self, limits: PackLimits) -> bool:
        return (
            self.models <= limits.models
            and self.tensors <= limits.tensors
            and self.bytes <= limits.bytes
            and max(self.given, self.answered) <= limits.row_bytes
            and self.odds <= _MOST_ODDS
        )


def next_group(
    models: Sequence[PosedModel],
    places: Sequence[int],
    odds: Callable[[int], float],
    limits: PackLimits,
) -> list[int]:
    """Return the places of the models that go into one file next, ordinary ones first.

    Args:
        models: all models.
        places: those of the models that are left, at least one.
        odds: how likely the model of a place is to give no answer.
        limits: of one file; a model beyond them goes alone.

    Returns:
        At least one place.

    """
    ordinary = [at for at in places if odds(at) <= _SUSPICIOUS]
    group: list[int] = []
    size = _Size()
    for at in ordinary or places:
        size = size.with_(_size(models[at], odds(at)))
        if group and not size.within(limits):
            break
        group.append(at)
    return group


def model_bytes(model: PosedModel) -> int:
    """Return the size of all tensors of a model."""
    graph = model.graph
    return _bytes(model, range(len(graph.values)))


def _size(model: PosedModel, odds: float) -> _Size:
    graph = model.graph
    given, answered = _bytes(model, graph.inputs), _bytes(model, graph.outputs)
    return _Size(1, len(graph.values), model_bytes(model), given, answered, odds)


def _bytes(model: PosedModel, tensors: Sequence[int]) -> int:
    values = model.graph.values
    return sum(values[at].size * np.dtype(values[at].dtype).itemsize for at in tensors)
