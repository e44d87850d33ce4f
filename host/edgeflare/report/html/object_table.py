"""The objects that the arms detected: boxes to be drawn upon the picture, and a table of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from edgeflare.core.answer_view import DetectionView, ShownBox
from edgeflare.report.entry_names import ARMS, class_name
from edgeflare.report.html.drawn_box import DrawnBox, drawn_box
from edgeflare.report.structured_answers import score_there

OBJECTS = 12
"""Objects of an arm that a card shows, those that make the difference first."""


@dataclass(frozen=True, slots=True)
class ObjectRow:
    """An object: its number in the picture where it differs, its arm, class, score and kind."""

    number: str
    arm: str
    name: str
    score: str
    kind: str


@dataclass(frozen=True, slots=True)
class ObjectTable:
    """The objects that the arms detected in an input.

    Attributes:
        head: of the model; empty where it has only one.
        what: the input that they are of, "seed" or "trigger".
        threshold: the least score of an object.
        overlap: the least IoU of two partners.
        arms: those that answered.
        rows: an object each; numbered are those that make the compared arms differ.
        boxes: where they are in the picture.
        more: how many are left out.

    """

    kind: ClassVar[str] = "objects"
    head: str
    what: str
    threshold: float
    overlap: float
    arms: tuple[str, ...]
    rows: tuple[ObjectRow, ...]
    boxes: tuple[DrawnBox, ...]
    more: int


def object_table(view: DetectionView, what: str) -> ObjectTable:
    """Return the objects of the arms, in the order of the arms.

    Args:
        view: of the answers.
        what: the input that they are of, "seed" or "trigger".

    """
    arms = tuple(arm for arm in ARMS if view.boxes.get(arm) is not None)
    shown = [(arm, one) for arm in arms for one in _first(view.boxes[arm] or ())]
    rows, boxes, number = [], [], 0
    for arm, one in shown:
        number += bool(one.difference)
        named = str(number) if one.difference else ""
        name, score = class_name(view.classes, one.label), f"{one.score:.4g}"
        kind = one.difference.replace("-", " ") + score_there(one)
        rows.append(ObjectRow(named, arm, name, score, kind))
        title = f"{arm}: {name} {score}" + (f", {kind}" if kind else "")
        boxes.append(drawn_box(one.box, arm, named, title))
    total = sum(len(view.boxes[arm] or ()) for arm in arms)
    return ObjectTable(
        head=view.head,
        what=what,
        threshold=view.threshold,
        overlap=view.overlap,
        arms=arms,
        rows=tuple(rows),
        boxes=tuple(boxes),
        more=total - len(shown),
    )


def _first(boxes: Sequence[ShownBox]) -> list[ShownBox]:
    return sorted(boxes, key=lambda one: not one.difference)[:OBJECTS]
