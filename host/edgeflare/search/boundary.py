"""Boundary bisection: find where the arms' decision boundaries part, not where outputs drift apart.

Two arms that disagree have boundaries that do not lie on each other, and between the two is a
trigger. So leap away from the seed until the label changes, bisect between the seed and there, and
follow the boundary from where that ends, held on it by the margin of the first arm, until the
second arm is on its other side. The host answers first; the device is asked where its stand-in
deviates (`doubt`).

Paper: DFlare (TOSEM 2023) searches for the same inputs by climbing |p_f - p_g|, §3.3; the boundary
and its operators' choice §3.4 is what the ablation `boundary-mh` keeps.

Differences from the original
    Everything but the operators. Mutants are not accepted by fitness but used as directions. The
    margins are those of the scores (logits, or logarithms of probabilities), so that a saturated
    softmax is no plateau.

Parameters and their reasons
    Measured on lenet5 and lenet4 (int8, original against twin), reported on the other pairs.

    - `FIRST_LEAP` = 8 mutations in the first leap, doubled while the label holds: 2.5 queries until
      the label changes instead of 22 with one mutation a query, and no farther from the seed.
    - `SHORTEN` = 2 x 2: the leap is asked about block by block, and each block weighted by what it
      does to the margin for its length. 4 queries that shorten the way to the boundary by a third;
      16 blocks halve it, but cost more queries than the rest of the search.
    - `DESCEND` = 4 x 4, the same for the few seeds from which no leap within the bounds changes the
      label.
    - `ON_BOUNDARY` = 0.15: margin at which a point counts as on the boundary. Int8 LeNets resolve
      0.17.
    - `STRIDE` = 0.005 of the way from the seed for each step along the boundary: 8-bit models need
      to be met at another rounding of their outputs, and twice this loses the boundary more often.
    - `LONGER` = 0.5 of it more with each attempt, `LONGEST` = 3 times it at most: where the short
      strides found nothing, the longer ones do sooner.
    - `STEPS` = 30 along one boundary before leaping anew, `LOST` = 0.4 the margin that counts as
      off it. After a descent, which costs up to 130 queries, every other attempt leaps from where
      it ended, and not every one: what lies there may be the reason of the failure. Together with
      the longer strides this shortens the tail a little: of 6,000 searches on lenet4 and lenet1,
      on which these were chosen, the worst took 352 queries and not 378.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer, Image
from edgeflare.core.arm import Arm
from edgeflare.core.outcome import Outcome
from edgeflare.core.query import Query
from edgeflare.core.trigger import Trigger
from edgeflare.search.mutation import mutated
from edgeflare.search.operator_selection import MetropolisHastings, Selection, Uniform
from edgeflare.search.strategy import SearchGenerator, Start
from edgeflare.search.surrogates.device_surrogate import surrogate

FIRST_LEAP = 8
LONGEST_LEAP = 64
MOST_LEAPS = 4
SHORTEN = (2, 2)
DESCEND = (4, 4)
DESCENTS = 6
REACHES = 4
ON_BOUNDARY = 0.15
MOST_BISECTIONS = 12
STRIDE = 0.005
LONGER = 0.5
LONGEST = 3.0
SMALL_LEAP = 4
TURN = 10
STEPS = 30
LOST = 0.4
PUSHES = 2
PUSH_WITHIN = 0.12
PUSH_TO = 0.02

Real = NDArray[np.float64]
Step = Generator[Sequence[Query], Sequence[Outcome], "BoundaryPoint"]
"""A stage of the search that ends at an image."""


def boundary(start: Start) -> SearchGenerator:
    """Search by boundary bisection."""
    return _story(start, Uniform(start.operators, start.rng))


def boundary_mh(start: Start) -> SearchGenerator:
    """Search by boundary bisection, operators chosen by Metropolis-Hastings (the ablation)."""
    return _story(start, MetropolisHastings(start.operators, start.rng))


def _story(start: Start, selection: Selection) -> SearchGenerator:
    search = Search(start, selection)
    try:
        while True:
            yield from search.attempt()
    except Found as found:
        return found.trigger


class Found(Exception):  # noqa: N818 - the end of a story, not an error
    """Ends a search from wherever it is."""

    def __init__(self, trigger: Trigger) -> None:
        super().__init__()
        self.trigger = trigger


@dataclass(frozen=True, slots=True)
class BoundaryPoint:
    """An image and how the two sides of the surrogate stand to it.

    Attributes:
        image: HWC uint8.
        label: top-1 label of the first side.
        margin: of the first side: the seed's label before the best other one.
        other_margin: the same of the second side.
        tied: whether the second side is tied.

    """

    image: Image
    label: int | None
    margin: float
    other_margin: float
    tied: bool


class Search:
    """The search from one seed; each method is one stage of an attempt."""

    def __init__(self, start: Start, selection: Selection) -> None:
        self._start = start
        self._rng = start.rng
        self._selection = selection
        self._surrogate = surrogate(start.goal, start.ensemble, start.outcome, start.donors)
        self._origin: Real = start.image.astype(np.float64)
        self._label = self._surrogate.sides(start.outcome)[0].label
        self._seed = self._seen(start.image, start.outcome)
        self._names: list[str] = []
        self._descent: tuple[BoundaryPoint, list[str]] = self._seed, []
        self._failed = 0

    def attempt(self) -> Generator[Sequence[Query], Sequence[Outcome], None]:
        """Leap, weigh the leap, find the boundary that way, and follow it for a while."""
        here, names = self._descent if self._failed % 2 else (self._seed, [])
        self._names = list(names)
        far = yield from self._leap(here)
        if far.label == self._label:
            far = yield from self._descend(far)
            if far.label == self._label:
                self._failed += 1
                return
            self._descent = far, list(self._names)
            way, guess = far.image - self._origin, 0.5
        else:
            way, guess = yield from self._weigh(self._seed, far, SHORTEN)
        near, way, slope = yield from self._locate(way, guess, far)
        yield from self._follow(near, way, slope)
        self._failed += 1

    def _leap(self, here: BoundaryPoint) -> Step:
        """Mutate harder and harder until the label changes; keep what brings it nearer.

        Returns:
            An image beyond the boundary, or the one nearest to it.

        """
        size = FIRST_LEAP
        for _ in range(MOST_LEAPS):
            leaped = yield from self._look(self._mutate(here.image, size))
            if leaped.margin <= here.margin:
                here = leaped
                self._selection.reward()
            if leaped.label != self._label:
                return leaped
            size = min(2 * size, LONGEST_LEAP)
        return here

    def _descend(self, here: BoundaryPoint) -> Step:
        """Bring the margin down block by block where no leap within the bounds changes the label.

        Returns:
            An image beyond the boundary, or the one nearest to it.

        """
        for _ in range(DESCENTS):
            leaped = yield from self._look(self._mutate(here.image, FIRST_LEAP))
            direction, pace = yield from self._weigh(here, leaped, DESCEND)
            reached = yield from self._reach(here, direction, pace)
            if reached.label != self._label:
                return reached
            here = min(here, leaped, reached, key=lambda seen: seen.margin)
        return here

    def _weigh(
        self, here: BoundaryPoint, far: BoundaryPoint, blocks: tuple[int, int]
    ) -> Generator[Sequence[Query], Sequence[Outcome], tuple[Real, float]]:
        """Weigh the blocks of a change by what each does to the margin for its length.

        Returns:
            The direction in which the margin falls fastest, of all that scale the blocks one by
            one, and how far along it the margin should reach 0.

        """
        origin = here.image.astype(np.float64)
        direction = np.zeros_like(origin)
        gain = 0.0
        for block in _blocks(far.image - origin, blocks):
            length = float((block**2).sum())
            if length == 0.0:
                continue
            part = yield from self._look(_to_image(origin + block))
            drop = here.margin - part.margin
            if drop > 0.0:
                direction += block * (drop / length)
                gain += drop**2 / length
        return direction, here.margin / gain if gain > 0.0 else 0.0

    def _reach(self, here: BoundaryPoint, direction: Real, pace: float) -> Step:
        """Go along a direction until the label changes, within the bounds.

        Returns:
            An image beyond the boundary, or the one nearest to it.

        """
        best = here
        for _ in range(REACHES):
            image = _to_image(here.image + pace * direction)
            image = self._start.bounds.project(image, self._start.image)
            if pace == 0.0:
                break
            seen = yield from self._look(image)
            best = min(best, seen, key=lambda seen: seen.margin)
            if seen.label != self._label:
                break
            pace *= _stretch(here, seen)
        return best

    def _locate(
        self, way: Real, guess: float, far: BoundaryPoint
    ) -> Generator[Sequence[Query], Sequence[Outcome], tuple[BoundaryPoint, Real, float]]:
        """Find the boundary along a way from the seed, guided by the margin.

        Args:
            way: the direction.
            guess: how far along it the boundary should be.
            far: an image beyond the boundary, the way to which is taken if this one is no shorter.

        Returns:
            The image on the boundary, the way to it, and how fast the margin falls along it.

        """
        longest = float(np.linalg.norm(far.image - self._origin))
        inside, outside = (0.0, self._seed.margin), None
        at = guess
        for turn in range(1, MOST_BISECTIONS + 1):
            if outside is None and not 0.0 < at * float(np.linalg.norm(way)) <= 0.95 * longest:
                way, at = far.image - self._origin, 0.5
                inside, outside = (0.0, self._seed.margin), (1.0, far.margin)
            seen = yield from self._look(_to_image(self._origin + at * way))
            if seen.margin > 0.0:
                inside = (at, seen.margin)
            else:
                outside = (at, seen.margin)
            if abs(seen.margin) < ON_BOUNDARY:
                break
            if outside is None:
                at *= _stretch(self._seed, seen)
            elif (outside[0] - inside[0]) * float(np.linalg.norm(way)) < 1.0:
                break
            else:
                at = _between(inside, outside, halve=turn % 3 == 0)
        if outside is None:
            slope = (seen.margin - self._seed.margin) / at
        else:
            slope = (outside[1] - inside[1]) / (outside[0] - inside[0])
        return seen, at * way, min(slope * at, -1e-3)

    def _follow(
        self, here: BoundaryPoint, way: Real, slope: float
    ) -> Generator[Sequence[Query], Sequence[Outcome], None]:
        """Walk along the boundary, between the two arms' sides of it.

        Each step goes aside, and along the way as far as the margin needs it to stay between the
        first arm's boundary (0) and the second's (minus the mean difference of their margins).
        Where the second arm is strictly on the same side as the first, the first is pushed across.
        """
        aside, drift = np.zeros_like(way), 0.0
        apart: list[float] = []
        pushes = lost = 0
        for step in range(STEPS):
            push = not here.tied and abs(here.margin) < PUSH_WITHIN and pushes < PUSHES
            pushes = pushes + 1 if push else 0
            if push:
                target, aside_now, drift_now = -np.sign(here.margin) * PUSH_TO, 0.0 * way, 0.0
            else:
                if step % TURN == 0 or not aside.any():
                    aside, drift = self._turn(here.image, way), 0.0
                target = -sum(apart) / (len(apart) + 3) / 2
                aside_now, drift_now = aside, drift
            along = float(np.clip((target - here.margin - drift_now) / slope, -0.05, 0.05))
            image = self._dithered(here.image + aside_now + along * way)
            seen = yield from self._look(image)
            if not push:
                drift = 0.5 * drift + 0.5 * (seen.margin - here.margin - along * slope)
            apart.append(seen.other_margin - seen.margin)
            here = seen
            lost = lost + 1 if abs(here.margin) > LOST else 0
            if lost == 3:
                return

    def _turn(self, image: Image, way: Real) -> Real:
        """Return a stride aside: a small leap's direction, at a right angle to the way."""
        stride = STRIDE * min(1.0 + LONGER * self._failed, LONGEST)
        aside = self._mutate(image, SMALL_LEAP).astype(np.float64) - image
        length = float(np.linalg.norm(way))
        aside = aside - way * (float((aside * way).sum()) / length**2)
        size = float(np.linalg.norm(aside))
        return aside * (stride * length / size) if size > 0.0 else aside

    def _look(self, image: Image) -> Step:
        """Ask the host about an image, and the device if the host is in doubt."""
        start, surrogate = self._start, self._surrogate
        image = start.bounds.project(image, start.image)
        (outcome,) = yield (Query(image, surrogate.arms, surrogate.kernels),)
        if surrogate.doubts(outcome):
            (told,) = yield (Query(image, (Arm.DEVICE,), again=True),)
            whole = Outcome({**outcome.answers, **told.answers}, outcome.members)
            kind = start.goal.met(whole)
            surrogate.told(whole)
            if kind is not None:
                raise Found(Trigger(image, kind, whole, tuple(self._names)))
        return self._seen(image, outcome)

    def _seen(self, image: Image, outcome: Outcome) -> BoundaryPoint:
        first, second = self._surrogate.sides(outcome)
        margins = _margin(first, self._label), _margin(second, self._label)
        return BoundaryPoint(image, first.label, *margins, second.tied)

    def _mutate(self, image: Image, times: int) -> Image:
        for _ in range(times):
            operator = self._selection.choose()
            self._names.append(operator.name)
            image = mutated(operator, image, self._rng)
        return image

    def _dithered(self, image: Real) -> Image:
        """Round to 8 bits, up or down by chance, so that steps below a gray level are steps."""
        return np.clip(np.floor(image + self._rng.random(image.shape)), 0, 255).astype(np.uint8)


