"""What an arm detected: candidates, which are objects, when two are partners, and their precision.

The mean average precision is that of PASCAL VOC from 2010 on: M. Everingham et al., "The PASCAL
Visual Object Classes (VOC) Challenge", International Journal of Computer Vision 88, 2010, and
`VOCevaldet.m` of its development kit. Of each class it is the area under precision against recall,
where the precision at a recall is the largest at this or a higher one; the mean is over the classes
that are right somewhere.

Differences to the original implementation: the IoU of partners is the task's, objects with equal
scores count together, so that their order does not matter, as quantized scores are often equal; and
no object is left out as difficult.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from edgeflare.tasks.detection.box_matching import Boxes, pairwise_iou, unsuppressed


@dataclass(frozen=True, slots=True)
class DetectionRule:
    """When candidates are objects, and when two objects are partners.

    Attributes:
        threshold: the least score of an object, from 0 to 1.
        overlap: the least IoU of two partners.
        suppression: the greatest IoU of two objects of one class; 1 where the model or a function
            of the user's has suppressed others already.
        most_objects: how many are counted at most, the best.

    """

    threshold: float
    overlap: float
    suppression: float
    most_objects: int


@dataclass(frozen=True, slots=True)
class Candidates:
    """What may be objects, those with the highest scores first.

    Attributes:
        boxes: (n, 4) left, top, right and bottom, as shares of the picture.
        labels: (n,) classes.
        scores: (n,) from 0 to 1.
        excess: (n,) the logits of the scores less that of the threshold; 0 for a tie.
        leads: (n,) by how much the score is above that of the next class, 0 for a tie; infinite
            where there is none, or it is not known.

    """

    boxes: Boxes
    labels: NDArray[np.int64]
    scores: NDArray[np.float64]
    excess: NDArray[np.float64]
    leads: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.scores)

    def at(self, places: NDArray[np.int64]) -> Candidates:
        """Return those at some positions."""
        return Candidates(
            self.boxes[places],
            self.labels[places],
            self.scores[places],
            self.excess[places],
            self.leads[places],
        )

    def partners(self, others: Candidates, overlap: float) -> NDArray[np.bool_]:
        """Return which two are of one class and overlap enough: (n, others)."""
        same = self.labels[:, None] == others.labels[None, :]
        near = pairwise_iou(self.boxes, others.boxes) >= overlap
        both: NDArray[np.bool_] = near & same
        return both


NO_CANDIDATES = Candidates(
    np.empty((0, 4)), np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0)
)


@dataclass(frozen=True, slots=True, eq=False)
class Detected:
    """What an arm detected. Two are never equal, so that what they differ in can be remembered.

    Attributes:
        candidates: those that have a score worth mentioning, suppressed ones too.
        peaks: (n,) positions of the candidates that no better one suppresses, the best first.
        objects: the peaks whose scores reach the threshold.
        rule: what makes them objects and partners.

    """

    candidates: Candidates
    peaks: NDArray[np.int64]
    objects: Candidates
    rule: DetectionRule

    @property
    def tied(self) -> bool:
        """Whether an object hangs on two equal scores: at the threshold, or see `undecided`."""
        return bool((self.objects.excess == 0.0).any() or self.undecided.any())

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """Which objects hang on two equal scores in one place: (objects,).

        That is where another class has the same score, or a box that is suppressed and would be no
        partner.
        """
        objects, known, rule = self.objects, self.candidates, self.rule
        undecided = np.asarray(objects.leads == 0.0)
        alike = (objects.labels[:, None] == known.labels) & (
            objects.excess[:, None] == known.excess
        )
        if rule.suppression >= rule.overlap or alike.sum() == len(objects):
            return undecided
        overlaps = pairwise_iou(objects.boxes, known.boxes)
        between = (overlaps > rule.suppression) & (overlaps < rule.overlap)
        return np.asarray(undecided | (alike & between).any(axis=1))

    def above_threshold(self) -> Detected:
        """Return this without the objects whose scores equal the threshold."""
        above = np.flatnonzero(self.objects.excess != 0.0)
        return replace(self, objects=self.objects.at(above))

    def scores_at(self, places: Candidates) -> NDArray[np.float64]:
        """Return the highest score that is given where another arm has candidates.

        That is the highest of all candidates of the class, below the threshold too, whose IoU is
        that of partners: (places,), 0 where there is none.
        """
        if not len(self.candidates):
            return np.zeros(len(places))
        partners = places.partners(self.candidates, self.rule.overlap)
        highest: NDArray[np.float64] = np.where(partners, self.candidates.scores, 0.0).max(axis=1)
        return highest


def detected(candidates: Candidates, rule: DetectionRule) -> Detected:
    """Return what is detected: suppresses candidates, and takes those that reach the threshold."""
    peaks = unsuppressed(candidates.boxes, candidates.labels, rule.suppression)
    reached = peaks[candidates.excess[peaks] >= 0.0][: rule.most_objects]
    return Detected(candidates, peaks, candidates.at(reached), rule)


def mean_average_precision(pictures: Sequence[tuple[Detected | None, Detected]]) -> float | None:
    """Return the mean average precision, from 0 to 1; None where nothing is to be detected.

    Candidates count below the threshold of objects as well, but none that a better one suppresses,
    and as many of a picture as are counted at most.

    Args:
        pictures: what an arm detected in each picture, None where it failed, and what is right.

    """
    classes = sorted({int(label) for _, right in pictures for label in right.objects.labels})
    each = [_average_precision(pictures, label) for label in classes]
    return float(np.mean(each)) if each else None


def _average_precision(pictures: Sequence[tuple[Detected | None, Detected]], label: int) -> float:
    scores, hits, wanted = [np.empty(0)], [np.empty(0, np.bool_)], 0
    for found, right in pictures:
        truths = _of_class(right.objects, label)
        wanted += len(truths)
        if found is not None:
            given = _of_class(found.candidates.at(found.peaks[: found.rule.most_objects]), label)
            scores.append(given.scores)
            hits.append(_hits(given, truths, found.rule.overlap))
    score, hit = np.concatenate(scores), np.concatenate(hits)
    order = np.argsort(-score, kind="stable")
    score, right_so_far = score[order], np.cumsum(hit[order])
    ends = np.flatnonzero(np.diff(score, append=-np.inf))
    recall = np.concatenate([[0.0], right_so_far[ends] / wanted])
    precision = right_so_far[ends] / (ends + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float((np.diff(recall) * envelope).sum())


def _of_class(some: Candidates, label: int) -> Candidates:
    return some.at(np.flatnonzero(some.labels == label))


def _hits(given: Candidates, truths: Candidates, overlap: float) -> NDArray[np.bool_]:
    """Return which candidates, the best first, are the first on the object they overlap most."""
    hits = np.zeros(len(given), np.bool_)
    if not len(truths):
        return hits
    overlaps = pairwise_iou(given.boxes, truths.boxes)
    taken: set[int] = set()
    for at, nearest in enumerate(overlaps.argmax(axis=1).tolist()):
        if overlaps[at, nearest] >= overlap and nearest not in taken:
            taken.add(nearest)
            hits[at] = True
    return hits
