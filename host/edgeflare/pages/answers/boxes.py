"""Detected objects, and the boxes around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from edgeflare.pages.answers.answer_form import (
    ARMS,
    LARGEST_CLASS,
    AnswerBlock,
    AnsweredInput,
    AnswerForm,
    AnswerWords,
    Cell,
    DrawnBox,
    class_name,
)
from edgeflare.record.json_types import Count, Share

if TYPE_CHECKING:
    from typing_extensions import Self

OBJECTS = 10_000
"""Objects that an arm detected in one input."""

NAMED = 3
"""Objects of an arm that are named in a line."""

SHOWN = 12
"""Objects of an arm that a card shows."""


class ShownBox(msgspec.Struct, frozen=True):
    """An object that an arm detected.

    Attributes:
        box: left, top, right and bottom, as shares of the picture's width and height.
        score: score of the object, from 0 to 1.
        label: the class, from 0.
        difference: the kind of deviation that it is part of, among the two compared arms; empty
            where it has a partner on the other arm, and for arms that are not compared.
        there: highest score that the other compared arm gives in the place of an object that
            vanished or appeared, below the threshold too; 0 where it gives none. Absent for all
            others.

    """

    box: Annotated[tuple[float, ...], msgspec.Meta(min_length=4, max_length=4)]
    score: float
    label: Count
    difference: str
    there: Share | UnsetType = UNSET

    @property
    def elsewhere(self) -> str:
        """What the other arm gives in the place of an object without a partner; else empty."""
        if self.there is UNSET:
            return ""
        return f" ({self.there:.4g} on the other arm)" if self.there else " (none on the other arm)"


class DetectionView(AnswerForm, frozen=True, tag_field="form", tag="detection"):
    """The objects that each arm detected.

    Attributes:
        classes: names of the classes; empty where they are numbered.
        threshold: the least score of an object.
        overlap: the least IoU of two partners.
        boxes: objects by arm, those with the highest scores first; null where the arm failed.

    """

    task: ClassVar[str] = "detection"
    spoken: ClassVar[AnswerWords] = AnswerWords(
        "detect other objects",
        strength="how far scores, or the overlap of two boxes, are beyond their threshold on"
        " either side",
    )
    structured: ClassVar[bool] = True
    csv_columns: ClassVar[tuple[str, ...]] = tuple(f"{arm}_objects" for arm in ARMS)

    classes: tuple[str, ...]
    threshold: float
    overlap: float
    boxes: Mapping[str, tuple[ShownBox, ...] | None]

    def wrong(self, place: str) -> Iterator[str]:
        """Yield more objects than any arm detects, and numbers that are no class."""
        for arm, boxes in self.boxes.items():
            if len(boxes or ()) > OBJECTS:
                yield f"{place}.boxes.{arm} has {len(boxes or ()):,} objects, more than {OBJECTS:,}"
            for n, box in enumerate(boxes or ()):
                if box.label > LARGEST_CLASS:
                    yield f"{place}.boxes.{arm}[{n}].label is {box.label}, not a class"

    def with_classes(self, classes: Sequence[str]) -> Self:
        """Return the view with the pair's names of classes, where the task has none."""
        return self if self.classes else msgspec.structs.replace(self, classes=tuple(classes))

    def decision(self, arm: str) -> str:
        """Name the objects, those that make the difference first: "2: face 0.93, face 0.81"."""
        boxes = _different_first(self.boxes.get(arm))
        named = [
            f"{class_name(self.classes, one.label)} {one.score:.4g}{one.elsewhere}"
            for one in boxes[:NAMED]
        ]
        more = ["…"] if len(boxes) > NAMED else []
        return f"{len(boxes)}: {', '.join(named + more)}" if boxes else "no object"

    def csv_cells(self) -> Mapping[str, Cell]:
        """Return how many objects each arm detected."""
        return {
            f"{arm}_objects": len(boxes) for arm, boxes in self.boxes.items() if boxes is not None
        }

    def block(self, shown: AnsweredInput) -> ObjectTable:
        """Return the objects of the arms, in the order of the arms, and their boxes."""
        arms = tuple(arm for arm in ARMS if self.boxes.get(arm) is not None)
        first = [(arm, one) for arm in arms for one in _different_first(self.boxes[arm])[:SHOWN]]
        rows, boxes, number = [], [], 0
        for arm, one in first:
            number += bool(one.difference)
            named = str(number) if one.difference else ""
            name, score = class_name(self.classes, one.label), f"{one.score:.4g}"
            kind = one.difference.replace("-", " ") + one.elsewhere
            rows.append(ObjectRow(named, arm, name, score, kind))
            title = f"{arm}: {name} {score}" + (f", {kind}" if kind else "")
            boxes.append(drawn_box(one.box, arm, named, title))
        total = sum(len(self.boxes[arm] or ()) for arm in arms)
        return ObjectTable(
            head=self.head,
            what=shown.what,
            threshold=self.threshold,
            overlap=self.overlap,
            arms=arms,
            rows=tuple(rows),
            boxes=tuple(boxes),
            more=total - len(first),
        )


def _different_first(boxes: Sequence[ShownBox] | None) -> list[ShownBox]:
    return sorted(boxes or (), key=lambda one: not one.difference)


def drawn_box(box: Sequence[float], arm: str, number: str, title: str) -> DrawnBox:
    """Return a box to be drawn; what lies far outside of the picture is cut off.

    Args:
        box: left, top, right and bottom, as shares of the picture's width and height.
        arm: arm that detected the object.
        number: number of the object in its table; empty where it does not differ.
        title: what it is.

    """
    left, top, right, bottom = (100 * min(max(share, -1.0), 2.0) for share in box)
    x, width = min(left, right), abs(right - left)
    y, height = min(top, bottom), abs(bottom - top)
    return DrawnBox(arm, f"{x:.2f}%", f"{y:.2f}%", f"{width:.2f}%", f"{height:.2f}%", number, title)


@dataclass(frozen=True, slots=True)
class ObjectRow:
    """An object: its number in the picture where it differs, its arm, class, score and kind."""

    number: str
    arm: str
    name: str
    score: str
    kind: str


@dataclass(frozen=True)
class ObjectTable(AnswerBlock):
    """The objects that the arms detected in an input.

    Attributes:
        head: output of the model; empty where it has only one.
        what: the input that they are of, "seed" or "trigger", or "input" of one as it came.
        threshold: the least score of an object.
        overlap: the least IoU of two partners.
        arms: those that answered.
        rows: an object each; numbered are those that make the compared arms differ.
        boxes: where they are in the picture.
        more: how many are left out.

    """

    template: ClassVar[str] = "answers/boxes.html.j2"
    head: str
    what: str
    threshold: float
    overlap: float
    arms: tuple[str, ...]
    rows: tuple[ObjectRow, ...]
    boxes: tuple[DrawnBox, ...]
    more: int

    def drawn(self) -> tuple[DrawnBox, ...]:
        """Return the boxes."""
        return self.boxes
