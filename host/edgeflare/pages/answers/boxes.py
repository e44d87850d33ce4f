"""Detected objects, and the boxes around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

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
from edgeflare.pages.facts import in_words
from edgeflare.record.json_types import Count, Share

if TYPE_CHECKING:
    from typing_extensions import Self

OBJECTS = 10_000
"""Objects that an arm detected in one input."""

NAMED = 3
"""Objects of an arm that are named in a line."""

SHOWN = 12
"""Objects that a card shows."""


class ShownBox(msgspec.Struct, frozen=True):
    """An object that an arm detected.

    Attributes:
        box: left, top, right and bottom, as shares of the picture's width and height.
        score: score of the object, from 0 to 1.
        label: the class, from 0.
        object: number of the object, from 0, which its partners on other arms have too.
        difference: the kind of deviation that it is part of, among the two compared arms; empty
            where it has a partner on the other arm, and for arms that are not compared.
        there: highest score in its place of each arm on which it has no partner, below the
            threshold too; 0 where that arm gives none.

    """

    box: Annotated[tuple[float, ...], msgspec.Meta(min_length=4, max_length=4)]
    score: float
    label: Count
    object: Count
    difference: str
    there: Mapping[str, Share]


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
        """Name the objects, those that make the difference first: "2: face 0.93, face 0.81".

        In brackets are the scores that the arm gives where only another one has an object.
        """
        boxes = sorted(self.boxes.get(arm) or (), key=lambda box: not box.difference)
        named = [f"{class_name(self.classes, box.label)} {box.score:.4g}" for box in boxes[:NAMED]]
        more = ["…"] if len(boxes) > NAMED else []
        said = f"{len(boxes)}: {', '.join(named + more)}" if boxes else "no object"
        scores = self._scores_without_object(arm)
        return f"{said} ({', '.join(scores)} there)" if scores else said

    def _scores_without_object(self, arm: str) -> list[str]:
        """Return an arm's scores in the places of objects that make a difference, and it lacks."""
        scores = {
            box.object: box.there[arm]
            for boxes in self.boxes.values()
            for box in boxes or ()
            if box.difference and box.there.get(arm)
        }
        return list(dict.fromkeys(f"{score:.4g}" for score in scores.values()))[:NAMED]

    def gist(self, arm: str) -> str:
        """Return how many objects of each class there are, "2 face"."""
        counts = Counter(class_name(self.classes, box.label) for box in self.boxes.get(arm) or ())
        return ", ".join(f"{counts[name]} {name}" for name in sorted(counts)) or "no object"

    def csv_cells(self) -> Mapping[str, Cell]:
        """Return how many objects each arm detected."""
        return {
            f"{arm}_objects": len(boxes) for arm, boxes in self.boxes.items() if boxes is not None
        }

    def block(self, shown: AnsweredInput) -> ObjectTable:
        """Return each object with the scores of the arms, and their boxes; what differs first."""
        arms = tuple(arm for arm in ARMS if self.boxes.get(arm) is not None)
        objects: dict[int, dict[str, ShownBox]] = {}
        for arm in arms:
            for box in self.boxes[arm] or ():
                objects.setdefault(box.object, {})[arm] = box
        ordered = sorted(objects.values(), key=lambda by_arm: not _difference(by_arm))
        rows, boxes = [], []
        for number, by_arm in enumerate(ordered[:SHOWN], 1):
            kind = in_words(_difference(by_arm))
            name = class_name(self.classes, next(iter(by_arm.values())).label)
            row = ObjectRow(
                str(number) if kind else "", name, tuple(_score(by_arm, arm) for arm in arms), kind
            )
            rows.append(row)
            for arm, box in by_arm.items():
                title = f"{arm}: {name} {box.score:.4g}{f', {kind}' if kind else ''}"
                boxes.append(drawn_box(box.box, arm, row.number, title))
        return ObjectTable(
            head=self.head,
            what=shown.what,
            threshold=self.threshold,
            overlap=self.overlap,
            arms=arms,
            rows=tuple(rows),
            boxes=tuple(boxes),
            more=max(len(ordered) - SHOWN, 0),
        )


def _difference(by_arm: Mapping[str, ShownBox]) -> str:
    """Return the kind of deviation that an object is part of; empty for none."""
    return next((box.difference for box in by_arm.values() if box.difference), "")


def _score(by_arm: Mapping[str, ShownBox], arm: str) -> str:
    """Return an arm's score of an object; in brackets where it has none there, a dash without."""
    if arm in by_arm:
        return f"{by_arm[arm].score:.4g}"
    there = max(box.there.get(arm, 0.0) for box in by_arm.values())
    return f"({there:.4g})" if there else "–"


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


class ObjectRow(msgspec.Struct, frozen=True):
    """An object: its number in the picture where it differs, class, score of each arm, and kind."""

    number: str
    name: str
    scores: tuple[str, ...]
    kind: str


class ObjectTable(AnswerBlock, msgspec.Struct, frozen=True):
    """The objects that the arms detected in an input.

    Attributes:
        head: output of the model; empty where it has only one.
        what: the input that they are of, "seed" or "trigger", or "input" of one as it came.
        threshold: the least score of an object.
        overlap: the least IoU of two partners.
        arms: those that answered, whose scores `rows` have.
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
