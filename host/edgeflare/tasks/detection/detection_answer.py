"""The objects that one arm detected, how far they are from being others, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import DEVIATION, LEAST_SUPPORT, NO_CONFUSION, Answer, Confusion
from edgeflare.tasks.detection.box_matching import matched_pairs, pairwise_iou
from edgeflare.tasks.detection.detections import Candidates, Detected, mean_average_precision

LEAST_EXCESS = -4.6
"""Margin in logits of what overlaps none of the candidates that are kept. With a threshold of .5
it is that of a score of .01."""

LEAST_MARGIN = 0.01
"""Margin at least, below 0, of objects that differ where no score says how far."""

STATE_PEAKS = 8
"""Candidates of a state, each with score and centre."""


@dataclass(frozen=True, slots=True)
class DetectionAnswer(Answer):
    """Objects, which differ from others where they have no partners one to one.

    Attributes:
        detected: the objects, and what may become some; none where the arm failed.

    """

    counted: ClassVar[bool] = False
    truth_measure: ClassVar[str] = "F1 of the objects"
    pooled_measure: ClassVar[str] = "mean average precision at the task's IoU"

    detected: Detected = field(kw_only=True)

    def differs(self, other: Answer) -> bool:
        """Whether an object has no partner, or one of the two failed."""
        if self.decision is None or other.decision is None:
            return self.decision != other.decision
        return bool(object_differences(self.detected, _detected(other)))

    def differs_by_tie(self, other: Answer) -> bool:
        """Whether all differences hang on ties.

        A difference does where it vanishes without the objects at the threshold, of either side or
        of both, or where the other one of two equal scores could make it vanish: see
        `Detected.undecided`.
        """
        if not (self.tied or other.tied):
            return False
        mine, its = self.detected, _detected(other)
        return any(
            _all_undecided(detected, its_own)
            for detected in (mine, mine.above_threshold())
            for its_own in (its, its.above_threshold())
        )

    def kind_against(self, other: Answer) -> str:
        """Return the kind of the strongest difference, seen from this answer to the other."""
        found = object_differences(self.detected, _detected(other))
        return max(found, key=lambda difference: difference.strength).kind if found else DEVIATION

    def strength_against(self, other: Answer) -> float | None:
        """Return the strength of the strongest difference, from 0 to 1; see `ObjectDifference`.

        None where an arm failed.
        """
        if self.decision is None or other.decision is None:
            return None
        found = object_differences(self.detected, _detected(other))
        return max((difference.strength for difference in found), default=0.0)

    def margin(self, home: Answer) -> float:
        """Return the least change of logits by which the objects are no longer those of home.

        It is the least of these:

        - of each object of home: the excess of the best candidate that could be its partner. Below
          0 it has vanished.
        - of the same: by how much that candidate's excess is above the best one that would suppress
          it and could be no partner. Below 0 the object has moved.
        - of each candidate that could be no object's partner and is suppressed by none of them: its
          excess below 0. Where it is above, it has appeared. So has an object that could be the
          partner of one that has another.

        It is below 0 wherever the answers differ. A failed arm has the margin 0.
        """
        if self.decision is None or home.decision is None:
            return 0.0
        objects = _detected(home).objects
        partners = objects.partners(self.detected.candidates, self.detected.rule.overlap)
        margin = min(self._margin_of(objects, partners), self._margin_of_others(objects, partners))
        return min(margin, -LEAST_MARGIN) if self.differs(home) else max(margin, 0.0)

    def _margin_of(self, objects: Candidates, partners: NDArray[np.bool_]) -> float:
        """Return the least margin of objects to be still there, as they were.

        Args:
            objects: objects of home.
            partners: (objects, candidates), which candidates could be their partners.

        """
        known = self.detected.candidates
        margin = inf
        apart = ~partners.any(axis=0)
        for label, mine in zip(objects.labels, partners, strict=True):
            if not mine.any():
                return LEAST_EXCESS
            best = int(mine.argmax())  # they are sorted
            rivals = self._near(best) & (known.labels == label) & apart
            margin = min(margin, max(LEAST_EXCESS, float(known.excess[best])))
            if rivals.any():
                margin = min(margin, float(known.excess[best] - known.excess[rivals.argmax()]))
        return margin

    def _margin_of_others(self, objects: Candidates, partners: NDArray[np.bool_]) -> float:
        """Return the margin of what else is seen to be no object; see `_margin_of`."""
        known, peaks = self.detected.candidates, self.detected.peaks
        free = np.logical_not(partners.any(axis=0))
        for label, mine in zip(objects.labels, partners, strict=True):
            if mine.any():
                free &= ~(self._near(int(mine.argmax())) & (known.labels == label))
        others = peaks[free[peaks]]
        margin = -LEAST_EXCESS
        if len(others):
            margin = min(margin, -float(known.excess[others[0]]))
        surplus = len(self.detected.objects) - len(objects)
        if surplus > 0:  # the weakest of several partners is one too many
            margin = min(margin, -float(self.detected.objects.excess[-surplus]))
        return margin

    def _near(self, at: int) -> NDArray[np.bool_]:
        """Return which candidates overlap one so much that one of the two is suppressed."""
        known, rule = self.detected.candidates, self.detected.rule
        return np.asarray(pairwise_iou(known.boxes[at : at + 1], known.boxes)[0] > rule.suppression)

    def confusion(self, other: Answer) -> Confusion:
        """Return the classes of objects that overlap most, those of vanished and appeared ones too.

        Two objects are in one place if each is the other's best and their IoU is that of partners,
        whatever their classes.
        """
        if self.decision is None or other.decision is None:
            return NO_CONFUSION
        mine, its = self.detected.objects, _detected(other).objects
        if not len(mine) or not len(its):
            pairs: list[tuple[int, int]] = []
        else:
            overlaps = pairwise_iou(mine.boxes, its.boxes)
            best, back = overlaps.argmax(axis=1), overlaps.argmax(axis=0)
            least = self.detected.rule.overlap
            pairs = [
                (i, int(j)) for i, j in enumerate(best) if back[j] == i and overlaps[i, j] >= least
            ]
        vanished = set(range(len(mine))).difference(i for i, _ in pairs)
        appeared = set(range(len(its))).difference(j for _, j in pairs)
        rows = [
            *((mine.labels[i], its.labels[j], 1) for i, j in pairs),
            *((mine.labels[i], -1, 1) for i in sorted(vanished)),
            *((-1, its.labels[j], 1) for j in sorted(appeared)),
        ]
        return np.array(rows, np.int64).reshape(-1, 3)

    def support(self, home: Answer) -> NDArray[np.float64]:
        """Return the score that is given where home's best object is: (1,), NaN if it has none."""
        objects = _detected(home).objects
        if self.decision is None or home.decision is None or not len(objects):
            return np.full(1, np.nan)
        return self.detected.scores_at(objects.at(np.zeros(1, np.int64)))

    def support_words(self) -> tuple[str, float]:
        """Return that it is the score of the best object."""
        return "score of the best object", LEAST_SUPPORT

    def lead(self) -> float:
        """Return by how much the score that is nearest to the threshold misses it."""
        return self.certainty(2)

    def certainty(self, k: int) -> float:
        """Return how far the k-1 scores nearest to the threshold are from it, at most.

        DiffChaser's k-uncertainty for objects, each of which is there or not.
        """
        threshold = self.detected.rule.threshold
        scores = self.detected.candidates.scores[self.detected.peaks]
        if not len(scores):
            return threshold
        away = np.sort(np.abs(scores - threshold))
        return float(away[min(k - 2, len(away) - 1)])

    def distance(self, other: Answer) -> float:
        """Return the greatest difference of scores at one place, from 0 to 1."""
        one, its = self.detected, _detected(other)
        return max(_greatest_difference(one, its), _greatest_difference(its, one))

    def against_truth(self, truth: Answer) -> float:
        """Return the F1 of the objects: 1 where each has its partner, or both have none."""
        mine, its = self.detected.objects, _detected(truth).objects
        if not len(mine) and not len(its):
            return 1.0
        overlaps = pairwise_iou(mine.boxes, its.boxes)
        paired = matched_pairs(overlaps, mine.partners(its, self.detected.rule.overlap))
        return 2.0 * len(paired) / (len(mine) + len(its))

    @staticmethod
    def pooled(answers: Sequence[Answer], truths: Sequence[Answer]) -> float | None:
        """Return the mean average precision; None where nothing is to be detected."""
        return mean_average_precision(
            [
                (None if answer.decision is None else _detected(answer), _detected(truth))
                for answer, truth in zip(answers, truths, strict=True)
            ]
        )

    def state(self) -> NDArray[np.float64]:
        """Return score and centre of the best candidates: (24,), zeros where there are fewer."""
        best = self.detected.candidates.at(self.detected.peaks[:STATE_PEAKS])
        centres = (best.boxes[:, :2] + best.boxes[:, 2:]) / 2.0
        state = np.zeros((STATE_PEAKS, 3))
        state[: len(best)] = np.column_stack([best.scores, centres])
        return state.ravel()

    def equals(self, other: Answer) -> bool:
        """Whether both arms gave the same candidates, to the bit."""
        mine, theirs = self.detected.candidates, _detected(other).candidates
        same = np.array_equal(mine.boxes, theirs.boxes) and np.array_equal(
            mine.labels, theirs.labels
        )
        same = same and np.array_equal(mine.scores, theirs.scores)
        return same and self.failure == other.failure


