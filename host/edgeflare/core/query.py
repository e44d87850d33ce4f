"""What a search asks about one input, which arms it asks, and what they answer together.

A *translation* computes what a model computes, as a function that can be differentiated. It answers
in the place of original and twin, one input at a time, and its answers are no queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.input_space import Input


class Arm(str, Enum):
    """One of the three that answer: the original *f*, the twin *h*, the device *g*."""

    ORIGINAL = "original"
    TWIN = "twin"
    DEVICE = "device"

    # Answers are kept by arm: that of an Enum is a function in Python.
    __hash__ = str.__hash__

    def __str__(self) -> str:
        return self.value


Repetition = Literal["same", "varied", "changed"]
"""An answer beside an earlier one to the same input: the same to the bit; other outputs, which
decide or fail alike; or another decision or failure."""


class Query(msgspec.Struct, frozen=True):
    """One mutated input to be evaluated on some arms.

    Attributes:
        input: the mutated input.
        arms: arms that are asked; may be empty where kernel sets are named.
        kernels: further kernel sets of the twin that are asked, members of its ensemble.
        again: the input is one that was asked before, now on further arms: no query of its own.

    """

    input: Input
    arms: tuple[Arm, ...]
    kernels: tuple[str, ...] = ()
    again: bool = False


class EvaluatedQuery(msgspec.Struct, frozen=True):
    """The answers about one query.

    Attributes:
        outcome: what a strategy reads.
        raw: rows of raw outputs as a run keeps them (`kept_row`), by arm, or by kernel set for
            members of the twin's ensemble.
        seconds: this query's share of the evaluation time that its own arms and device spent.

    """

    outcome: Outcome
    raw: Mapping[Arm | str, bytes]
    seconds: float

    def repeated(self, before: EvaluatedQuery) -> Repetition:
        """Compare what the device answers with what it answered before to the same input."""
        now, then = self.outcome[Arm.DEVICE], before.outcome[Arm.DEVICE]
        if now.differs(then) or now.failure != then.failure:
            return "changed"
        return "same" if self.raw[Arm.DEVICE] == before.raw[Arm.DEVICE] else "varied"


class Outcome(msgspec.Struct, frozen=True):
    """The answers about one input.

    Attributes:
        answers: answers by arm; an arm that was not asked is absent.
        members: answers of the twin's ensemble, by kernel set.

    """

    answers: Mapping[Arm, Answer]
    members: Mapping[str, Answer] = msgspec.field(default_factory=dict)

    def __getitem__(self, arm: Arm) -> Answer:
        return self.answers[arm]


def same_decisions(one: Outcome, other: Outcome) -> bool:
    """Whether the same arms answered two times, and none of them decided differently."""
    return one.answers.keys() == other.answers.keys() and not any(
        answer.differs(other[arm]) for arm, answer in one.answers.items()
    )


def answers_by_arm(outcomes: Sequence[Outcome]) -> dict[Arm, list[Answer]]:
    """Return the answers of each arm that answered all of some outcomes, in their order."""
    return {
        arm: [outcome.answers[arm] for outcome in outcomes]
        for arm in Arm
        if all(arm in outcome.answers for outcome in outcomes)
    }


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
        covered: neurons of each arm that are covered, (neurons,) bool; empty where nobody asked.
            The neurons are the channels of all layers, in execution order.

    """

    outcome: Outcome
    scores: Mapping[Arm, NDArray[np.float64]]
    covered: Mapping[Arm, NDArray[np.bool_]] = field(default_factory=dict)


WhiteboxQuery = GradientQuery | TranslatedQuery
"""What only a pair can answer whose models are translated."""
