"""How the answers of the arms to one input are shown to people: one form for each kind of task.

The views of an entry are part of the run's document, so that reports need neither models nor tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from edgeflare.core.answer import Answer


class ClassesView(msgspec.Struct, frozen=True, tag_field="form", tag="classes"):
    """The probabilities that arms give classes; of a model with several heads, those of one.

    Attributes:
        head: its name, or the frame of a clip; empty where there is only one.
        classes: the names of the classes; numbered where there are none.
        probabilities: of each class, by arm.
        decisions: the class that each arm decided on; None where it failed.

    """

    head: str
    classes: tuple[str, ...]
    probabilities: Mapping[str, tuple[float, ...]]
    decisions: Mapping[str, int | None]


class ThresholdView(msgspec.Struct, frozen=True, tag_field="form", tag="threshold"):
    """A score of each arm, and the threshold on whose sides decisions differ.

    Attributes:
        head: its name, or the frame of a clip; empty where there is only one.
        sides: the names of the two decisions, below and above.
        threshold: in the unit of the scores.
        scores: by arm; None where it failed.
        decisions: the side that each arm is on, 0 or 1; None where it failed.

    """

    head: str
    sides: tuple[str, ...]
    threshold: float
    scores: Mapping[str, float | None]
    decisions: Mapping[str, int | None]


class RegressionView(msgspec.Struct, frozen=True, tag_field="form", tag="values"):
    """How far the values of the two compared arms are apart, and those that differ most.

    Attributes:
        head: its name, or the frame of a clip; empty where there is only one.
        measure: what the distance is, such as "relative distance".
        distance: of the two compared arms, in the measure's unit; None where one failed.
        tolerance: the largest distance that is no deviation.
        compared: the two arms.
        size: how many values an arm gives.
        names: of the values below, as many.
        values: those that differ most between the compared arms, in their order, by arm; None where
            it failed.

    """

    head: str
    measure: str
    distance: float | None
    tolerance: float
    compared: tuple[str, ...]
    size: int
    names: tuple[str, ...]
    values: Mapping[str, tuple[float, ...] | None]


AnswerView: TypeAlias = ClassesView | ThresholdView | RegressionView
"""What a task may choose from; a model with several heads has one for each."""


def classes_view(head: str, answers: Mapping[str, Answer]) -> ClassesView:
    """Return the probabilities and decisions of one head, by arm."""
    return ClassesView(
        head,
        (),
        {
            arm: () if one.failure else tuple(round(p, 9) for p in one.probabilities.tolist())
            for arm, one in answers.items()
        },
        {arm: one.decision for arm, one in answers.items()},
    )