def _margin(answer: Answer, label: int | None) -> float:
    others = answer.scores.copy()
    others[label or 0] = -np.inf
    return float(answer.scores[label or 0] - others.max())


def _stretch(begin: BoundaryPoint, end: BoundaryPoint) -> float:
    """Return by how much to go on beyond `end` so that the margin should be past 0."""
    drop = begin.margin - end.margin
    return min(2.5, max(1.1, 1.1 * begin.margin / drop)) if drop > 0.0 else 2.0


def _between(inside: tuple[float, float], outside: tuple[float, float], *, halve: bool) -> float:
    """Return where to bisect: where the margin should be 0, or in the middle.

    A margin inside may be far greater than outside, where scores of probabilities end; it is
    capped, and neither end is come closer to than a twelfth of the gap.
    """
    gap = outside[0] - inside[0]
    if halve:
        return inside[0] + gap / 2
    high = min(inside[1], 8.0 * max(-outside[1], 0.5))
    share = high / (high - outside[1])
    return inside[0] + gap * min(max(share, 1 / 12), 11 / 12)


def _blocks(change: Real, grid: tuple[int, int]) -> list[Real]:
    """Return the change restricted to each block of the image."""
    blocks = []
    for rows in np.array_split(np.arange(change.shape[0]), grid[0]):
        for columns in np.array_split(np.arange(change.shape[1]), grid[1]):
            block = np.zeros_like(change)
            part = np.ix_(rows, columns)
            block[part] = change[part]
            blocks.append(block)
    return blocks


def _to_image(values: Real) -> Image:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