def _all_undecided(first: Detected, second: Detected) -> bool:
    """Return whether an object that hangs on equal scores is in each difference, if any."""
    undecided = first.undecided, second.undecided
    return all(
        (found.first is not None and undecided[0][found.first])
        or (found.second is not None and undecided[1][found.second])
        for found in object_differences(first, second)
    )


def _greatest_difference(one: Detected, other: Detected) -> float:
    places = one.candidates.at(one.peaks)
    return float(np.abs(one.scores_at(places) - other.scores_at(places)).max(initial=0.0))


def _detected(answer: Answer) -> Detected:
    assert isinstance(answer, DetectionAnswer)  # noqa: S101 - all answers are of one task
    return answer.detected


_REMEMBERED = 64
"""Pairs of answers whose differences are remembered: whether, how and how strongly two answers
differ is asked one after the other."""

LEAST_OVERLAP = 0.1
"""Least IoU of an object with what it has become where it moved: boxes that hardly touch are two
objects, of which one vanished and the other appeared."""

VANISHED: Final = "object-vanished"
APPEARED: Final = "object-appeared"
OTHER_CLASS: Final = "other-class"
MOVED: Final = "object-moved"


@dataclass(frozen=True, slots=True)
class ObjectDifference:
    """An object that has no partner.

    Attributes:
        kind: what became of the object from the first answer to the second.
        strength: how far all that makes the difference is beyond the threshold or the overlap, the
            least of it, from 0 to 1. Of an object that vanished: its score less the threshold, and
            the threshold less the highest score that the other answer gives there (see
            `Detected.scores_at`); 0 where that one is suppressed by another object. Of one
            that appeared likewise. Of one of another class: both scores less the threshold, and
            by how much each is above the next class there, where that is known. Of one that moved:
            both scores less the threshold, and the overlap less the IoU.
        first: position among the objects of the first answer; None where it appeared.
        second: position among those of the second; None where it vanished.

    """

    kind: str
    strength: float
    first: int | None
    second: int | None


