"""The mask that an arm gives, when it deviates from another one, and how far the two overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar, Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import NO_CONFUSION, Answer, Confusion

LOW_MEAN_IOU: Final = "low-mean-iou"
OTHER_REGION: Final = "other-region"

POWER = 2
"""Exponent of `softened_iou` in the distance that searches increase."""

MARGIN = 30.0
"""Margin of a mean IoU that is 1 above the least. With the default least one a seed has the margin
3, near that of classifiers, for which the constants of searches are."""

REGION_SHARE = 0.1
"""Mean IoU above the least that counts as much in a margin as a region that does not differ at all:
the whole way from equal masks to the default least mean IoU."""

STATE_CELLS = 4
"""Rows and columns of the cells of a state."""

MOST_CLASSES_OF_CELLS = 32
"""Classes up to which a state has cells, so that it has 512 values at most."""


@dataclass(frozen=True, slots=True)
class MaskRule:
    """When two masks deviate.

    Attributes:
        overlap: the least mean IoU that is no deviation.
        region: pixels of a connected region that differs from which on it is a deviation; 0 where
            regions do not count.

    """

    overlap: float
    region: int

    def kind(self, first: Mask, second: Mask, known: NDArray[np.bool_] | None = None) -> str | None:
        """Return how two masks deviate; None where they do not.

        Args:
            first: a mask.
            second: the other one.
            known: (rows, columns) bool, the pixels that count; None for all.

        """
        if mean_iou(*_counted(first, second, known)) < self.overlap:
            return LOW_MEAN_IOU
        differing = first != second
        if known is not None:
            differing &= known
        if self.region and largest_region(differing).size >= self.region:
            return OTHER_REGION
        return None


@dataclass(frozen=True, slots=True)
class MaskAnswer(Answer):
    """The class of each pixel.

    The decision is 0 of all masks: whether two differ is what `differs` says. There are no
    probabilities and no scores. A pixel whose margin is 0 is tied. A mask is tied as a whole where
    its tied pixels alone could make a deviation.

    Attributes:
        mask: (rows, columns) uint8; without meaning where the arm failed.
        margins: (rows, columns) float16, by how much the score of the pixel's class exceeds that of
            the next class, or misses the threshold; 1 where the model gives classes alone.
        classes: how many the model knows.
        rule: when two masks deviate.
        known: (rows, columns) bool, of a right mask the pixels whose class is known; None for all,
            as of every arm's.

    """

    counted: ClassVar[bool] = False
    bordered: ClassVar[bool] = False
    measured_as: ClassVar[str] = "mean IoU"
    truth_measure: ClassVar[str] = "mean IoU"
    pooled_measure: ClassVar[str] = "mean IoU of all pixels"

    mask: Mask = field(kw_only=True)
    margins: NDArray[np.float16] = field(kw_only=True)
    classes: int = field(kw_only=True)
    rule: MaskRule = field(kw_only=True)
    known: NDArray[np.bool_] | None = field(default=None, kw_only=True)

    def differs(self, other: Answer) -> bool:
        """Whether the two masks deviate, or one of the two arms failed."""
        if self.decision is None or other.decision is None:
            return self.decision != other.decision
        its = _mask(other)
        return self.rule.kind(self.mask, its.mask, its.known) is not None

    def differs_by_tie(self, other: Answer) -> bool:
        """Whether the two no longer deviate where each tied pixel has the other arm's class."""
        if self.decision is None or other.decision is None:
            return False
        return self.rule.kind(*self._without_ties(_mask(other))) is None

    def kind_against(self, other: Answer) -> str:
        """Return the kind of a deviation, of those that do not hang on a tie if there is one."""
        return self.compared(other)[0] or LOW_MEAN_IOU

    def strength_against(self, other: Answer) -> float | None:
        """Return how far the mean IoU is below the least, or the margin of the largest region.

        Of a region it is the mean margin of its pixels, that of the arm where it is smaller. None
        where an arm failed; 0 where the two do not differ.
        """
        if self.decision is None or other.decision is None:
            return None
        kind, first, second = self.compared(other)
        if kind is None:
            return 0.0
        if kind == LOW_MEAN_IOU:
            return self.rule.overlap - mean_iou(first, second)
        pixels = largest_region(first != second).pixels
        return min(
            float(answer.margins[pixels].mean(dtype=np.float64)) for answer in (self, _mask(other))
        )

    def compared(self, other: Answer) -> tuple[str | None, Mask, Mask]:
        """Return how two masks deviate, and the masks: without ties where that deviates too."""
        its = _mask(other)
        masks = self.mask, its.mask
        kind = self.rule.kind(*masks)
        if kind is not None:
            settled = self._without_ties(its)
            strict = self.rule.kind(*settled)
            kind, masks = (kind, masks) if strict is None else (strict, settled)
        return kind, *masks

    def margin(self, home: Answer) -> float:
        """Return how far the mask is from deviating from another one, times `MARGIN`.

        It is by how much their mean IoU exceeds the least; or how much smaller than a deviation
        their largest region that differs is, times `REGION_SHARE`, where that is less. Below 0 the
        two deviate, and it is their strength. A failed arm has the margin 0.
        """
        if self.decision is None or home.decision is None:
            return 0.0
        strength = self.strength_against(home)
        return MARGIN * (-strength if strength else self._spare(_mask(home)))

    def departure(self, home: Answer, other: Answer) -> float:  # noqa: ARG002 - of all pixels
        """Return the distance from home, which changes with each pixel, unlike the margin."""
        return self.distance(home)

    def confusion(self, other: Answer) -> Confusion:
        """Return the classes that the two give to the same pixels."""
        if self.decision is None or other.decision is None:
            return NO_CONFUSION
        both = self.mask.astype(np.int64) * self.classes + _mask(other).mask
        counts = np.bincount(both.ravel())
        pairs = np.flatnonzero(counts)
        return np.column_stack([*divmod(pairs, self.classes), counts[pairs]])

    def lead(self) -> float:
        """Return infinity: no second decision is near."""
        return inf

    def certainty(self, k: int) -> float:  # noqa: ARG002 - a pixel's margin is to its second class
        """Return the mean margin of the pixels."""
        return float(self.margins.mean(dtype=np.float64))

    def distance(self, other: Answer) -> float:
        """Return 1 - the softened mean IoU, which increases before the first pixel changes."""
        its = _mask(other)
        margins = self.margins.astype(np.float32), its.margins.astype(np.float32)
        return 1.0 - softened_iou(self.mask, its.mask, margins, POWER)

    def measured(self, other: Answer) -> float:
        """Return the mean IoU of two masks, ties and all."""
        return mean_iou(self.mask, _mask(other).mask)

    def against_truth(self, truth: Answer) -> float:
        """Return the mean IoU with a right mask, of the pixels whose class is known."""
        its = _mask(truth)
        return mean_iou(*_counted(self.mask, its.mask, its.known))

    @staticmethod
    def pooled(answers: Sequence[Answer], truths: Sequence[Answer]) -> float | None:
        """Return the mean IoU of the pixels of all pictures that have an answer."""
        both, either = np.zeros((2, np.iinfo(np.uint8).max + 1), np.int64)
        for answer, right in zip(answers, truths, strict=True):
            if answer.decision is not None:
                its = _mask(right)
                shared = _shared(*_counted(_mask(answer).mask, its.mask, its.known))
                both[: len(shared[0])] += shared[0]
                either[: len(shared[1])] += shared[1]
        known = either > 0
        return float((both[known] / either[known]).mean()) if known.any() else None

    def region_size(self, other: MaskAnswer) -> int:
        """Return the pixels of the largest connected region in which two masks differ."""
        return largest_region(self.mask != other.mask).size

    def state(self) -> NDArray[np.float64]:
        """Return the share of each class in each of 4 x 4 cells, or of many classes in all."""
        cells = STATE_CELLS if self.classes <= MOST_CLASSES_OF_CELLS else 1
        rows, columns = (np.arange(size) * cells // size for size in self.mask.shape)
        cell = rows[:, None] * cells + columns
        counts = np.bincount(
            (cell * self.classes + self.mask).ravel(), minlength=cells**2 * self.classes
        )
        return np.asarray(counts * (cells**2 / self.mask.size), np.float64)

    def equals(self, other: Answer) -> bool:
        """Whether both arms gave the same classes by the same margins."""
        its = _mask(other)
        same = np.array_equal(self.mask, its.mask) and np.array_equal(self.margins, its.margins)
        return same and self.failure == other.failure

    def _spare(self, other: MaskAnswer) -> float:
        """Return by how much two masks that do not deviate could still differ; not below 0."""
        above = mean_iou(self.mask, other.mask) - self.rule.overlap if self.rule.overlap else inf
        if not self.rule.region:
            return max(0.0, above)
        left = 1.0 - self.region_size(other) / self.rule.region
        return max(0.0, min(above, REGION_SHARE * left))

    def _without_ties(self, other: MaskAnswer) -> tuple[Mask, Mask]:
        """Return the two masks with the class of the other arm in each tied pixel."""
        mine, its = self.margins == 0.0, other.margins == 0.0
        if not (mine.any() or its.any()):
            return self.mask, other.mask
        agreed = np.minimum(self.mask, other.mask)  # where both are tied
        agreed = np.where(mine & ~its, other.mask, np.where(its & ~mine, self.mask, agreed))
        tied = mine | its
        return np.where(tied, agreed, self.mask), np.where(tied, agreed, other.mask)


def is_tied(mask: Mask, margins: NDArray[np.float16], rule: MaskRule) -> bool:
    """Whether the tied pixels alone could make a mask deviate from what it is."""
    tied = margins == 0.0
    if not tied.any():
        return False
    pixels = np.bincount(mask.ravel())
    kept = np.bincount(mask[~tied], minlength=len(pixels))[pixels > 0]
    overlap = float((kept / pixels[pixels > 0]).mean())
    by_region = bool(rule.region) and largest_region(tied).size >= rule.region
    return overlap < rule.overlap or by_region


def _mask(answer: Answer) -> MaskAnswer:
    assert isinstance(answer, MaskAnswer)  # noqa: S101 - all answers are of one task
    return answer


def _counted(first: Mask, second: Mask, known: NDArray[np.bool_] | None) -> tuple[Mask, Mask]:
    """Return the pixels of two masks that count: both as they are, or (pixels,) each."""
    return (first, second) if known is None else (first[known], second[known])


Mask = NDArray[np.uint8]
"""The class of each pixel, (rows, columns)."""

Margins = NDArray[np.float32]
"""Excess of the score of each pixel's class over that of the next, (rows, columns)."""


class Region(NamedTuple):
    """A connected region in which two masks differ.

    Attributes:
        size: number of its pixels; 0 where the masks are equal.
        pixels: (rows, columns) bool, which these are.

    """

    size: int
    pixels: NDArray[np.bool_]


def mean_iou(first: Mask, second: Mask) -> float:
    """Return the mean IoU over the classes that either mask has: 1 for equal masks."""
    both, either = _shared(first, second)
    known = either > 0
    return float((both[known] / either[known]).mean())


def softened_iou(first: Mask, second: Mask, margins: tuple[Margins, Margins], power: int) -> float:
    """Return a mean IoU that also decreases where two masks are about to differ.

    A pixel to which both give one class counts as 1 - d**power, where d = |m1 - m2| / (m1 + m2) is
    the relative difference of its margins m1 and m2: 1 where one of them is 0, so that a pixel has
    moved the mean before its class changes. It has no unit, so it suits scores of any range.

    Args:
        first: a mask.
        second: the other one.
        margins: margins of both masks.
        power: the greater, the fewer pixels count that are far from changing.

    """
    one, other = margins
    total = one + other
    apart = np.abs(one - other) / np.where(total > 0.0, total, 1.0)
    both, either = _shared(first, second)
    lost = np.where(first == second, apart**power, 0.0)
    lost = np.bincount(first.ravel(), weights=lost.ravel(), minlength=len(both))
    known = either > 0
    return float(((both - lost)[known] / either[known]).mean())


def largest_region(differing: NDArray[np.bool_]) -> Region:
    """Return the largest connected region; pixels that touch by a corner are connected."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(
        differing.astype(np.uint8), connectivity=8
    )
    sizes = stats[1:, cv2.CC_STAT_AREA]
    if not len(sizes):
        return Region(0, np.zeros_like(differing))
    largest = int(sizes.argmax())
    return Region(int(sizes[largest]), labels == largest + 1)


def _shared(first: Mask, second: Mask) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return of each class how many pixels both masks give it, and how many either does."""
    classes = int(max(first.max(), second.max())) + 1
    pairs = first.astype(np.int64) * classes + second
    counts = np.bincount(pairs.ravel(), minlength=classes**2).reshape(classes, classes)
    both = counts.diagonal().astype(np.int64)
    return both, counts.sum(axis=0) + counts.sum(axis=1) - both
