"""How the answers of the arms to one input are shown to people: one form for each kind of task.

The views of an entry are part of the run's document, so that reports need neither models nor tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

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


class TranscriptView(msgspec.Struct, frozen=True, tag_field="form", tag="transcript"):
    """The text of each arm.

    Attributes:
        head: as of `ClassesView`.
        separator: what stands between the words of a text.
        words: by arm, in their order; None where it failed.

    """

    head: str
    separator: str
    words: Mapping[str, tuple[str, ...] | None]


class ShownBox(msgspec.Struct, frozen=True):
    """An object that an arm detected.

    Attributes:
        box: left, top, right and bottom, as shares of the picture's width and height.
        score: from 0 to 1.
        label: the class, from 0.
        difference: the kind of deviation that it is part of, among the two compared arms; empty
            where it has a partner on the other arm, and for arms that are not compared.
        there: of one that vanished or appeared, the highest score that the other compared arm gives
            in its place, below the threshold too; 0 where it gives none, absent for all others.

    """

    box: tuple[float, ...]
    score: float
    label: int
    difference: str
    there: float | UnsetType = UNSET


class DetectionView(msgspec.Struct, frozen=True, tag_field="form", tag="detection"):
    """The objects that each arm detected.

    Attributes:
        head: as of `ClassesView`.
        classes: the names of the classes; numbered where there are none.
        threshold: the least score of an object.
        overlap: the least IoU of two partners.
        boxes: by arm, those with the highest scores first; None where it failed.

    """

    head: str
    classes: tuple[str, ...]
    threshold: float
    overlap: float
    boxes: Mapping[str, tuple[ShownBox, ...] | None]


class SegmentationView(msgspec.Struct, frozen=True, tag_field="form", tag="segmentation"):
    """The mask of each arm, and how far those of the compared arms are apart.

    Attributes:
        head: as of `ClassesView`.
        classes: the names of the classes; numbered where there are none.
        rows: of a mask as it is shown, which may have fewer than the model's.
        columns: likewise.
        masks: by arm, row by row in runs: a class, how many pixels in a row have it, the next
            class, and so on, separated by spaces; None where it failed.
        mean_iou: of the two compared arms, over the classes that either has; None where one failed.
        least_iou: the least that is no deviation.
        region: pixels of the largest connected region in which the two differ, at the model's own
            size; None where one failed.
        least_region: pixels of a region from which on it is a deviation; None where regions do not
            count.

    """

    head: str
    classes: tuple[str, ...]
    rows: int
    columns: int
    masks: Mapping[str, str | None]
    mean_iou: float | None
    least_iou: float
    region: int | None
    least_region: int | None


AnswerView: TypeAlias = (
    ClassesView | ThresholdView | RegressionView | TranscriptView | DetectionView | SegmentationView
)
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