@lru_cache(maxsize=_REMEMBERED)
def object_differences(first: Detected, second: Detected) -> tuple[ObjectDifference, ...]:
    """Return the objects of two answers that have no partner, matched one to one.

    Partners are of one class and overlap enough. Of those that are left over, two that overlap
    enough are one object of another class, two of one class that overlap at least by
    `LEAST_OVERLAP` are one that moved, and each other vanished or appeared.
    """
    a, b, rule = first.objects, second.objects, first.rule
    if not len(a) and not len(b):
        return ()
    overlaps = pairwise_iou(a.boxes, b.boxes)
    same = a.labels[:, None] == b.labels[None, :]
    near = overlaps >= rule.overlap
    paired = matched_pairs(overlaps, near & same)
    if len(paired) == len(a) == len(b):
        return ()
    open_pairs = np.ones_like(same)
    _close(open_pairs, paired)
    turned = matched_pairs(overlaps, near & ~same & open_pairs)
    _close(open_pairs, turned)
    moved = matched_pairs(overlaps, same & (overlaps >= LEAST_OVERLAP) & open_pairs)
    least_a, least_b = rule.threshold, second.rule.threshold  # a device may have its own
    above_a, above_b = a.scores - least_a, b.scores - least_b
    under = rule.overlap - overlaps
    both = (*paired, *turned, *moved)
    lost = sorted(set(range(len(a))).difference(i for i, _ in both))
    new = sorted(set(range(len(b))).difference(j for _, j in both))
    below_a, below_b = least_b - second.scores_at(a), least_a - first.scores_at(b)
    return (
        *(
            ObjectDifference(
                OTHER_CLASS, _least(above_a[i], above_b[j], a.leads[i], b.leads[j]), i, j
            )
            for i, j in turned
        ),
        *(
            ObjectDifference(MOVED, _least(above_a[i], above_b[j], under[i, j]), i, j)
            for i, j in moved
        ),
        *(ObjectDifference(VANISHED, _least(above_a[i], below_a[i]), i, None) for i in lost),
        *(ObjectDifference(APPEARED, _least(above_b[j], below_b[j]), None, j) for j in new),
    )


def _close(open_pairs: NDArray[np.bool_], pairs: list[tuple[int, int]]) -> None:
    for row, column in pairs:
        open_pairs[row] = False
        open_pairs[:, column] = False


def _least(*beyond: float) -> float:
    return max(0.0, float(min(beyond)))
