"""What makes the objects of two arms differ: those without a partner, by kind and strength."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.tasks.detection.box_matching import matched_pairs, pairwise_iou
from edgeflare.tasks.detection.detected import Detected

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
        kind: from the first answer to the second.
        strength: how far all that makes the difference is beyond the threshold or the overlap, the
            least of it, from 0 to 1. Of an object that vanished: its score less the threshold, and
            the threshold less the highest score that the other answer gives there (see
            `Detected.scores_at`); 0 where that one is suppressed by another object. Of one
            that appeared likewise. Of one of another class: both scores less the threshold, and
            by how much each is above the next class there, where that is known. Of one that moved:
            both scores less the threshold, and the overlap less the IoU.
        first: its position among the objects of the first answer; None where it appeared.
        second: likewise; None where it vanished.

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
