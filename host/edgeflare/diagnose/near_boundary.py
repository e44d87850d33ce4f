"""Near-boundary inputs: images close to the decision boundary of the original.

Of ordinary test images only a few lie where compression can change the label, so counts on them are
small. These images lie there by construction, and neither the compressed model nor a repaired one
has any part in how they are made. Decisions that are no labels, such as texts or objects, have such
boundaries too; values and masks have none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.input_space import InputSpace
from edgeflare.errors import UserError

HALVINGS = 9
"""Halvings of a line. The two images at the ends of a part of length 1/512 are neighbours: a value
moves by less than half a level between them, so after rounding by one level at most. With 8 they
are neighbours too; with 19, of which the last leaves two images between which there is no other,
the original's margin is so small that half of the images deviate whatever the compressed model is
(on an int8 LeNet-4 796 of 1,600, of which 17 big; with 9 it is 714, of which 258 big)."""

FURTHEST = 0.06
"""The largest share of the line by which a wide input is moved away from the boundary."""

_VALUES_AT_ONCE = 2**22
"""Values of inputs that are computed together, so that memory does not grow with their number."""

Inputs = NDArray[Any]
"""(n, *shape), of one domain: images, or other arrays. Values of integer types are rounded."""

LabelOf = Callable[[Inputs, NDArray[np.int64]], NDArray[np.int64]]
"""Returns the original's labels of inputs, (n, *shape), that are made from the seeds at n
positions: (n,); -1 where it gives no answer."""

DecidesAs = Callable[[Inputs, NDArray[np.int64]], NDArray[np.bool_]]
"""Returns of inputs, (n, *shape), whether the original decides as on the seeds at n positions."""


@dataclass(frozen=True, slots=True)
class NearBoundary:
    """Images near the original's decision boundary, two from each line between two seeds.

    Images 2i and 2i + 1 of both sets are from line i: the first lies on the side of the seed that
    the line begins at, the second beyond the boundary.

    Attributes:
        tight: (count, *shape), the two neighbours on both sides of the boundary.
        wide: (count, *shape), inputs of the same lines a little away from it.
        rows: (count,) int64, the position of the seed on whose side of the line each image lies.

    """

    tight: Inputs
    wide: Inputs
    rows: NDArray[np.int64]


def near_boundary_inputs(
    images: Inputs,
    labels: NDArray[np.int64],
    label_of: LabelOf,
    count: int,
    rng: np.random.Generator,
    space: InputSpace | None = None,
) -> NearBoundary:
    """Make images on both sides of the original's decision boundary.

    1. Seeds are the images to which the original gives the label that `labels` has for them.
    2. Lines are drawn from the generator, each from a seed to one of another label, at most one
       between the same two seeds: count / 2 of them, or as many as there are.
    3. The image at t of a line, 0 ≤ t ≤ 1, is start + t (end - start), each value rounded to the
       nearest level, halves towards the start.
    4. Each line is halved 9 times, all lines in one batch: the part is kept at whose lower end the
       original gives the label of the start and at whose upper end it does not. The images of its
       ends are the two tight ones. They are neighbours: no value differs by more than one level.
    5. A wide image is that of the lower end moved down, or of the upper end moved up, by a share of
       the line that is drawn evenly from 0 to .06 for each image, and ends at the seeds.

    Beyond the boundary the original may give a third label, and a wide image may lie beyond another
    boundary: what it answers there is evaluated like that of any input.

    Args:
        images: (n, *shape), what the lines are drawn between.
        labels: (n,), of the images; one below 0 means unknown.
        label_of: the original's labels; called 10 times, with at most max(n, count / 2) images.
        count: number of images of each set, even.
        rng: the generator of all that is drawn.
        space: the values that inputs may have; needed where these are no quantities.

    Returns:
        The images; fewer than `count` where there are fewer pairs of seeds of different labels.

    Raises:
        UserError: the original gives the label that is known to seeds of fewer than two labels.

    """
    rows = np.flatnonzero((labels >= 0) & (label_of(images, np.arange(len(images))) == labels))
    if len(np.unique(labels[rows])) < 2:
        raise UserError(
            "near-boundary inputs lie between two seeds of different labels, and the original is"
            f" right on {len(rows)} of {len(images)} seeds, all of one label or none: give more"
            " seeds, of several classes"
        )
    drawn = drawn_lines(labels[rows], count // 2, rng)
    return _on_both_sides(
        Lines(images, rows[drawn], space),
        lambda inputs, at: label_of(inputs, at) == labels[at],
        rng,
    )


def near_other_decisions(
    inputs: Inputs, decides_as: DecidesAs, count: int, rng: np.random.Generator, space: InputSpace
) -> NearBoundary:
    """Make inputs on both sides of the original's boundaries between decisions that are no labels.

    As `near_boundary_inputs` does, between seeds on which the original decides otherwise.

    Args:
        inputs: (n, *shape), the seeds.
        decides_as: compares the original's decisions; called 10 times.
        count: number of inputs of each set, even.
        rng: the generator of all that is drawn.
        space: the values that inputs may have.

    Raises:
        UserError: the original decides the same on all seeds.

    """
    drawn = drawn_lines(np.arange(len(inputs)), count, rng)
    if len(drawn):
        drawn = drawn[~decides_as(inputs[drawn[:, 1]], drawn[:, 0])][: count // 2]
    if not len(drawn):
        raise UserError(
            "near-boundary inputs lie between two seeds on which the original decides otherwise,"
            f" and it decides the same on all {len(inputs)} seeds: give more seeds"
        )
    return _on_both_sides(Lines(inputs, drawn, space), decides_as, rng)


def mixtures(
    inputs: Inputs, count: int, rng: np.random.Generator, space: InputSpace
) -> tuple[Inputs, NDArray[np.int64]]:
    """Draw inputs evenly from lines between two seeds each, one from a line.

    Args:
        inputs: (n, *shape), the seeds.
        count: number of inputs.
        rng: the generator of all that is drawn.
        space: the values that inputs may have.

    Returns:
        inputs: (count, *shape); fewer where there are fewer pairs of seeds.
        rows: (count,) int64, the position of the seed that each line begins at.

    """
    drawn = drawn_lines(np.arange(len(inputs)), count, rng)
    return Lines(inputs, drawn, space).at(rng.random(len(drawn))), drawn[:, 0]


def _on_both_sides(lines: Lines, decides_as: DecidesAs, rng: np.random.Generator) -> NearBoundary:
    low, high = lines.bisected(decides_as)
    moved = rng.uniform(0.0, FURTHEST, (len(lines.ends), 2))
    return NearBoundary(
        _alternating(lines.at(low), lines.at(high)),
        _alternating(
            lines.at(np.maximum(low - moved[:, 0], 0.0)),
            lines.at(np.minimum(high + moved[:, 1], 1.0)),
        ),
        lines.ends.reshape(-1),
    )


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines between images, from the positions `ends[:, 0]` to `ends[:, 1]`."""

    images: Inputs
    ends: NDArray[np.int64]
    space: InputSpace | None = None

    def at(self, share: NDArray[np.float64]) -> Inputs:
        """Return one input of each line: (lines, *shape)."""
        shape = self.images.shape[1:]
        found = np.empty((len(self.ends), *shape), self.images.dtype)
        step = max(1, _VALUES_AT_ONCE // max(1, prod(shape)))
        for at in range(0, len(found), step):
            part = slice(at, at + step)
            found[part] = self._at(self.ends[part], share[part])
        return found

    def _at(self, ends: NDArray[np.int64], share: NDArray[np.float64]) -> Inputs:
        if self.space is not None and not self.space.ordered:
            pairs = ((self.images[start], self.images[end]) for start, end in ends.tolist())
            between = self.space.between
            return np.stack([between(*pair, part) for pair, part in zip(pairs, share, strict=True)])
        start, end = (self.images[ends[:, side]].astype(np.float64) for side in (0, 1))
        change = share.reshape(-1, *(1 for _ in start.shape[1:])) * (end - start)
        if self.images.dtype.kind in "iu":
            change = np.sign(change) * np.ceil(np.abs(change) - 0.5)
        return np.asarray((start + change).astype(self.images.dtype))

    def part(self, numbers: NDArray[np.int64]) -> Lines:
        """Return some of the lines, by their numbers."""
        return Lines(self.images, self.ends[numbers], self.space)

    def bisected(self, decides_as: DecidesAs) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return where the two neighbours of each line are, before and beyond the boundary.

        Args:
            decides_as: compares the original's decisions with those on the ends; called once for
                each halving, with all lines.

        """
        low, high = np.zeros(len(self.ends)), np.ones(len(self.ends))
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            before = decides_as(self.at(middle), self.ends[:, 0])
            low, high = np.where(before, middle, low), np.where(before, high, middle)
        return low, high


def drawn_lines(
    labels: NDArray[np.int64], most: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw pairs of positions with different labels, no two positions twice: (lines, 2)."""
    sizes = np.unique(labels, return_counts=True)[1]
    possible = int(len(labels) ** 2 - (sizes**2).sum()) // 2
    drawn: dict[frozenset[int], tuple[int, int]] = {}
    while len(drawn) < min(most, possible):
        start, end = rng.integers(len(labels), size=2).tolist()
        if labels[start] != labels[end]:
            drawn.setdefault(frozenset((start, end)), (start, end))
    return np.array(list(drawn.values()), np.int64).reshape(-1, 2)


def _alternating(first: Inputs, second: Inputs) -> Inputs:
    """Return the inputs of both in turns: (2 n, *shape)."""
    return np.stack([first, second], axis=1).reshape(-1, *first.shape[1:])
