"""The mean average precision of objects over all pictures.

It is that of PASCAL VOC from 2010 on: M. Everingham et al., "The PASCAL Visual Object Classes (VOC)
Challenge", International Journal of Computer Vision 88, 2010, and `VOCevaldet.m` of its development
kit. Of each class it is the area under precision against recall, where the precision at a recall is
the largest at this or a higher one; the mean is over the classes that are right somewhere.

Differences to the original implementation: the IoU of partners is the task's, objects with equal
scores count together, so that their order does not matter, as quantized scores are often equal; and
no object is left out as difficult.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgeflare.tasks.detection.box_matching import pairwise_iou
from edgeflare.tasks.detection.detections import Candidates, Detected


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
            given = _of_class(_counted(found), label)
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


def _counted(found: Detected) -> Candidates:
    """Return the candidates that are given: the best that no better one suppresses."""
    return found.candidates.at(found.peaks[: found.rule.most_objects])


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
