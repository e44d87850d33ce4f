"""What an arm detected: candidates, which of them are objects, and when two are partners."""

from __future__ import annotations

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
