"""How the answers of the arms to one input are shown to people: one form for each kind of task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ClassesView:
    """The probabilities that arms give classes; of a model with several heads, those of one.

    Attributes:
        head: its name; empty where there is only one.
        classes: the names of the classes; numbered where there are none.
        probabilities: of each class, by arm.
        decisions: the class that each arm decided on; None where it failed.

    """

    head: str
    classes: tuple[str, ...]
    probabilities: Mapping[str, tuple[float, ...]]
    decisions: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class ThresholdView:
    """A score of each arm, and the threshold on whose sides decisions differ.

    Attributes:
        head: its name; empty where there is only one.
        threshold: in the unit of the scores.
        scores: by arm; None where it failed.

    """

    head: str
    threshold: float
    scores: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class RegressionView:
    """The values of each arm, and how far those of the compared arms are apart.

    Attributes:
        head: its name; empty where there is only one.
        values: (values,), by arm; None where it failed.
        names: of the values; numbered where there are none.
        compared: the two arms that the distance is of.
        distance: in the measure's unit; None where an arm failed.
        tolerance: the largest distance that is no deviation.
        measure: what the distance is, such as "relative distance".

    """

    head: str
    values: Mapping[str, NDArray[np.generic] | None]
    names: tuple[str, ...]
    compared: tuple[str, str]
    distance: float | None
    tolerance: float
    measure: str


AnswerView: TypeAlias = ClassesView | ThresholdView | RegressionView
"""What a task may choose from; a model with several heads has one for each."""
