"""What a search asks about the inside of a pair's models: gradients, and what translations answer.

A *translation* computes what a model computes, as a function that can be differentiated. It answers
in the place of original and twin, one input at a time, and its answers are no queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.arm import Arm
from edgeflare.core.input_space import Input
from edgeflare.core.outcome import Outcome


@dataclass(frozen=True, slots=True)
class GradientQuery:
    """The gradient that is wanted of one arm: that of a weighted sum of its scores and neurons.

    It is answered by an array in the shape of the input: by how much the sum grows for each level
    that a value grows by.

    Attributes:
        input: where.
        arm: original or twin.
        weights: (choices,), of the arm's scores before a last softmax.
        neurons: the weights of single neurons, by their numbers; see `TranslatedOutcome`.

    """

    input: Input
    arm: Arm
    weights: NDArray[np.float64]
    neurons: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TranslatedQuery:
    """Inputs on which the translations of original and twin are evaluated.

    It is answered by a `TranslatedOutcome` for each.

    Attributes:
        inputs: where.
        coverage: the threshold above which a neuron counts as covered; None where nobody asks.

    """

    inputs: Sequence[Input]
    coverage: float | None = None


@dataclass(frozen=True, slots=True)
class TranslatedOutcome:
    """What the translations of original and twin answer about one input.

    Attributes:
        outcome: their answers, as the arms would give them.
        scores: (choices,) of each arm: real values, before a last softmax.
        covered: of each arm which neurons are covered, (neurons,) bool; empty where nobody asked.
            The neurons are the channels of all layers, in execution order.

    """

    outcome: Outcome
    scores: Mapping[Arm, NDArray[np.float64]]
    covered: Mapping[Arm, NDArray[np.bool_]] = field(default_factory=dict)


WhiteboxQuery = GradientQuery | TranslatedQuery
"""What only a pair can answer whose models are translated."""
