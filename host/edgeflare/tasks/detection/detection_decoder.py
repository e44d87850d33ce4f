"""The decoder of detectors: from raw outputs to objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import NO_VALUES, Answer, Failure
from edgeflare.core.task import Decoder, target_name
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.errors import UserError
from edgeflare.pages.answers.boxes import DetectionView, ShownBox
from edgeflare.tasks.classification import least_probability
from edgeflare.tasks.detection.box_decodings import BoxDecoding, DecodedRows
from edgeflare.tasks.detection.box_matching import matched_pairs, pairwise_iou
from edgeflare.tasks.detection.detection_answer import DetectionAnswer, object_differences
from edgeflare.tasks.detection.detections import (
    NO_CANDIDATES,
    Candidates,
    Detected,
    DetectionRule,
    detected,
)
from edgeflare.tasks.output_choice import tie_width

CANDIDATES = 64
"""Candidates below the threshold that are kept, the best. They tell what is nearest to appearing,
and what score is left where an object vanished."""

MOST_CANDIDATES = 2000
"""Candidates that are kept in all. BlazeFace has 6 to 27 above .5 where there is a face."""

MOST_CLASSES = 10_000
"""Classes that models and functions may number."""

MOST_SHOWN_BOXES = 20
"""Objects of each arm that are kept to be shown."""

_CERTAIN = 1e-6
"""Least distance of a probability from 0 and 1, whose logits are infinite."""

_FARTHEST = 8.0
"""Share of the picture beyond which no side of a box can lie: such boxes are in pixels."""


@dataclass(frozen=True)
class DetectionDecoder(Decoder):
    """Reads objects.

    Attributes:
        decoding: how the outputs hold boxes.
        rule: the rule by which rows of them are objects, and two objects partners.
        logits: whether scores are taken before the sigmoid.

    """

    choices = 0
    shows_seeds = True
    compresses = True
    meaning = "boxes and scores"

    outputs: tuple[Tensor, ...]
    decoding: BoxDecoding
    rule: DetectionRule
    logits: bool

    @property
    def tensor(self) -> Tensor:
        """The output that holds the scores."""
        return self.outputs[self.decoding.scores]

    @property
    def read_at(self) -> tuple[int, ...]:
        """The positions of the outputs that hold boxes, classes and scores."""
        return self.decoding.read_at

    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield the objects of each row.

        An object whose right is left of its left, or whose bottom is above its top, is an
        "invalid-output", as are probabilities above 1 and numbers of classes beyond
        `MOST_CLASSES`.
        """
        rows = self.decoding.decode(batch, self.outputs)
        for at in range(len(rows.scores)):
            failure = rows.failures.get(at) or self._refusal(rows, at)
            found = None if failure else self._detected(rows, at)
            if (
                found is not None
                and (found.objects.boxes[:, 2:] < found.objects.boxes[:, :2]).any()
            ):
                found, failure = None, "invalid-output"
            if found is None:
                nothing = detected(NO_CANDIDATES, self.rule)
                yield DetectionAnswer(None, False, NO_VALUES, NO_VALUES, failure, detected=nothing)
            else:
                yield DetectionAnswer(0, found.tied, NO_VALUES, NO_VALUES, None, detected=found)

    def reduced(self, row: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return a row that keeps the candidates alone, where it holds boxes of anchors."""
        rows = self.decoding.decode(RawBatch(row[None]), self.outputs)
        if rows.failures:
            return row
        return self.decoding.reduced(row, self.outputs, self._places(rows, 0)[0])

    def target(self, target: NDArray[np.generic]) -> DetectionAnswer:
        """Return the objects of a target.

        Args:
            target: (objects, 5) real numbers, left, top, right and bottom as shares of the picture,
                and the class, from 0; rows with a NaN are not used.

        """
        if target.ndim != 2 or target.shape[1] != 5 or target.dtype.kind not in "fiu":
            raise UserError(
                f"{target_name(target)}, expected numbers (objects, 5): left, top, right, bottom"
                " and class of each, and NaN in rows that are not used"
            )
        rows = target.astype(np.float64)
        rows = rows[~np.isnan(rows).any(axis=1)]
        boxes, labels = rows[:, :4], rows[:, 4]
        if (boxes[:, 2:] < boxes[:, :2]).any():
            raise UserError("a box ends before it begins, expected left, top, right, bottom, class")
        if (np.abs(boxes) > _FARTHEST).any():
            raise UserError("boxes are shares of the picture: divide by its width and height")
        if not np.isin(labels, range(MOST_CLASSES)).all():
            raise UserError(f"classes are whole numbers from 0 to {MOST_CLASSES - 1}")
        certain = np.full(len(rows), inf)
        objects = Candidates(boxes, labels.astype(np.int64), np.ones(len(rows)), certain, certain)
        rule = replace(self.rule, suppression=1.0, most_objects=len(rows))
        found = detected(objects, rule)
        return DetectionAnswer(0, False, NO_VALUES, NO_VALUES, detected=found)

    def views(
        self, answers: Mapping[str, Answer], compared: tuple[str, str]
    ) -> tuple[DetectionView, ...]:
        """Return the objects of each arm, those that differ among the compared arms marked."""
        given = {
            arm: answer for arm, answer in answers.items() if isinstance(answer, DetectionAnswer)
        }
        known = {arm: answer.detected for arm, answer in given.items() if answer.failure is None}
        marks: dict[str, dict[int, str]] = {arm: {} for arm in known}
        if all(arm in known for arm in compared):
            first, second = compared
            for object_difference in object_differences(known[first], known[second]):
                if object_difference.first is not None:
                    marks[first][object_difference.first] = object_difference.kind
                if object_difference.second is not None:
                    marks[second][object_difference.second] = object_difference.kind
        order = [
            *(arm for arm in compared if arm in known),
            *(arm for arm in known if arm not in compared),
        ]
        numbers = numbered_objects({arm: known[arm].objects for arm in order}, self.rule.overlap)
        boxes = {
            arm: _shown(arm, known, marks[arm], numbers) if arm in known else None for arm in given
        }
        view = DetectionView(
            head="",
            classes=(),
            threshold=self.rule.threshold,
            overlap=self.rule.overlap,
            boxes=boxes,
        )
        return (view,)

    def describe_answer(self, answer: Answer, classes: Sequence[str] = ()) -> str:
        """Return how many objects there are, their classes and scores: "2 objects: .93, .81"."""
        if not isinstance(answer, DetectionAnswer) or answer.failure is not None:
            return super().describe_answer(answer, classes)
        objects = answer.detected.objects
        shown = []
        for label, score in zip(
            objects.labels[:MOST_SHOWN_BOXES].tolist(), objects.scores.tolist(), strict=False
        ):
            name = f"{classes[label]} " if label < len(classes) else ""
            shown.append(f"{name}{f'{score:.2f}'.removeprefix('0')}")
        if not shown:
            return "no object"
        more = ", …" if len(objects) > len(shown) else ""
        return f"{len(objects)} object{'s' * (len(objects) > 1)}: {', '.join(shown)}{more}"

    def _detected(self, rows: DecodedRows, at: int) -> Detected:
        scores, labels = rows.scores[at], rows.labels[at]
        places, excess = self._places(rows, at)
        given, leads = scores[places], rows.leads[at, places]
        leads = np.where(leads <= tie_width(self.tensor), 0.0, leads)
        if self.logits:
            given, leads = _sigmoid(given), _sigmoid(given) - _sigmoid(given - leads)
        boxes = self.decoding.boxes(rows.boxes[at], places)
        candidates = Candidates(boxes, labels[places], given, excess[places], leads)
        return detected(candidates, self.rule)

    def _refusal(self, rows: DecodedRows, at: int) -> Failure | None:
        beyond = not self.logits and (rows.scores[at] > 1.0 + _CERTAIN).any()
        return "invalid-output" if beyond or (rows.labels[at] >= MOST_CLASSES).any() else None

    def _places(self, rows: DecodedRows, at: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the positions of a row's candidates, the best first, and the excess of all."""
        scores, labels = rows.scores[at], rows.labels[at]
        excess = self._excess(scores)
        usable = labels >= 0 if self.logits else (labels >= 0) & (scores >= 0.0)
        excess = np.where(usable, excess, -np.inf)
        reached = int((excess >= 0.0).sum())
        count = min(reached + CANDIDATES, MOST_CANDIDATES)
        places = np.argsort(-excess, kind="stable")[:count]
        places = places[usable[places]]
        return places, excess

    def _excess(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return by how much the logits exceed the threshold's; 0 for ties."""
        threshold = self.rule.threshold
        logits, least = scores, log(threshold / (1.0 - threshold))
        if not self.logits:
            certain = min(max(_CERTAIN, least_probability(self.tensor)), 0.5)
            shares = np.clip(scores, certain, 1.0 - certain)
            logits = np.log(shares / (1.0 - shares))
        reached = least if self.logits else threshold
        tied = np.abs(scores - reached) <= tie_width(self.tensor)
        return np.where(tied, 0.0, logits - least)


def numbered_objects(
    objects: Mapping[str, Candidates], overlap: float
) -> dict[str, NDArray[np.int64]]:
    """Return a number for each object, from 0, which is the same for partners of different arms.

    Args:
        objects: (n,) of each arm; partners are sought on the first arms first.
        overlap: the least IoU of two partners.

    """
    numbers: dict[str, NDArray[np.int64]] = {}
    count = 0
    for arm, mine in objects.items():
        own = np.full(len(mine), -1)
        for other, its in numbers.items():
            theirs = objects[other]
            free = (own < 0)[:, None] & ~np.isin(its, own)[None]
            allowed = mine.partners(theirs, overlap) & free
            for at, partner in matched_pairs(pairwise_iou(mine.boxes, theirs.boxes), allowed):
                own[at] = its[partner]
        without = own < 0
        own[without] = count + np.arange(without.sum())
        count += int(without.sum())
        numbers[arm] = own
    return numbers


def _shown(
    arm: str,
    known: Mapping[str, Detected],
    marks: Mapping[int, str],
    numbers: Mapping[str, NDArray[np.int64]],
) -> tuple[ShownBox, ...]:
    """Return the objects of an arm with, of those without a partner, the scores of other arms."""
    objects = known[arm].objects
    there = {other: boxes.scores_at(objects) for other, boxes in known.items() if other != arm}
    return tuple(
        ShownBox(
            tuple(float(f"{side:.6g}") for side in objects.boxes[at].tolist()),
            float(f"{objects.scores[at]:.6g}"),
            int(objects.labels[at]),
            int(number),
            marks.get(at, ""),
            {
                other: float(f"{scores[at]:.6g}")
                for other, scores in there.items()
                if number not in numbers[other]
            },
        )
        for at, number in enumerate(numbers[arm][:MOST_SHOWN_BOXES])
    )


def _sigmoid(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-np.clip(logits, -80.0, 80.0)))
    return shares
